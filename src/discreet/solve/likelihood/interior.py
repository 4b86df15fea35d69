r"""Poisson optima of small tables by an interior path, right at any weight.

With a barrier, :math:`\min_{y > 0} \sum_k w_k(\mu_k - z_k\log\mu_k) - \tau\sum_i\log y_i`, every
inner cell is positive and has a slope of :math:`-\tau/y_i`; as :math:`\tau` falls, cells that an
optimum leaves empty go to zero. A Newton step in shares of the cells, :math:`y(1 + p)`, is a least
squares problem whose rows are the published cells and the barriers, each with a scale of its own.
A factor that keeps to each scale harms no light cell by a heavy one.

See Wright (1997) on the path, Stewart (1989) on the factor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.arrays import Mask, Real
from discreet.solve.least_squares.dense import RowScaledFactor

# Entries of a dense matrix up to which the path is followed.
MOST_ENTRIES = 1e5
# Factor by which the barrier falls once the path was reached, and steps at most.
_FALL = 0.1
_MOST_STEPS = 150
# Part of the way to the bound that a step may go.
_BOUNDARY = 0.9
# Steps with the last barrier: each squares the error until rounding is left.
_LAST_STEPS = 6


class InteriorPoint(NamedTuple):
    """Inner cells, those that need not be zero, the score of the margins, and the steps taken."""

    y: Real
    is_open: Mask
    score: Real
    steps: int


def follow_path(X: Real, z: Real, weights: Real, last: float) -> InteriorPoint:
    """The optimum for published values, some of them positive, at a small last barrier.

    Inner cells all count in a cell with weight. Published zeros have a price that does not bend.
    """
    counts = (z > 0) & (weights > 0)
    A, w, n = X[:, counts], weights[counts], len(X)
    data, price = w * z[counts], X @ np.where(counts, 0.0, weights)
    y = np.full(n, float(data.sum()) / float(weights @ X.sum(axis=0)))
    barrier = float(np.mean(y * (A @ w + price)))
    s, steps, left = barrier / y, 0, _LAST_STEPS
    while left and steps < _MOST_STEPS:
        mu = y @ A
        root, hold = np.sqrt(data) / mu, np.sqrt(y * s)
        rows = np.vstack([(A * y[:, None] * root).T, np.diag(hold)])
        pull = np.concatenate([(data / mu - w) / root, (barrier - y * price) / hold])
        p = RowScaledFactor(rows, np.ones(len(rows))).solve(pull)
        # No cell goes further than most of the way to zero, and no margin more than doubles: the
        # model of the logarithm ends there.
        bend = float(np.abs((p * y) @ A / mu).max(initial=0.0))
        step = min(1.0, _BOUNDARY / max(-float(p.min()), _BOUNDARY), 1.0 / max(bend, 1.0))
        change = barrier / y - s - s * p
        dual_step = min(1.0, _BOUNDARY / max(float((-change / s).max()), _BOUNDARY))
        y, s = y * (1.0 + step * p), s + dual_step * change
        steps += 1
        if barrier <= last:
            left -= 1
        elif step * dual_step > _BOUNDARY or _is_on_path(A, data, w, price, y, s, barrier):
            barrier = max(_FALL * barrier, last)
    mu, score = y @ A, -weights.copy()
    score[counts] += data / mu
    # Values and slopes multiply to the barrier. Where the slope is the larger one, each relative to
    # the least margin or weight of the cell, an optimum has a zero.
    least = np.where(A > 0, mu, np.inf).min(axis=1, initial=np.inf)
    lightest = np.where(X > 0, np.where(weights > 0, weights, np.inf), np.inf).min(axis=1)
    return InteriorPoint(y, y / least >= s / lightest, score, steps)


def _is_on_path(
    A: Real, data: Real, w: Real, price: Real, y: Real, s: Real, barrier: float
) -> bool:
    """Whether slopes are those of the barrier, nearly enough for the next one."""
    off = np.abs(y * (price - A @ (data / (y @ A) - w) - s)).max()
    return bool(off <= barrier and np.abs(y * s - barrier).max() <= barrier / 2)
