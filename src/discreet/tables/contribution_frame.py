"""Magnitudes from a frame of contributions, without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.design.axis import OUTSIDE
from discreet.design.base import Design
from discreet.design.codes import factorise
from discreet.design.formula import Margins, parse
from discreet.design.support import Support
from discreet.errors import DataError, UnknownNameError
from discreet.frames import numbers, to_arrow
from discreet.tables.assembly import (
    CodedCells,
    Declared,
    HierarchiesLike,
    as_hierarchies,
    build_table,
    code_cells,
    declared_among,
    frame_hierarchies,
    inner_positions,
    variables_of,
)
from discreet.tables.keys import CONVENTIONS
from discreet.tables.magnitude import (
    CellContributions,
    Contributions,
    Magnitude,
    named_owners,
    top_contributions,
)
from discreet.tables.truth import TrueTable
from discreet.tables.values import CellValues

if TYPE_CHECKING:
    import pyarrow as pa


def contributions_to_table(
    frame: Any,
    margins: Margins,
    of: Magnitude,
    *,
    weight: str | None,
    hierarchies: HierarchiesLike | None,
    support: Support,
    structural_zeros: Sequence[Mapping[str, Any]],
    declared: Declared,
) -> TrueTable:
    """A table of magnitudes; see `Table.from_contributions`."""
    rows = to_arrow(frame)
    trees = {**frame_hierarchies(frame), **as_hierarchies(hierarchies)}
    names = variables_of(parse(margins), rows.column_names, trees)
    w = None if weight is None else numbers(rows, weight).astype(np.float64)
    values = CellValues(np.ones(len(rows), dtype=np.int64), weight=w)
    coded = code_cells(rows, names, trees, values, declared_among(names, declared))
    table = build_table(coded, margins, CONVENTIONS["discreet"], support, structural_zeros)
    amounts = _amounts(rows, of, w)
    return replace(table, contributions=_contributions(table.design, coded, rows, of, amounts))


def _contributions(
    design: Design, coded: CodedCells, rows: pa.Table, of: Magnitude, amounts: Real
) -> Contributions:
    owners, who = _owners(rows, of)
    where = inner_positions(coded, design)
    inner = top_contributions(where, who, amounts, design.n_inner, of.largest)
    published = CellContributions.none(design.n_published, of.largest)
    for positions, part in design.member_blocks():
        cell = positions[where]
        cell = np.where(cell < 0, OUTSIDE, cell - part.start)
        found = top_contributions(cell, who, amounts, part.stop - part.start, of.largest)
        published.put(part, found)
    named = _named(owners, published, inner)
    is_weighted = coded.values.weight is not None
    return Contributions(
        of.value, *named, is_weighted=is_weighted, may_be_negative=of.negative == "absolute"
    )


def _amounts(rows: pa.Table, of: Magnitude, weight: Real | None) -> Real:
    """What each row contributes."""
    given = numbers(rows, of.value).astype(np.float64)
    if not np.isfinite(given).all():
        raise DataError(f"column {of.value!r} has values that are not finite numbers.")
    if of.negative == "refuse" and (given < 0).any():
        raise DataError(
            f"column {of.value!r} has negative values. If they are right, say negative='absolute': "
            "contributors are then ranked and judged by the absolute value of what they contribute "
            "to a cell, while sums keep their signs."
        )
    return given if weight is None else given * weight


def _owners(rows: pa.Table, of: Magnitude) -> tuple[tuple[str, ...], Whole]:
    """The owners of the rows, and the place of each row's owner among them."""
    for name in of.columns:
        if name not in rows.column_names:
            raise UnknownNameError("column", name, rows.column_names)
    alone = factorise(rows.column(of.contributor))
    nobody = np.full(len(rows), -1, dtype=np.int32)
    holdings = ([], nobody) if of.holding is None else factorise(rows.column(of.holding))
    if ((alone[1] < 0) & (holdings[1] < 0)).any():
        raise DataError(f"some rows have no {of.contributor!r}; every row needs a contributor.")
    return named_owners(holdings, alone)


def _named(
    owners: tuple[str, ...], *cells: CellContributions
) -> tuple[CellContributions, CellContributions, tuple[str, ...]]:
    """Contributions that know the owners among the largest only, by new places."""
    used = np.unique(np.concatenate([c.owner.ravel() for c in cells]))
    used = used[used >= 0]
    place = np.full(len(owners) + 1, -1, dtype=np.int64)
    place[used] = np.arange(len(used))
    first, second = (replace(c, owner=place[c.owner]) for c in cells)
    return first, second, tuple(owners[i] for i in used.tolist())
