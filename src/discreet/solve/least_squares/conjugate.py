r"""Conjugate gradients, on all inner cells or on chosen ones.

On cells :math:`F` the ridge problem is
:math:`(D X_F W X_F^\top D + \lambda I)\,x = D X_F W (z - X_F^\top s)` with :math:`D = \sqrt q` and
:math:`y = s + D x`. The iterates have the form :math:`x = D X_F \nu`, so for :math:`\lambda = 0`
the limit is the solution nearest to the starting table. Beside every vector of cells stands its
image over the published ones (:math:`\nu` beside :math:`x`), so that this form holds to the last
digit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from discreet.arrays import Real, Whole
from discreet.design.base import dot
from discreet.design.incidence import Incidence, SumArrays, hand_down, sum_up
from discreet.solve.least_squares.basis import Operator
from discreet.solve.least_squares.problem import LeastSquaresProblem

# By so much residuals may fall before they are computed anew where stiff margins are taken out:
# rounding hides more than nine digits of stiff directions.
_DIGITS = 1e-9
# Steps after which residuals are computed anew in any case.
_LONGEST = 5_000
# A residual that seemed to be within its limit may be so many times it: another run would take many
# steps to gain so little.
_NEAR = 2.0
# A run that leaves more than this share of the residual made no progress: rounding forbids more.
_STUCK = 0.5

Deflate = Callable[[Real, Real], Real]
r"""Makes the image of a residual and :math:`X^\top D r` into the image of :math:`P^{-1} r`."""


def conjugate_gradients(
    residual: Operator,
    apply: Operator,
    precondition: Operator | None,
    x: Real,
    limits: Real,
    max_steps: int,
    digits: float = 0.0,
) -> int:
    """Improve `x` in place until its residual is within its limits; returns the steps taken.

    Runs start from the true residual, which rounding hides during a run.

    Args:
      residual: The residual of a solution.
      apply: The matrix.
      precondition: An approximate inverse, if there is one.
      x: The solution. Entries beyond the limits are images, which follow the others.
      limits: Largest residuals.
      max_steps: Steps after which to give up.
      digits: By how much residuals may fall in a run: where some directions are stiff, more hides.
    """
    done, before = 0, np.inf
    while True:
        r = residual(x)
        left = float((np.abs(r[: len(limits)]) / limits).max(initial=0.0))
        is_reached = left <= (_NEAR if done else 1.0)
        # What is no number is no progress either.
        if is_reached or not left <= _STUCK * before or done >= max_steps:
            return done
        enough = max(1.0, digits * left) * limits
        steps = min(_LONGEST, max_steps - done)
        done += _run(apply, precondition, x, r, enough, steps, digits)
        before = left


def _run(
    apply: Operator,
    precondition: Operator | None,
    x: Real,
    r: Real,
    limits: Real,
    max_steps: int,
    digits: float,
) -> int:
    """Steps until the residual is small, or so much smaller that rounding may hide it."""
    n, p, product, first = len(limits), np.zeros_like(x), 1.0, 0.0
    for step in range(max_steps):
        if (np.abs(r[:n]) <= limits).all():
            return step
        s = r if precondition is None else precondition(r)
        before, product = product, dot(r[:n], s[:n])
        first = product if step == 0 else first
        if product <= digits**2 * first:
            return step
        p *= product / before if step else 0.0
        p += s
        q = apply(p)
        curvature = dot(p[:n], q[:n])
        # Rounding makes the curvature of directions zero or less that no published cell sees.
        if not curvature > 0:
            return step
        x += product / curvature * p
        r -= product / curvature * q
    return max_steps


class CellSolution(NamedTuple):
    """Values of chosen cells, all published cells (zero where none of them counts), and steps."""

    y: Real
    z: Real
    steps: int


def solve_on_cells(
    problem: LeastSquaresProblem,
    incidence: Incidence,
    cells: Whole,
    dual: Real,
    *,
    ridge: float,
    limits: Real,
    max_steps: int,
    deflate: Deflate | None = None,
) -> CellSolution:
    r"""Solve the ridge problem on some cells from :math:`\nu` in `dual`, which is updated.

    The gradient of every one of the cells is brought within its limit.

    Cost: each step is one pass over the cells' incidence there and one back; with held margins
    taken out, two of each and a triangular solve.
    """
    at, prior, n = incidence.position, problem.prior, incidence.n_inner
    deviation, start = prior.deviations(cells), prior.starts(cells)
    weights, targets = problem.weights[at], problem.z[at] - incidence.aggregate(start)
    sums = incidence.sums

    def residual(x: Real) -> Real:
        left = targets - incidence.aggregate(deviation * x[:n])
        return _beside(sums, deviation, weights * left - ridge * x[n:])

    def precondition(r: Real) -> Real:
        image = deflate(r[n:], incidence.aggregate(deviation * r[:n])) if deflate else r[n:]
        return _beside(sums, deviation, image)

    x = _beside(sums, deviation, np.where(weights > 0, dual[at], 0.0))
    steps = conjugate_gradients(
        residual,
        partial(_multiply, sums, deviation, weights, ridge),
        precondition if deflate else None,
        x,
        deviation * limits,
        max_steps,
        _DIGITS if deflate else 0.0,
    )
    dual[at] = x[n:]
    y = start + deviation * x[:n]
    z = np.zeros(problem.design.n_published)
    z[at] = incidence.aggregate(y)
    return CellSolution(y, z, steps)


@njit(cache=True)
def _beside(sums: SumArrays, deviation: Real, image: Real) -> Real:
    """The vector of cells that an image stands for, and the image."""
    n = len(deviation)
    x = np.empty(n + len(image))
    x[n:] = image
    hand_down(sums, image.copy(), x[:n])
    for i in range(n):
        x[i] *= deviation[i]
    return x


@njit(cache=True)
def _multiply(sums: SumArrays, deviation: Real, weights: Real, ridge: float, p: Real) -> Real:
    """The matrix of the ridge problem times a vector of cells with its image."""
    n, image = len(deviation), np.empty_like(weights)
    sum_up(sums, deviation * p[:n], image)
    for k in range(len(image)):
        image[k] = weights[k] * image[k] + ridge * p[n + k]
    return _beside(sums, deviation, image)
