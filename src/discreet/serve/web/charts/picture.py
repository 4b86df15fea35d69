"""What a chart shows of a sheet: its categories, its series and their values."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.arrays import Real
from discreet.release.cube import CubeAxis
from discreet.release.formats.columns import decimals_of
from discreet.serve.web.numbers import Numbers
from discreet.serve.web.sheet import Combination, Sheet, leaves
from discreet.tables.protected import CellStatus

JOINED = " · "


@dataclass(frozen=True, eq=False)
class Picture:
    """What is drawn.

    Attributes:
      categories: The rows of the table without sums of others.
      series: The columns without sums of others; one without a name where there are none.
      values: Categories × series, not a number where no value is shown.
      title: What the chart shows.
      description: What it says, for those who do not see it.
      numbers: How numbers are written.
      decimals: With how many decimals.
      is_share: Whether values are percentages.
      accent: The colour of the first series.
      n_rows: Variables in rows.
    """

    categories: tuple[str, ...]
    series: tuple[str, ...]
    values: Real
    title: str
    numbers: Numbers
    decimals: int
    description: str = ""
    is_share: bool = False
    accent: str = "#0b5563"
    n_rows: int = 1

    @property
    def largest(self) -> float:
        """The largest value that is shown; zero where there is none."""
        finite = self.values[np.isfinite(self.values)]
        return float(finite.max(initial=0.0))

    def named(self, k: int, s: int, *, between: str = ": ") -> str:
        """A category and a series, where it has a name."""
        return between.join(part for part in (self.categories[k], self.series[s]) if part)

    def hint(self, k: int, s: int) -> str:
        """What a pointer shows over a value."""
        return f"{self.named(k, s)}: {self.written(float(self.values[k, s]))}"

    def written(self, value: float) -> str:
        """A value for readers."""
        if np.isnan(value):
            return "–"
        if self.is_share:
            return self.numbers.in_percent(value, self.decimals)
        return self.numbers.written(value, self.decimals)

    def tick(self, value: float, step: float) -> str:
        """A value on an axis."""
        return replace(self, decimals=0 if step >= 1 else 1 if step >= 0.1 else 2).written(value)

    def limited(self, most_categories: int, most_series: int) -> Picture:
        """The picture without categories and series beyond so many."""
        return replace(
            self,
            categories=self.categories[:most_categories],
            series=self.series[:most_series],
            values=self.values[:most_categories, :most_series],
        )


def picture_of(sheet: Sheet, numbers: Numbers, *, title: str, is_share: bool) -> Picture:
    """The picture of a sheet: what sums up others that are shown is left out."""
    rows = _finest(sheet.rows, sheet.row_axes)
    columns = _finest(sheet.columns, sheet.column_axes)
    is_drawn = sheet.is_shown & (sheet.status != CellStatus.structural_zero)
    shown = np.where(is_drawn, sheet.values.astype(np.float64), np.nan)
    decimals = 1 if is_share else decimals_of(shown)
    return Picture(
        tuple(_label(sheet.rows[k]) for k in rows),
        tuple(_label(sheet.columns[k]) for k in columns),
        shown[np.ix_(rows, columns)],
        title,
        numbers,
        decimals,
        is_share=is_share,
        n_rows=len(sheet.row_axes),
    )


def _finest(rows: Sequence[Combination], axes: Sequence[CubeAxis]) -> list[int]:
    """The rows that sum up no other one."""
    kept = [set(itertools.compress(axis.codes, leaves(axis.entries))) for axis in axes]
    return [
        place
        for place, entries in enumerate(rows)
        if all(e.code in codes for e, codes in zip(entries, kept, strict=True))
    ]


def _label(entries: Combination) -> str:
    return JOINED.join(entry.label for entry in entries)
