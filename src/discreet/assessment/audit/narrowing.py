r"""Ranges of cells made narrower by what all of them have in common: true cells add up.

.. math:: \min_y, \max_y\; x_k^\top y \quad\text{subject to}\quad
          l_m \le x_m^\top y \le u_m \text{ for all } m,\qquad f_j \le y_j \le c_j .

Bounds are first passed from cells to sums and back until nothing moves, then linear programs are
solved for the cells that are still open. Counts are whole: ends are rounded inwards, to counts that
a value can come from, and the narrower ranges are passed on again. Every end is sound. Between
them, a whole table for every count is certain only where sums form a network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Index, Real
from discreet.assessment.audit.equations import DisagreementError
from discreet.assessment.audit.ranges import IMPOSSIBLE
from discreet.errors import InfeasibleError
from discreet.solve.linear.intervals import Limits, feasible_intervals

Snap = Callable[[Real, Real], tuple[Real, Real]]
# Rounds of passing bounds on. Each costs one pass through the matrix; tables need five or six, and
# what is left after fifty is left to the programs.
_ROUNDS = 50
# Programs are exact to about 1e-6 of counts that are passed to them scaled.
_ROUNDING = 1e-6
# Rounds of programs: after rounding inwards others may become narrower; a third round never did.
_PROGRAM_ROUNDS = 3


class Ranges(NamedTuple):
    """Smallest and largest values of published and of inner cells."""

    low: Real
    high: Real
    floor: Real
    ceiling: Real


def pass_bounds(X: Any, ranges: Ranges, snap: Snap | None = None) -> Ranges:
    """Bounds of cells and sums from each other, until none moves.

    Args:
      X: Inner cells × published cells, 0/1, sparse by columns.
      ranges: What is known of each.
      snap: Moves ends of published cells inwards to possible counts.
    """
    low, high, floor, ceiling = (np.array(part, dtype=np.float64) for part in ranges)
    cell, column = X.indices, np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    for _ in range(_ROUNDS):
        before = float(low.sum() + floor.sum()), _size(high), _size(ceiling)
        least = X.T @ floor
        endless = np.isinf(ceiling)
        most, open_ended = X.T @ np.where(endless, 0.0, ceiling), X.T @ endless.astype(np.int64)
        low = np.maximum(low, least)
        high = np.minimum(high, np.where(open_ended > 0, np.inf, most))
        if snap is not None:
            low, high = snap(low, high)
        others = most[column] - np.where(endless, 0.0, ceiling)[cell]
        others[open_ended[column] - endless[cell] > 0] = np.inf
        # A cell is at most what is left of a sum when all others are as small as they can be, and
        # at least what is left when they are as large as they can be.
        np.minimum.at(ceiling, cell, (high - least)[column] + floor[cell])
        np.maximum.at(floor, cell, low[column] - others)
        if (low > high + _ROUNDING).any() or (floor > ceiling + _ROUNDING).any():
            raise DisagreementError(IMPOSSIBLE)
        if before == (float(low.sum() + floor.sum()), _size(high), _size(ceiling)):
            break
    return Ranges(low, high, floor, ceiling)


def narrow(
    X: Any, ranges: Ranges, chosen: Index, snap: Snap, *, workers: int | None = None
) -> tuple[Ranges, int]:
    """Ranges by linear programs for some published cells; passing bounds on for all.

    Args:
      X: Inner cells × published cells, 0/1, sparse by columns.
      ranges: What is known of each cell, whole numbers or infinite.
      chosen: Published cells whose ranges are followed to their ends.
      snap: Moves ends of published cells inwards to possible counts.
      workers: Processes to use; by default those that are worth starting.

    Returns:
      The ranges, and how many programs were solved.
    """
    ranges, programs = pass_bounds(X, ranges, snap), 0
    for _ in range(_PROGRAM_ROUNDS):
        still = chosen[ranges.low[chosen] < ranges.high[chosen]]
        if not len(still) or not _is_any_sum_tight(X, ranges):
            break
        low, high, solved = _by_programs(X, ranges, still, workers)
        programs += solved
        near = ranges.low.copy(), ranges.high.copy()
        near[0][still] = np.maximum(near[0][still], np.ceil(low - _ROUNDING))
        near[1][still] = np.minimum(near[1][still], np.floor(high + _ROUNDING))
        # Ends that are whole leave nothing to round, so that programs would find them again.
        above, below = near[0][still] > low + _ROUNDING, near[1][still] < high - _ROUNDING
        snapped = snap(*near)
        is_same = all(np.array_equal(a, b) for a, b in zip(snapped, near, strict=True))
        ranges = pass_bounds(X, ranges._replace(low=snapped[0], high=snapped[1]), snap)
        if is_same and not (above | below).any():
            break
    return ranges, programs


def _is_any_sum_tight(X: Any, ranges: Ranges) -> bool:
    """Whether some range of a sum says more than those of its cells; else these say it all."""
    return bool(
        (ranges.low > X.T @ ranges.floor).any() or (ranges.high < X.T @ ranges.ceiling).any()
    )


def _by_programs(
    X: Any, ranges: Ranges, chosen: Index, workers: int | None
) -> tuple[Real, Real, int]:
    """Ends of the ranges of some published cells over real tables."""
    from scipy import sparse

    columns = sparse.hstack([X, sparse.identity(X.shape[0])], format="csc")
    low = np.concatenate([ranges.low, ranges.floor])
    high = np.concatenate([ranges.high, ranges.ceiling])
    try:
        found = feasible_intervals(
            X[:, :0],
            np.zeros(0),
            X[:, chosen],
            limits=Limits(columns, low, high),
            # An end that is reached from inside is proven, since it bounds from outside.
            enough=(ranges.low[chosen], ranges.high[chosen]),
            workers=workers,
        )
    except InfeasibleError as error:
        raise DisagreementError(IMPOSSIBLE) from error
    return found.low, found.high, found.programs


def _size(values: Real) -> tuple[float, int]:
    """A sum that tells whether bounds moved, infinite ones among them."""
    finite = np.isfinite(values)
    return float(values[finite].sum()), int(finite.sum())
