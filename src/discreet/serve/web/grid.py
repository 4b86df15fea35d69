"""The table part of a page: one layer of a cube, folded and sorted, with its numbers written."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Real
from discreet.release.cube import Cube, CubeAxis, CubeEntry, parents
from discreet.release.formats.columns import Symbols, decimals_of, symbols
from discreet.release.layout import Combination, TableLayout
from discreet.serve.query import View
from discreet.serve.refusals import Refusal
from discreet.serve.web.texts import Numbers

ONLY_COLUMN = "value"
"""The name of the one column of a table that has no variable in columns."""
IMPOSSIBLE, HIDDEN, UNDEFINED = "–", ":c", ".."
EXPLAINED = {IMPOSSIBLE: "impossible", HIDDEN: "hidden", UNDEFINED: "undefined"}
"""What stands in place of a number, with the name of its explanation among the texts."""
_ON_PAGES = Symbols(UNDEFINED, absent=IMPOSSIBLE, impossible=IMPOSSIBLE, hidden=HIDDEN)
_SEPARATOR = "|"


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

    entry: CubeEntry
    span: int
    column: str
    fold: Fold | None = None


@dataclass(frozen=True)
class Row:
    """A row: its header's entries, how far it is indented, and the texts of its cells."""

    entries: tuple[CubeEntry, ...]
    indent: int
    is_lead: bool
    cells: tuple[str, ...]
    fold: Fold | None = None


@dataclass(frozen=True)
class RowGroup:
    """Rows of one code of the first row variable; with one row variable, all rows.

    Attributes:
      title: That code's entry, where totals are off and no row of its own stands for it.
      rows: The rows.
    """

    title: CubeEntry | None
    rows: tuple[Row, ...]


def layout_of(cube: Cube, n_rows: int, n_columns: int, view: View) -> TableLayout:
    """The rows and columns that a view shows of a cube.

    Args:
      cube: Its variables are those in rows, then those in columns, then the layers.
      n_rows: Number of variables in rows.
      n_columns: Number of variables in columns.
      view: The layer, what is folded, whether totals are shown, and the order of the rows.
    """
    for axis in cube.axes[n_rows + n_columns :]:
        cube = cube.at(axis.name, layer_of(axis, view))
    kept, rows = [_visible(axis, view) for axis in cube.axes], None
    if view.sort:
        key = _sort_key(cube, cube.axes[n_rows:], view.sort)
        rows = _sort_rows(cube.axes[:n_rows], kept, key)
    return TableLayout.of(cube, n_rows, kept, rows)


def grid_parts(layout: TableLayout, view: View, numbers: Numbers) -> dict[str, Any]:
    """What the template of a table reads: lines of headers, rows in groups, and used symbols."""
    texts = cell_texts(layout, numbers, is_share=view.show != "count")
    folds = [_folds(axis, view) for axis in layout.row_axes]
    rows = [_row(entries, line, folds) for entries, line in zip(layout.rows, texts, strict=True)]
    is_grouped = len(layout.row_axes) > 1
    used = {text for line in texts for text in line if text in EXPLAINED}
    heads = _heads(layout, view)
    return {
        "layout": layout,
        "heads": heads,
        "blocks": print_blocks(layout, heads, texts),
        "groups": _row_groups(layout.rows, rows) if is_grouped else [RowGroup(None, tuple(rows))],
        "is_grouped": is_grouped,
        "has_folds": any(row.fold for row in rows),
        "symbols": {symbol: name for symbol, name in EXPLAINED.items() if symbol in used},
    }


@dataclass(frozen=True)
class PrintBlock:
    """Columns of a table that have room beside each other on paper: from one place to another."""

    heads: list[list[Head]]
    first: int
    last: int


_SHEET, _LANDSCAPE = 500.0, 760.0  # points between the margins of A4, upright and turned
_SIGN, _SMALL_SIGN = 5.6, 4.7  # points of a character in tables of 9 and of 7.5 points
_PADDING, _MOST_HEADING = 9.0, 36  # points of a column; characters of a row's heading in one line


def print_blocks(
    layout: TableLayout, heads: list[list[Head]], texts: Sequence[Sequence[str]]
) -> list[PrintBlock]:
    """A table in parts that have room on paper, each with all rows; none where it needs no parts.

    Columns under one header stay together where they have room.
    """
    words = [max(map(len, h.entry.label.split()), default=0) for h in heads[-1]] if heads else [0]
    columns = zip(*texts, strict=True) if texts else itertools.repeat(())
    signs = [max(3, w, *map(len, c)) for w, c in zip(words, columns, strict=False)]
    longest = max((sum(len(e.label) + 2 for e in row) for row in layout.rows), default=0)
    stub = min(longest, _MOST_HEADING) + 6
    if (stub + sum(signs)) * _SIGN + _PADDING * (len(signs) + 1) <= _SHEET:
        return []
    room = _LANDSCAPE - stub * _SMALL_SIGN - _PADDING
    ends = list(itertools.accumulate(n * _SMALL_SIGN + _PADDING for n in signs))
    upper = heads[-2] if len(heads) > 1 else []
    borders = list(itertools.accumulate(head.span for head in upper))
    found, first = [], 0
    while first < len(signs):
        start = ends[first - 1] if first else 0.0
        last = max(first + 1, bisect_right(ends, start + room))
        border = max(borders[: bisect_right(borders, last)][-1:], default=0)
        last = border if border > first and last < len(signs) else last
        found.append(PrintBlock(_cut_heads(heads, first, last), first, last))
        first = last
    return found


