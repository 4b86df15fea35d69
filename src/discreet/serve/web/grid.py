"""The table part of a page: one layer of a cube, folded and sorted, with its numbers written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from discreet.arrays import Array, Index, Mask, Real
from discreet.release.cube import ABSENT, Cube, CubeAxis, Entry, parents
from discreet.release.formats.columns import decimals_of
from discreet.serve.query import View
from discreet.serve.refusals import Refusal
from discreet.serve.web.texts import Numbers
from discreet.tables.protected import CellStatus

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


IMPOSSIBLE, HIDDEN, UNDEFINED = "–", ":c", ".."
SYMBOLS = {IMPOSSIBLE: "impossible", HIDDEN: "hidden", UNDEFINED: "undefined"}
"""What stands in place of a number, with the name of its explanation among the texts."""


@dataclass(frozen=True)
class Fold:
    """A code whose parts can be shown or hidden."""

    variable: str
    code: str
    is_open: bool


@dataclass(frozen=True)
class Head:
    """A column header: its entry, how many columns it stands over, and the column's name.

    Only headers of the last line name a column; others have an empty name.
    """

    entry: Entry
    span: int
    column: str
    fold: Fold | None = None


@dataclass(frozen=True)
class Row:
    """A row: its header's entries, how far it is indented, and the texts of its cells."""

    entries: tuple[Entry, ...]
    indent: int
    is_lead: bool
    cells: tuple[str, ...]
    fold: Fold | None = None

    @property
    def html(self) -> Markup:
        """The texts as cells of a page; numbers and symbols have nothing to escape."""
        return Markup(f"<td>{'</td><td>'.join(self.cells)}</td>")


@dataclass(frozen=True)
class RowGroup:
    """Rows of one code of the first row variable.

    Attributes:
      title: That code's entry, where totals are off and no row of its own stands for it.
      rows: The rows.
    """

    title: Entry | None
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Grid:
    """Rows in groups, one for each code of the first row variable, under column headers.

    With one row variable every row leads and stands in the same group.

    Attributes:
      heads: Lines of column headers.
      sums: For each column of figures whether it sums up others.
      groups: The rows.
      is_grouped: Whether there is more than one row variable.
      symbols: The symbols that stand in place of numbers, with the names of their explanations.
    """

    heads: tuple[tuple[Head, ...], ...]
    sums: tuple[bool, ...]
    groups: tuple[RowGroup, ...]
    is_grouped: bool
    symbols: dict[str, str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(len(group.rows) for group in self.groups)

    @property
    def has_folds(self) -> bool:
        """Whether a row can be folded or unfolded."""
        return any(row.fold for group in self.groups for row in group.rows)


def lay_out(sheet: Sheet, view: View, numbers: Numbers) -> Grid:
    """The sheet with its numbers written."""
    texts = cell_texts(sheet, numbers, is_share=view.show != "count")
    folds = [_folds(axis, view) for axis in sheet.row_axes]
    made = [_row(row, line, folds) for row, line in zip(sheet.rows, texts, strict=True)]
    is_grouped = len(sheet.row_axes) > 1
    used = {text for line in texts for text in line if text in SYMBOLS}
    return Grid(
        _heads(sheet, view),
        tuple(any(e.is_sum or e.is_total for e in entries) for entries in sheet.columns),
        _row_groups(sheet.rows, made) if is_grouped else (RowGroup(None, tuple(made)),),
        is_grouped,
        {symbol: name for symbol, name in SYMBOLS.items() if symbol in used},
    )


def cell_texts(sheet: Sheet, numbers: Numbers, *, is_share: bool) -> list[list[str]]:
    """The text of every cell: its number, or a symbol where there is none."""
    values = np.where(sheet.is_shown, sheet.values, 0)
    decimals = 1 if is_share else decimals_of(values)
    signs = _symbols(sheet)
    return [
        [sign or numbers.written(value, decimals) for value, sign in zip(*pair, strict=True)]
        for pair in zip(values.tolist(), signs, strict=True)
    ]


def _symbols(sheet: Sheet) -> list[list[str]]:
    found = np.full(sheet.status.shape, "", dtype=object)
    found[~sheet.is_shown] = HIDDEN
    found[(sheet.status == CellStatus.structural_zero) | (sheet.status == ABSENT)] = IMPOSSIBLE
    if np.issubdtype(sheet.values.dtype, np.floating):
        found[(found == "") & np.isnan(sheet.values)] = UNDEFINED
    texts: list[list[str]] = found.tolist()
    return texts


def _row(entries: Combination, texts: Sequence[str], folds: Sequence[dict[str, Fold]]) -> Row:
    """A row is named by its last variables that are not totals, and by the lead otherwise."""
    lead = entries[:1]
    rest = [(k, e) for k, e in enumerate(entries) if k > 0 and not e.is_total]
    lead_depth = lead[0].depth if lead else 0
    indent = lead_depth + sum(e.depth for _, e in rest)
    fold = None
    if entries:
        k, entry = rest[-1] if rest else (0, entries[0])
        fold = folds[k].get(entry.code)
    return Row(tuple(e for _, e in rest) or lead, indent, not rest, tuple(texts), fold)


def _folds(axis: CubeAxis, view: View) -> dict[str, Fold]:
    """The entries of a variable whose parts are shown, or are folded away."""
    folded = set(view.folded.get(axis.name, ()))
    above = {axis.entries[k].code for k in parents(axis.entries) if k is not None}
    return {
        e.code: Fold(axis.name, e.code, e.code not in folded)
        for e in axis.entries
        if e.code in above or (e.code in folded and not e.is_total)
    }


def _row_groups(combinations: Sequence[Combination], rows: Sequence[Row]) -> tuple[RowGroup, ...]:
    made = []
    pairs = zip(combinations, rows, strict=True)
    for lead, members in itertools.groupby(pairs, key=lambda pair: pair[0][0]):
        own = tuple(row for _, row in members)
        made.append(RowGroup(None if own[0].is_lead else lead, own))
    return tuple(made)


def _heads(sheet: Sheet, view: View) -> tuple[tuple[Head, ...], ...]:
    """A line of headers for each column variable, each over the columns of those below it."""
    sizes = [len(axis) for axis in sheet.column_axes]
    lines = []
    for k, axis in enumerate(sheet.column_axes):
        span, folds = math.prod(sizes[k + 1 :]), _folds(axis, view)
        is_last = k == len(sizes) - 1
        lines.append(
            tuple(
                Head(
                    e,
                    span,
                    column_name(sheet.columns[n * span]) if is_last else "",
                    folds.get(e.code),
                )
                for n, e in enumerate(axis.entries * math.prod(sizes[:k]))
            )
        )
    return tuple(lines)
