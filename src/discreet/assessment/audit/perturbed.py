"""Audit of perturbed counts: what their law, signs and sums leave of each true count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from discreet.arrays import Array, Index, Mask, Real
from discreet.assessment.audit.equations import DisagreementError
from discreet.assessment.audit.narrowing import Ranges, narrow, pass_bounds
from discreet.assessment.audit.ranges import CountRanges, ranges_of
from discreet.assessment.audit.subject import MARKING, list_names
from discreet.assessment.cells import true_values
from discreet.design.base import Design
from discreet.facade.table import Table
from discreet.noise.matrix import TransitionMatrix
from discreet.tables.protected import Protected
from discreet.tables.show import frame_of, to_pandas

if TYPE_CHECKING:
    import pandas as pd

_SMALL = 2  # counts of one and two are what perturbation hides first


@dataclass(frozen=True, eq=False, repr=False)
class PerturbedAudit:
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
        codes = self.design.cell(position) if self.design.axes else None
        if codes is None:
            return f"cell {position}"
        return ", ".join(f"{name}={code}" for name, code in codes.items()) or "the total"

    def to_arrow(self) -> pa.Table:
        """A row for each published cell: its value, and the counts possible alone and with all."""
        columns: dict[str, Any] = {"released": self.z}
        ends = {"alone_low": self.alone.low, "alone_high": self.alone.high}
        for name, end in {**ends, "low": self.low, "high": self.high}.items():
            columns[name] = np.ma.array(end, mask=~np.isfinite(end))
        if self.truth is not None:
            columns["value"] = self.truth
        return frame_of(self.design, columns)

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame."""
        return to_pandas(self.to_arrow())

    @property
    def text(self) -> str:
        """The findings as lines of text."""
        lines = [MARKING, self._counts(), *(f"{name}: {said}" for name, said in self._findings())]
        return "\n".join(lines)

    def to_html(self) -> str:
        """The findings as a piece of HTML."""
        from discreet.assessment.report.page import templates  # start-up time: jinja2

        parts = {"marking": MARKING, "counts": self._counts(), "findings": self._findings()}
        page = templates().get_template("audit.html")
        return page.render(**parts, title="Audit of perturbed counts", explained=[])

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.to_html()

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
        return list_names([f"{self.name_of(int(k))}: {self.low[k]:g}" for k in positions])


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
