r"""Tails of a row of probabilities in the shape of a normal law, after Giessing & Höhne (2011).

A tail over the distances `r` has the shape

.. math:: w_r(k, \sigma) = \Phi\!\left(\frac{k + r + 1/2}{\sigma}\right)
          - \Phi\!\left(\frac{k + r - 1/2}{\sigma}\right).

The spread :math:`\sigma` gives it its share of the variance, and the start `k` is the one that
brings the last probability nearest to zero. Left and right are shaped by turns, each with what the
other leaves of mass and variance; the mean is right only after the row is put back on its
conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.arrays import Real

# Each turn halves what is left to correct; after ten nothing moves by a millionth.
_TURNS, _HALVINGS = 10, 60
# Spreads between which the shape goes from all mass on the first distance to the same on all.
_NARROW, _WIDE = 0.05, 1e3


def normal_tails(start: Real, deviations: Sequence[int], V: float) -> Real:
    """A row with the centre of another and tails of normal shape.

    Args:
      start: A row with variance `V`; its centre and the mass of its tails begin.
      deviations: The deviations of its probabilities.
      V: The variance.

    Returns:
      The row; probabilities sum to one and have variance `V` as far as the shapes can, and their
      mean is whatever comes of it.
    """
    v, row = np.asarray(deviations, dtype=np.float64), start.copy()
    sides = [v < 0, v > 0]
    if not all(side.any() for side in sides):
        return row
    for turn in range(2 * _TURNS):
        side, other = sides[turn % 2], sides[1 - turn % 2]
        mass = 1 - row[v == 0].sum() - row[other].sum()
        square = V - row[other] @ v[other] ** 2
        if mass <= 0 or square <= 0:
            break
        row[side] = mass * tail_shape(np.abs(v[side]), square / mass)
    return row


def tail_shape(distances: Real, mean_square: float) -> Real:
    """Weights of a tail with a given mean of squared distances; the nearest where none has it."""
    starts = range(int(distances.max()) + 1)
    shapes = [_with_mean_square(distances, k, mean_square) for k in starts]
    last = int(np.argmax(distances))
    return min(shapes, key=lambda shape: float(shape[last]))


def _with_mean_square(distances: Real, k: int, mean_square: float) -> Real:
    """The shape of a start whose spread gives the wanted mean square, by bisection."""
    narrow, wide = _NARROW, _WIDE
    for _ in range(_HALVINGS):
        middle = np.sqrt(narrow * wide)
        if _shape(distances, k, middle) @ distances**2 < mean_square:
            narrow = middle
        else:
            wide = middle
    return _shape(distances, k, narrow)


def _shape(distances: Real, k: int, spread: float) -> Real:
    # From the upper end, where differences of the law itself would cancel.
    from scipy.special import ndtr

    weight = ndtr(-(k + distances - 0.5) / spread) - ndtr(-(k + distances + 0.5) / spread)
    total = float(weight.sum())
    if total <= 0:
        return np.asarray(distances == distances.min(), dtype=np.float64)
    return np.asarray(weight / total)