def _cut_heads(heads: list[list[Head]], first: int, last: int) -> list[list[Head]]:
    """The headers over the columns from one place to another."""
    lines: list[list[Head]] = []
    for line in heads:
        ends = list(itertools.accumulate(head.span for head in line))
        lines.append([])
        # from the first that reaches into the part: a wide table has many parts
        for k in range(bisect_right(ends, first), len(line)):
            head, start = line[k], ends[k] - line[k].span
            if start >= last:
                break
            span = min(ends[k], last) - max(start, first)
            lines[-1].append(head if span == head.span else replace(head, span=span))
    return lines


def layer_of(axis: CubeAxis, view: View) -> str:
    """The code of a layer that is shown: the chosen one, or the total, or the last period."""
    chosen = view.layer.get(axis.name)
    if chosen is not None and chosen in axis.codes:
        return chosen
    return axis.codes[-1 if axis.total is None else axis.total]


def leaves(entries: Sequence[CubeEntry]) -> list[bool]:
    """Which entries have no other one under them among these; the total only where it is alone."""
    above = set(parents(entries))
    return [k not in above and (not e.is_total or len(entries) == 1) for k, e in enumerate(entries)]


def cell_texts(layout: TableLayout, numbers: Numbers, *, is_share: bool) -> list[list[str]]:
    """The text of every cell: its number, or a symbol where there is none."""
    values = np.where(layout.is_shown, layout.values, 0)
    decimals = 1 if is_share else decimals_of(values)
    signs, listed = symbols(layout, _ON_PAGES).tolist(), values.tolist()
    # Most figures of a wide table are small numbers that come again and again.
    texts = {value: numbers.format(value, decimals) for value in {v for row in listed for v in row}}
    return [
        [sign or texts[value] for value, sign in zip(*pair, strict=True)]
        for pair in zip(listed, signs, strict=True)
    ]


def _row(entries: Combination, texts: Sequence[str], folds: Sequence[dict[str, Fold]]) -> Row:
    """A row is named by its last variables that are not totals, and by the lead otherwise."""
    lead = entries[:1]
    rest = [(k, e) for k, e in enumerate(entries) if k > 0 and not e.is_total]
    indent = sum(e.depth for e in (*lead, *(e for _, e in rest)))
    fold = None
    if entries:
        k, entry = rest[-1] if rest else (0, entries[0])
        fold = folds[k].get(entry.code)
    return Row(tuple(e for _, e in rest) or lead, indent, not rest, tuple(texts), fold)


def _row_groups(combinations: Sequence[Combination], rows: Sequence[Row]) -> list[RowGroup]:
    made = []
    pairs = zip(combinations, rows, strict=True)
    for lead, members in itertools.groupby(pairs, key=lambda pair: pair[0][0]):
        own = tuple(row for _, row in members)
        made.append(RowGroup(None if own[0].is_lead else lead, own))
    return made


def _heads(layout: TableLayout, view: View) -> list[list[Head]]:
    """A line of headers for each column variable, each over the columns of those below it."""
    sizes = [len(axis) for axis in layout.column_axes]
    lines: list[list[Head]] = []
    for k, axis in enumerate(layout.column_axes):
        span, folds = math.prod(sizes[k + 1 :]), _folds(axis, view)
        entries = axis.entries * math.prod(sizes[:k])
        is_last = k == len(sizes) - 1
        codes = ([entry.code for entry in entries] for entries in layout.columns)
        names = map(_SEPARATOR.join, codes) if is_last else itertools.repeat("")
        pairs = zip(entries, names, strict=False)
        lines.append([Head(e, span, name, folds.get(e.code)) for e, name in pairs])
    return lines


def _folds(axis: CubeAxis, view: View) -> dict[str, Fold]:
    """The entries of a variable whose parts are shown, or are folded away."""
    folded = set(view.folded.get(axis.name, ()))
    above = {axis.entries[k].code for k in parents(axis.entries) if k is not None}
    return {
        e.code: Fold(axis.name, e.code, e.code not in folded)
        for e in axis.entries
        if e.code in above or (e.code in folded and not e.is_total)
    }


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
    values = np.where(cube.is_shown, cube.values.astype(np.float64), np.nan)
    for code, axis in reversed(list(zip(codes, columns, strict=True))):
        values = values[..., axis.place(code)]
    return -values if sort.startswith("-") else values


def _sort_rows(
    axes: Sequence[CubeAxis], kept: Sequence[list[int]], key: Real
) -> list[tuple[int, ...]]:
    """Rows by the first variable at the total of the others, then within each of its entries.

    Periods have no total; the last of them stands for it.
    """
    if not axes:
        return [()]
    first, others = axes[0], axes[1:]
    totals = [len(axis) - 1 if axis.total is None else axis.total for axis in others]
    at: tuple[Any, ...] = (slice(None), *totals)
    by = key[at]
    places = _sort_siblings([first.entries[k] for k in kept[0]], kept[0], by)
    return [(k, *rest) for k in places for rest in _sort_rows(others, kept[1:], key[k])]


def _sort_siblings(entries: Sequence[CubeEntry], places: Sequence[int], by: Real) -> list[int]:
    """The places in a new order in which each entry still stands under the one it belongs to."""
    under: dict[int | None, list[int]] = {}
    for k, parent in enumerate(parents(entries)):
        under.setdefault(parent, []).append(k)

    def rank(k: int) -> tuple[bool, bool, float]:
        value = float(by[places[k]])
        is_missing = math.isnan(value)
        return not entries[k].is_total, is_missing, 0.0 if is_missing else value

    def under_one(parent: int | None) -> list[int]:
        found = []
        for k in sorted(under.get(parent, ()), key=rank):
            found += [places[k], *under_one(k)]
        return found

    return under_one(None)
