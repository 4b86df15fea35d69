"""A release laid out in rows and columns for a page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.release import CellStatus, Release
from discreet.design.show import CONFIDENTIAL
from discreet.release.outline import Entry, outline
from discreet.serve.request import Asked, TableRequest

Combination = tuple[Entry, ...]
IMPOSSIBLE = "–"
HIDDEN = CONFIDENTIAL
MEANINGS = {IMPOSSIBLE: "cannot occur", HIDDEN: "not published"}


@dataclass(frozen=True)
class Head:
    """A column header and the number of columns it stands over."""

    entry: Entry
    span: int


@dataclass(frozen=True)
class Row:
    """A row: its header's entries, how far it is indented, and the texts of its cells."""

    entries: tuple[Entry, ...]
    indent: int
    is_lead: bool
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """Rows in groups, one for each code of the first row variable, under column headers.

    With one row variable every row leads and stands in the same group.

    Attributes:
      heads: Lines of column headers.
      sums: For each column of figures whether it sums up others.
      groups: The rows.
      is_grouped: Whether there is more than one row variable.
    """

    heads: tuple[tuple[Head, ...], ...]
    sums: tuple[bool, ...]
    groups: tuple[tuple[Row, ...], ...]
    is_grouped: bool

    @property
    def symbols(self) -> dict[str, str]:
        """The symbols that stand in place of numbers, with their meaning."""
        shown = {text for group in self.groups for row in group for text in row.cells}
        return {symbol: meaning for symbol, meaning in MEANINGS.items() if symbol in shown}


def laid_out(release: Release, request: TableRequest) -> Grid:
    """The release as the request lays it out."""
    rows, columns = _combinations(request.rows), _combinations(request.columns)
    texts = _texts(release, request, rows, columns)
    made = [_row(entries, line) for entries, line in zip(rows, texts, strict=True)]
    is_grouped = len(request.rows) > 1
    groups = _groups(made) if is_grouped else (tuple(made),)
    sums = tuple(any(e.is_sum for e in entries) for entries in columns)
    return Grid(_heads(request.columns), sums, groups, is_grouped)


def entries_of(asked: Asked) -> list[Entry]:
    """The codes of a variable in the detail that was asked for."""
    return outline(asked.variable.axis, asked.detail.levels)


def number(value: Any) -> str:
    """A number for readers; a symbol where there is none."""
    if isinstance(value, (float, np.floating)):
        return HIDDEN if math.isnan(value) else f"{value:,.2f}"
    return f"{value:,}".replace("-", "\N{MINUS SIGN}")


def _combinations(asked: Sequence[Asked]) -> list[Combination]:
    return list(itertools.product(*(entries_of(a) for a in asked)))


def _row(entries: Combination, texts: Sequence[str]) -> Row:
    """A row is named by its last variables that are not totals, and by the lead otherwise."""
    lead, rest = entries[:1], [e for e in entries[1:] if not e.is_total]
    lead_depth = lead[0].depth if lead else 0
    indent = lead_depth + sum(e.depth for e in rest)
    return Row(tuple(rest) or lead, indent, not rest, tuple(texts))


def _groups(rows: Sequence[Row]) -> tuple[tuple[Row, ...], ...]:
    starts = [k for k, row in enumerate(rows) if row.is_lead]
    return tuple(tuple(rows[a:b]) for a, b in itertools.pairwise([*starts, len(rows)]))


def _heads(columns: Sequence[Asked]) -> tuple[tuple[Head, ...], ...]:
    """A line of headers for each column variable, each over the columns of those below it."""
    lists = [entries_of(a) for a in columns]
    sizes = [len(entries) for entries in lists]
    return tuple(
        tuple(Head(e, math.prod(sizes[k + 1 :])) for e in entries * math.prod(sizes[:k]))
        for k, entries in enumerate(lists)
    )


def _texts(
    release: Release,
    request: TableRequest,
    rows: Sequence[Combination],
    columns: Sequence[Combination],
) -> list[list[str]]:
    names = [a.variable.name for a in (*request.rows, *request.columns)]
    places, positions = _positions(release)
    shown = _shown(release)

    def text(combination: Combination) -> str:
        code = dict(zip(names, (e.code for e in combination), strict=True))
        where = tuple(place[code[name]] for name, place in places.items())
        position = int(positions[where])
        return shown[position] if position >= 0 else IMPOSSIBLE

    return [[text(row + column) for column in columns] for row in rows]


def _positions(release: Release) -> tuple[dict[str, dict[str, int]], NDArray[np.int64]]:
    """For each variable the place of its codes, and published positions by places (-1: none)."""
    coded = release.design.published_codes()
    positions = np.full([len(codes) for _, codes in coded], -1, dtype=np.int64)
    positions[tuple(index for index, _ in coded)] = np.arange(release.design.n_published)
    pairs = zip(release.design.axes, coded, strict=True)
    return {a.name: {c: k for k, c in enumerate(codes)} for a, (_, codes) in pairs}, positions


def _shown(release: Release) -> list[str]:
    texts = [number(value) for value in release.z.tolist()]
    if release.status is None:
        return texts
    symbols = dict.fromkeys((CellStatus.published, CellStatus.decimal), "")
    symbols[CellStatus.structural_zero] = IMPOSSIBLE
    return [
        symbols.get(CellStatus(s), HIDDEN) or text
        for s, text in zip(release.status.tolist(), texts, strict=True)
    ]
