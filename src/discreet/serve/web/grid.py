"""A sheet as a page shows it: headers, rows in groups, and texts in cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from discreet.release.cube import ABSENT, CubeAxis, Entry, parents
from discreet.release.formats.columns import decimals_of
from discreet.serve.query import View
from discreet.serve.web.numbers import Numbers
from discreet.serve.web.sheet import Combination, Sheet, column_name
from discreet.tables.protected import CellStatus

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
class Group:
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
    groups: tuple[Group, ...]
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


def laid_out(sheet: Sheet, view: View, numbers: Numbers) -> Grid:
    """The sheet with its numbers written."""
    texts = cell_texts(sheet, numbers, is_share=view.show != "count")
    folds = [_folds(axis, view) for axis in sheet.row_axes]
    made = [_row(row, line, folds) for row, line in zip(sheet.rows, texts, strict=True)]
    is_grouped = len(sheet.row_axes) > 1
    used = {text for line in texts for text in line if text in SYMBOLS}
    return Grid(
        _heads(sheet, view),
        tuple(any(e.is_sum or e.is_total for e in entries) for entries in sheet.columns),
        _groups(sheet.rows, made) if is_grouped else (Group(None, tuple(made)),),
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


def _groups(combinations: Sequence[Combination], rows: Sequence[Row]) -> tuple[Group, ...]:
    made = []
    pairs = zip(combinations, rows, strict=True)
    for lead, members in itertools.groupby(pairs, key=lambda pair: pair[0][0]):
        own = tuple(row for _, row in members)
        made.append(Group(None if own[0].is_lead else lead, own))
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
