"""A cube as rows and columns, as it stands on a page or in a spreadsheet."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from discreet.errors import UnknownNameError
from discreet.release.cube import Cube, CubeAxis, Entry
from discreet.release.formats.columns import plain_values, symbols
from discreet.release.formats.write import Labels, Options

Cell = int | float | str


@dataclass(frozen=True)
class Crosstab:
    """Rows of figures under rows of headings.

    Attributes:
      stub: The variables in rows.
      heading: The variables in columns.
      cube: The cube with its variables in this order.
      labels: Whether codes, labels or both are shown.
      measure: The name of the figures, which heads a table without variables in columns.
    """

    stub: tuple[CubeAxis, ...]
    heading: tuple[CubeAxis, ...]
    cube: Cube
    labels: Labels
    measure: str

    @classmethod
    def of(cls, cube: Cube, options: Options) -> Crosstab:
        """A cube with the variables of the options, or its last one, in columns."""
        columns = options.columns or cube.names[1:][-1:]
        for name in columns:
            if name not in cube.names:
                raise UnknownNameError("variable", name, cube.names)
        rows = tuple(name for name in cube.names if name not in columns)
        laid = cube.arranged((*rows, *columns))
        axes = laid.axes
        n = len(rows)
        return cls(axes[:n], axes[n:], laid, options.labels or "codes", options.measure_of(cube))

    @property
    def stub_names(self) -> list[str]:
        """The heads of the columns that hold row headings."""
        return [axis.name if self.labels == "codes" else axis.label for axis in self.stub]

    @property
    def columns(self) -> list[tuple[str, ...]]:
        """For each column of figures its headings, one for each variable in columns."""
        return self._crossed(self.heading) if self.heading else [(self.measure,)]

    @property
    def column_names(self) -> list[str]:
        """The same as one text for each column."""
        return [" | ".join(headings) for headings in self.columns]

    @property
    def rows(self) -> Iterator[tuple[tuple[str, ...], list[Cell]]]:
        """For each row its headings and its figures; symbols where there are none."""
        width = math.prod(len(axis) for axis in self.heading)
        figures = self.cells()
        for k, heads in enumerate(self._crossed(self.stub)):
            yield heads, figures[k * width : (k + 1) * width]

    def cells(self) -> list[Cell]:
        """Figures or symbols, row by row."""
        shown = symbols(self.cube).reshape(-1).tolist()
        figures = plain_values(self.cube)
        return [s if v is None else v for v, s in zip(figures, shown, strict=True)]

    def _crossed(self, axes: Sequence[CubeAxis]) -> list[tuple[str, ...]]:
        shown = [[heading_text(entry, self.labels) for entry in axis.entries] for axis in axes]
        return list(itertools.product(*shown))


def heading_text(entry: Entry, labels: Labels) -> str:
    """A category as a heading."""
    if labels == "codes":
        return entry.code
    return f"{entry.code} {entry.label}" if labels == "both" and entry.shows_code else entry.label
