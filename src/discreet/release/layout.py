"""A cube as rows and columns: the one layout of pages, charts, spreadsheets and PX files."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index, Mask
from discreet.errors import check_known
from discreet.release.cube import ABSENT, Cube, CubeAxis, CubeEntry
from discreet.release.formats.columns import symbols
from discreet.release.formats.write import Labels, Options
from discreet.tables.protected import HIDDEN

Combination = tuple[CubeEntry, ...]
Cell = int | float | str


@dataclass(frozen=True, eq=False)
class TableLayout:
    """Figures by rows and columns.

    Attributes:
      row_axes: The variables in rows, with the entries that are shown.
      column_axes: Those in columns.
      rows: For each row its entries, one for each variable in rows.
      columns: For each column its entries.
      values: The figures, rows × columns.
      status: A `CellStatus` or `ABSENT` for each figure.
    """

    row_axes: tuple[CubeAxis, ...]
    column_axes: tuple[CubeAxis, ...]
    rows: tuple[Combination, ...]
    columns: tuple[Combination, ...]
    values: Array
    status: NDArray[np.int8]

    @classmethod
    def of(
        cls,
        cube: Cube,
        n_rows: int,
        kept: Sequence[Sequence[int]] | None = None,
        rows: Sequence[tuple[int, ...]] | None = None,
    ) -> TableLayout:
        """The layout of a cube.

        Args:
          cube: Its variables are those in rows, then those in columns.
          n_rows: Number of variables in rows.
          kept: For each variable the places of the entries that are shown; all if absent.
          rows: For each row the places of its entries; all crossings in turn if absent.
        """
        places = kept or [range(len(axis)) for axis in cube.axes]
        sides = slice(None, n_rows), slice(n_rows, None)
        row_axes, column_axes = (cube.axes[side] for side in sides)
        columns = list(itertools.product(*places[n_rows:]))
        rows = list(itertools.product(*places[:n_rows])) if rows is None else rows
        at = _flat_places(rows, row_axes)[:, None], _flat_places(columns, column_axes)[None, :]
        shape = [math.prod(map(len, axes)) for axes in (row_axes, column_axes)]
        shown = [
            replace(axis, entries=tuple(axis.entries[k] for k in kept))
            for axis, kept in zip(cube.axes, places, strict=True)
        ]
        return cls(
            tuple(shown[:n_rows]),
            tuple(shown[n_rows:]),
            _entries(rows, row_axes),
            _entries(columns, column_axes),
            cube.values.reshape(shape)[at],
            cube.status.reshape(shape)[at],
        )

    @classmethod
    def of_file(cls, cube: Cube, options: Options, most: int | None = None) -> TableLayout:
        """The whole cube with the variables of the options, or its last one, in columns.

        Where the last one has more than `most` entries, that with the fewest is in columns.
        """
        columns = options.columns or cube.names[1:][-1:]
        if most is not None and not options.columns and columns and len(cube.axes[-1]) > most:
            columns = (min(cube.axes, key=len).name,)
        check_known("variable", columns, cube.names)
        rows = tuple(name for name in cube.names if name not in columns)
        return cls.of(cube.reorder((*rows, *columns)), len(rows))

    @property
    def is_shown(self) -> Mask:
        """Which cells show a figure."""
        return np.asarray((self.status != ABSENT) & ~np.isin(self.status, HIDDEN))

    def stub_names(self, labels: Labels | None) -> list[str]:
        """The heads of the columns that hold row headings."""
        return [axis.label if labels in ("labels", "both") else axis.name for axis in self.row_axes]

    def headings(self, options: Options, unit: str) -> list[tuple[str, ...]]:
        """For each column its headings; the name of the figures where no variable is in columns."""
        if not self.column_axes:
            return [(options.measure or unit,)]
        return _crossed_texts(self.column_axes, options.labels)

    def lines(self, labels: Labels | None) -> Iterator[tuple[tuple[str, ...], list[Cell]]]:
        """For each row its headings and its figures; symbols where there are none."""
        signs, values = symbols(self).tolist(), self.values.tolist()
        for k, heads in enumerate(_crossed_texts(self.row_axes, labels)):
            yield heads, [s or v for s, v in zip(signs[k], values[k], strict=True)]


def _crossed_texts(axes: Sequence[CubeAxis], labels: Labels | None) -> list[tuple[str, ...]]:
    def text(entry: CubeEntry) -> str:
        if labels == "both" and entry.shows_code:
            return f"{entry.code} {entry.label}"
        return entry.label if labels in ("labels", "both") else entry.code

    return list(itertools.product(*([text(entry) for entry in axis.entries] for axis in axes)))


def _flat_places(rows: Sequence[tuple[int, ...]], axes: Sequence[CubeAxis]) -> Index:
    if not axes:  # a side without variables is one row or column, that of the total
        return np.zeros(1, dtype=np.intp)
    found = np.ravel_multi_index(np.array(rows).T.reshape(len(axes), -1), [len(a) for a in axes])
    return np.asarray(found, dtype=np.intp)


def _entries(rows: Sequence[tuple[int, ...]], axes: Sequence[CubeAxis]) -> tuple[Combination, ...]:
    return tuple(tuple(axis.entries[k] for axis, k in zip(axes, row, strict=True)) for row in rows)
