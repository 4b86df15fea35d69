"""A cube as the rows and columns that a visitor looks at: one layer, folded and sorted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index, Mask, Real
from discreet.release.cube import Cube, CubeAxis, Entry, parents
from discreet.serve.query import View
from discreet.serve.refusals import Refusal

Combination = tuple[Entry, ...]
ONLY_COLUMN = "value"
"""The name of the one column of a table that has no variable in columns."""
_SEPARATOR = "|"


@dataclass(frozen=True, eq=False)
class Sheet:
    """Values by rows and columns.

    Attributes:
      row_axes: The variables in rows, with the entries that are shown.
      column_axes: Those in columns.
      rows: For each row its entries, one for each variable in rows.
      columns: For each column its entries.
      values: The values, rows × columns.
      status: A `CellStatus` or `ABSENT` for each value.
      is_shown: Which cells show a value.
    """

    row_axes: tuple[CubeAxis, ...]
    column_axes: tuple[CubeAxis, ...]
    rows: tuple[Combination, ...]
    columns: tuple[Combination, ...]
    values: Array
    status: NDArray[np.int8]
    is_shown: Mask


def sheet_of(cube: Cube, n_rows: int, n_columns: int, view: View) -> Sheet:
    """The sheet that a view shows of a cube.

    Args:
      cube: Its variables are those in rows, then those in columns, then the layers.
      n_rows: Number of variables in rows.
      n_columns: Number of variables in columns.
      view: The layer, what is folded, whether totals are shown, and the order of the rows.
    """
    flat = _at_layers(cube, cube.axes[n_rows + n_columns :], view)
    kept = [_visible(axis, view) for axis in flat.axes]
    row_axes, column_axes = flat.axes[:n_rows], flat.axes[n_rows:]
    columns = list(itertools.product(*kept[n_rows:]))
    rows = list(itertools.product(*kept[:n_rows]))
    if view.sort:
        rows = _sorted_rows(row_axes, kept, _sort_key(flat, column_axes, view.sort))
    places = _flat(rows, row_axes)[:, None], _flat(columns, column_axes)[None, :]
    shape = (math.prod(map(len, row_axes)), math.prod(map(len, column_axes)))
    return Sheet(
        tuple(_only(axis, k) for axis, k in zip(row_axes, kept, strict=False)),
        tuple(_only(axis, k) for axis, k in zip(column_axes, kept[n_rows:], strict=True)),
        _entries(rows, row_axes),
        _entries(columns, column_axes),
        flat.values.reshape(shape)[places],
        flat.status.reshape(shape)[places],
        flat.shown.reshape(shape)[places],
    )


def layer_of(axis: CubeAxis, view: View) -> str:
    """The code of a layer that is shown: the chosen one, or the total."""
    chosen = view.layer.get(axis.name)
    if chosen is not None and chosen in axis.codes:
        return chosen
    return axis.entries[axis.total or 0].code


def column_name(entries: Sequence[Entry]) -> str:
    """The name by which rows are sorted by a column."""
    return _SEPARATOR.join(entry.code for entry in entries) or ONLY_COLUMN


def leaves(entries: Sequence[Entry]) -> list[bool]:
    """Which entries have no other one under them among these; the total only where it is alone."""
    above = set(parents(entries))
    return [k not in above and (not e.is_total or len(entries) == 1) for k, e in enumerate(entries)]


def _at_layers(cube: Cube, layers: Sequence[CubeAxis], view: View) -> Cube:
    for axis in layers:
        cube = cube.at(axis.name, layer_of(axis, view))
    return cube


def _visible(axis: CubeAxis, view: View) -> list[int]:
    """The places that are neither under a folded code nor, where they are off, totals."""
    folded = set(view.folded.get(axis.name, ()))
    kept: list[int] = []
    hidden_below: int | None = None
    for place, entry in enumerate(axis.entries):
        if hidden_below is not None and entry.depth > hidden_below:
            continue
        hidden_below = entry.depth if entry.code in folded and not entry.is_total else None
        if view.totals or not entry.is_total or len(axis) == 1:
            kept.append(place)
    return kept


def _sort_key(cube: Cube, columns: Sequence[CubeAxis], sort: str) -> Real:
    """What rows are sorted by, an array over the row variables; small first."""
    name = sort.removeprefix("-")
    codes = name.split(_SEPARATOR) if columns else []
    is_known = len(codes) == len(columns) and (columns or name == ONLY_COLUMN)
    if not is_known or any(c not in a.codes for c, a in zip(codes, columns, strict=True)):
        message = f"Rows cannot be sorted by {name!r}: the table has no such column."
        raise Refusal("unknown_column", message, "Choose one of the columns of the table.")
    values = np.where(cube.shown, cube.values.astype(np.float64), np.nan)
    for code, axis in reversed(list(zip(codes, columns, strict=True))):
        values = values[..., axis.place(code)]
    return -values if sort.startswith("-") else values


def _sorted_rows(
    axes: Sequence[CubeAxis], kept: Sequence[list[int]], key: Real
) -> list[tuple[int, ...]]:
    """Rows by the first variable at the total of the others, then within each of its entries."""
    if not axes:
        return [()]
    first, others = axes[0], axes[1:]
    totals = [axis.total for axis in others]
    places = list(kept[0])
    if None not in totals:
        by = key[(slice(None), *totals)]
        places = _siblings_sorted([first.entries[k] for k in places], places, by)
    return [(k, *rest) for k in places for rest in _sorted_rows(others, kept[1:], key[k])]


def _siblings_sorted(entries: Sequence[Entry], places: Sequence[int], by: Real) -> list[int]:
    """The places in a new order in which each entry still stands under the one it belongs to."""
    under: dict[int | None, list[int]] = {}
    for k, parent in enumerate(parents(entries)):
        under.setdefault(parent, []).append(k)

    def rank(k: int) -> tuple[bool, bool, float]:
        value = float(by[places[k]])
        is_missing = math.isnan(value)
        return not entries[k].is_total, is_missing, 0.0 if is_missing else value

    def flattened(parent: int | None) -> list[int]:
        found = []
        for k in sorted(under.get(parent, ()), key=rank):
            found += [places[k], *flattened(k)]
        return found

    return flattened(None)


def _flat(rows: Sequence[tuple[int, ...]], axes: Sequence[CubeAxis]) -> Index:
    if not axes:
        return np.zeros(1, dtype=np.intp)
    found = np.ravel_multi_index(np.array(rows).T.reshape(len(axes), -1), [len(a) for a in axes])
    return np.asarray(found, dtype=np.intp)


def _entries(rows: Sequence[tuple[int, ...]], axes: Sequence[CubeAxis]) -> tuple[Combination, ...]:
    return tuple(tuple(axis.entries[k] for axis, k in zip(axes, row, strict=True)) for row in rows)


def _only(axis: CubeAxis, places: Sequence[int]) -> CubeAxis:
    return replace(axis, entries=tuple(axis.entries[k] for k in places))
