r"""Audit of perturbed counts: what their law, signs and sums leave of each true count.

Ranges of cells made narrower by what all of them have in common: true cells add up.

.. math:: \min_y, \max_y\; x_k^\top y \quad\text{subject to}\quad
          l_m \le x_m^\top y \le u_m \text{ for all } m,\qquad f_j \le y_j \le c_j .

Bounds are first passed from cells to sums and back until nothing moves, then linear programs are
solved for the cells that are still open. Counts are whole: ends are rounded inwards, to counts that
a value can come from, and the narrower ranges are passed on again. Every end is sound. Between
them, a whole table for every count is certain only where sums form a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.assessment.audit.equations import DisagreementError
from discreet.assessment.audit.ranges import IMPOSSIBLE, CountRanges, ranges_of
from discreet.assessment.audit.subject import MARKING, list_names
from discreet.assessment.cells import true_values
from discreet.design.base import Design
from discreet.display import Display, Displayed
from discreet.errors import InfeasibleError
from discreet.facade.table import Table
from discreet.frames import Frame
from discreet.noise.matrix import TransitionMatrix
from discreet.solve.linear.intervals import Limits, feasible_intervals
from discreet.tables.protected import Protected
from discreet.tables.show import Frames, frame_of

_SMALL = 2  # counts of one and two are what perturbation hides first
Snap = Callable[[Real, Real], tuple[Real, Real]]
# Rounds of passing bounds on. Each costs one pass through the matrix; tables need five or six, and
# what is left after fifty is left to the programs.
_ROUNDS = 50
# Programs are exact to about 1e-6 of counts that are passed to them scaled.
_ROUNDING = 1e-6
# Rounds of programs: after rounding inwards others may become narrower; a third round never did.
_PROGRAM_ROUNDS = 3


@dataclass(frozen=True, eq=False, repr=False)
class PerturbedAudit(Displayed, Frames):
    """**Confidential.** The counts that are possible behind each perturbed value.

    Attributes:
      design: The released design.
      z: Released values.
      alone: What each value says by itself.
      low: Smallest true count of each published cell, with signs and sums.
      high: Largest one.
      is_followed: Whether programs followed the range to its ends; others are sound, not tight.
      truth: True counts, where they were given.
      programs: Linear programs that were solved.
    """

    design: Design
    z: Array
    alone: CountRanges
    low: Real
    high: Real
    is_followed: Mask
    truth: Array | None = None
    programs: int = 0

    @property
    def disclosed(self) -> Index:
        """Cells whose count follows from signs and sums, and not from their own value."""
        return np.flatnonzero((self.low == self.high) & (self.alone.low < self.alone.high))

    @property
    def disclosed_small(self) -> Index:
        """Those of them that hold one or two."""
        low = self.low[self.disclosed]
        return self.disclosed[(low >= 1) & (low <= _SMALL)]

    @property
    def known_alone(self) -> Index:
        """Cells whose own value leaves one count, such as zeros that nothing else becomes."""
        return np.flatnonzero(self.alone.low == self.alone.high)

    @property
    def narrowed(self) -> Index:
        """Cells for which some count is possible by their own value, and not with the others."""
        return np.flatnonzero((self.low > self.alone.low) | (self.high < self.alone.high))

    @property
    def at_risk(self) -> Index:
        """The same, as in an audit of hidden cells."""
        return self.disclosed

    @property
    def is_clean(self) -> bool:
        """Whether no count follows that a cell's own value leaves open."""
        return not len(self.disclosed)

    @cached_property
    def possible(self) -> tuple[float, float] | None:
        """Mean number of counts between the ends, by each value alone and with all others.

        Over cells whose own value leaves several and not infinitely many. `None` where no value
        has a bound but those that are known: there is no mean then.
        """
        wide = self.alone.high - self.alone.low
        some = np.isfinite(wide) & (wide > 0)
        if not some.any():
            return None if np.isinf(wide).any() else (1.0, 1.0)
        after = (self.high - self.low)[some]
        return float(1 + wide[some].mean()), float(1 + after.mean())

    def name_of(self, position: int) -> str:
        """A published cell in words."""
        return self.design.name_of(position)

    def to_frame(self) -> Frame:
        """A row for each published cell: its value, and the counts possible alone and with all."""
        columns: dict[str, Any] = {"released": self.z}
        ends = {"alone_low": self.alone.low, "alone_high": self.alone.high}
        for name, end in {**ends, "low": self.low, "high": self.high}.items():
            columns[name] = np.ma.array(end, mask=~np.isfinite(end))
        if self.truth is not None:
            columns["value"] = self.truth
        return frame_of(self.design, columns)

    @property
    def text(self) -> str:
        """The findings as lines of text."""
        lines = [MARKING, self._counts(), *(f"{name}: {said}" for name, said in self._findings())]
        return "\n".join(lines)

    def _display(self) -> Display:
        facts = [(name, str(said)) for name, said in self._findings()]
        said = [MARKING, self._counts()]
        return Display("Audit of perturbed counts", "confidential", facts, lines=said)

    def __repr__(self) -> str:
        return self.text

    def _counts(self) -> str:
        said = f"{len(self.z):,} published cells. Known to everybody: {self.alone.known_from}."
        if self.possible is None:
            is_open = np.isinf(self.alone.high)
            bounded = int(np.isfinite(self.high[is_open]).sum())
            return (
                f"{said} Of {int(is_open.sum()):,} cells nothing is known from above by their own "
                f"value; signs and sums bound {bounded or 'none'} of them."
            )
        before, after = self.possible
        return (
            f"{said} A value alone leaves {before:.1f} counts on average, with signs and sums "
            f"{after:.1f}."
        )

    def _findings(self) -> list[tuple[str, str]]:
        found = {
            "known by its own value": self.known_alone,
            "known further by signs and sums": self.disclosed,
            "counts of one and two among these": self.disclosed_small,
        }
        return [(name, self._list_cells(cells)) for name, cells in found.items()]

    def _list_cells(self, positions: Iterable[int]) -> str:
        return list_names([f"{self.design.name_of(int(k))}: {self.low[k]:g}" for k in positions])


def audit_perturbed(
    release: Protected,
    table: Table | None = None,
    *,
    law: TransitionMatrix | int | None = None,
    intervals: str = "primary",
    bounds: tuple[Real, Real] | None = None,
    workers: int | None = None,
) -> PerturbedAudit:
    """The counts that released values leave possible.

    Args:
      release: A release of perturbed counts.
      table: Its true table, to check that the truth lies in every range.
      law: The law of the noise, or its largest move, where the statement does not give it.
      intervals: Cells followed by programs: `"primary"` ones, which may hold one or two, `"all"`,
        or `"none"`.
      bounds: Smallest and largest public values of each published cell.
      workers: Processes for the programs.
    """
    design, X = release.design, release.design.matrix().tocsc()
    alone = _with_own_sums(ranges_of(release, law), X)
    low, high = alone.low, alone.high
    if bounds is not None:
        low, high = np.maximum(low, bounds[0]), np.minimum(high, bounds[1])
    ranges = pass_bounds(X, Ranges(low, high, alone.inner_low, alone.inner_high), alone.snap)
    is_open = ranges.low < ranges.high
    may_be_small = (ranges.low <= _SMALL) & (ranges.high >= 1)
    followed = is_open & (may_be_small if intervals == "primary" else intervals == "all")
    ranges, programs = narrow(X, ranges, np.flatnonzero(followed), alone.snap, workers=workers)
    truth = None if table is None else true_values(table, design, "published")
    if truth is not None and ((truth < ranges.low) | (truth > ranges.high)).any():
        raise DisagreementError(
            "a true count lies outside the range that the statement leaves: either this is not the "
            "release's table, or its statement is false."
        )
    ends = np.ceil(ranges.low), np.floor(ranges.high)
    return PerturbedAudit(design, release.z, alone, *ends, followed | ~is_open, truth, programs)


def _with_own_sums(alone: CountRanges, X: Any) -> CountRanges:
    """Ranges of sums from those of their inner cells, where these are what is known."""
    endless = np.isinf(alone.inner_high)
    most = np.where(X.T @ endless > 0, np.inf, X.T @ np.where(endless, 0.0, alone.inner_high))
    low = np.maximum(alone.low, X.T @ alone.inner_low)
    return replace(alone, low=low, high=np.minimum(alone.high, most))


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
