"""Tables from frames of inner cells, of published cells, and of contributions.

Inner cells and contributions are rows with codes, and go one way: codes to positions on axes, then
`build_table`. Published cells have totals among their codes, and each is looked up by its codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.columns import is_number_kind
from discreet.design.axis import OUTSIDE, Axis
from discreet.design.base import Design
from discreet.design.codes import canonical_array, factorise, natural_order
from discreet.design.formula import Margins, parse
from discreet.design.hierarchy import Hierarchy
from discreet.design.product import ProductDesign
from discreet.design.support import Support
from discreet.errors import DataError, DesignError, UnknownNameError, check_known
from discreet.frames import Frame, numbers, read_frame
from discreet.tables.assembly import (
    TOTALS,
    CodedCells,
    Hierarchies,
    HierarchiesLike,
    as_hierarchies,
    axis_of_codes,
    base_rows,
    build_table,
    check_adds_up,
    frame_hierarchies,
    inner_positions,
    variables_of,
)
from discreet.tables.keys import CONVENTIONS, KeyConvention, check_keys
from discreet.tables.keys import convention as key_convention
from discreet.tables.magnitude import (
    CellContributions,
    Contributions,
    Magnitude,
    named_owners,
    top_contributions,
)
from discreet.tables.truth import CellValues, TrueTable

Declared = bool | Sequence[str]
"""Whether the codes of a frame are said to be the public list: of all variables, or of some."""


@dataclass(frozen=True)
class CountColumns:
    """Columns of a frame of inner cells that are no codes: counts, cell keys, weights."""

    count: str
    key: str | None = None
    weight: str | None = None


def cells_to_table(
    frame: Any,
    margins: Margins,
    columns: CountColumns,
    *,
    hierarchies: HierarchiesLike | None,
    support: Support,
    structural_zeros: Sequence[Mapping[str, Any]],
    convention: str | KeyConvention = "discreet",
    declared: Declared = False,
) -> TrueTable:
    """A table from a frame of inner cells; see `Table.from_counts`."""
    cells, rule = read_frame(frame), key_convention(convention)
    categories = frame_hierarchies(frame).items()
    # A column with missing values has a category that its declaration does not name.
    complete = {v: trees for v, trees in categories if not cells.column(v).null_count}
    values = CellValues(
        numbers(cells, columns.count),
        weight=None if columns.weight is None else numbers(cells, columns.weight).astype(float),
        key=None if columns.key is None else _read_keys(numbers(cells, columns.key), rule),
    )
    if values.key is not None:
        check_keys(values.key[values.count > 0], rule)
    trees = as_hierarchies(hierarchies)
    known = {**complete, **trees}
    base = _inner_rows(cells, values.count, columns, margins, known, declared)
    if not base.all():
        cells, values = cells.filter(base), values.rearrange(lambda each: each[base])
    coded = _code_rows(cells, margins, complete, trees, values, declared)
    return build_table(coded, margins, rule, support, structural_zeros)


def _inner_rows(
    cells: Frame,
    count: Whole,
    columns: CountColumns,
    margins: Margins,
    trees: Hierarchies,
    declared: Declared,
) -> Mask:
    """Which rows are inner cells, not totals of others; columns that no margin names matter too."""
    named = variables_of(parse(margins), cells.column_names, trees)
    others = [
        c
        for c in cells.column_names
        if c not in (columns.count, columns.key, columns.weight, *named)
        and not is_number_kind(cells.column(c).kind)
    ]
    totals = {
        v: Axis.from_hierarchies(v, trees[v]).total_codes for v in (*named, *others) if v in trees
    }
    said = _declared_among(named, declared)
    return base_rows(cells, count, [*named, *others], totals, said)


def _code_rows(
    rows: Frame,
    margins: Margins,
    categories: Hierarchies,
    hierarchies: Hierarchies,
    values: CellValues,
    declared: Declared,
) -> CodedCells:
    """Rows with the leaf positions of their codes on the axes of the margins' variables.

    Hierarchies declare their codes; the categories of a frame only where that is said.
    """
    trees = {**categories, **hierarchies}
    names = variables_of(parse(margins), rows.column_names, trees)
    said, axes, leaves = _declared_among(names, declared), [], []
    for name in names:
        codes, index = canonical_array(rows.column(name))
        axis = (
            Axis.from_hierarchies(name, trees[name], declared=name in hierarchies or name in said)
            if name in trees
            else axis_of_codes(name, codes, declared=name in said)
        )
        axis.check_codes(codes)
        position = np.array([axis.leaf_position[c] for c in codes], dtype=np.int64)
        axes.append(axis)
        leaves.append(position[index] if len(codes) else np.empty(0, dtype=np.int64))
    return CodedCells(tuple(axes), tuple(leaves), values)


def _declared_among(variables: Sequence[str], declared: Declared) -> frozenset[str]:
    """The variables whose codes in a frame are said to be declared."""
    if isinstance(declared, bool):
        return frozenset(variables if declared else ())
    named = frozenset([declared] if isinstance(declared, str) else declared)
    for name in named.difference(variables):
        raise UnknownNameError("variable", name, variables)
    return named


def _read_keys(keys: Array, rule: KeyConvention) -> Whole:
    """Keys of a convention from a column of whole numbers or of fractions."""
    return rule.scale(keys) if keys.dtype.kind == "f" else rule.check(keys)


def published_to_table(
    frame: Any,
    margins: Margins,
    *,
    count: str,
    key: str | None,
    hierarchies: HierarchiesLike | None,
    convention: str | KeyConvention,
    declared: Declared = False,
    adds_up: bool = True,
) -> TrueTable:
    """A table from a frame of published cells; see `Table.from_frame`."""
    cells, rule, trees = read_frame(frame), key_convention(convention), as_hierarchies(hierarchies)
    names = variables_of(parse(margins), cells.column_names, trees)
    said = _declared_among(names, declared)
    axes = [published_axis(cells, v, trees.get(v), declared=v in said) for v in names]
    design = ProductDesign(axes, margins)
    where = published_positions(design, cells)
    values = CellValues(_in_order(design, where, numbers(cells, count), count))
    if key is not None:
        keys = _read_keys(numbers(cells, key), rule)
        values = replace(values, key=_in_order(design, where, keys, key))
    if not adds_up:  # its inner cells would be those of another table
        return TrueTable(design, values, None, rule, adds_up=False)
    check_adds_up(design, values.count)
    if not design.shows_inner_cells:
        return TrueTable(design, values, None, rule)
    places = design.inner_in_published()
    return TrueTable(design, values, values.rearrange(lambda cells: cells[places]), rule)


def published_axis(
    cells: Frame,
    variable: str,
    trees: Sequence[Hierarchy] | None,
    *,
    declared: bool,
    total: str | None = None,
) -> Axis:
    """The axis of a variable whose column holds codes and the total's code."""
    if trees:
        return Axis.from_hierarchies(variable, trees)
    codes, _ = canonical_array(cells.column(variable))
    total = total or next((c for c in TOTALS if c in codes), TOTALS[0])
    leaves = natural_order([c for c in codes if c != total])
    return Axis.flat(variable, leaves, total, declared=declared)


def published_positions(
    design: ProductDesign, cells: Frame, lines: Sequence[int] | None = None
) -> Whole:
    """The published position of every row; an error names its line, where those are given."""
    lookup: dict[tuple[str, ...], int] = {}
    columns = [[codes[i] for i in index] for index, codes in design.published_codes()]
    for k, names in enumerate(zip(*columns, strict=True)):
        lookup.setdefault(names, k)
    shown = []
    for axis in design.axes:
        codes, index = canonical_array(cells.column(axis.name))
        codes = [axis.total if c in axis.total_codes else c for c in codes]
        shown.append([codes[i] for i in index])
    where = np.array([lookup.get(names, -1) for names in zip(*shown, strict=True)], dtype=np.int64)
    if (where < 0).any():
        row = int(np.flatnonzero(where < 0)[0])
        cell = {a.name: shown[j][row] for j, a in enumerate(design.axes)}
        place = f"row {row + 1}" if lines is None else f"line {lines[row]}"
        raise DesignError(f"{place}: cell {cell} is not among the margins asked for.")
    return where


def _in_order(design: ProductDesign, where: Whole, values: Array, name: str) -> Array:
    filled = np.bincount(where, minlength=design.n_published)
    if (filled != 1).any():
        k = int(np.flatnonzero(filled != 1)[0])
        times = "twice or more" if filled[k] else "not at all"
        raise DesignError(f"column {name!r}: cell {design.cell(k) or 'total'} is given {times}.")
    out = np.empty(design.n_published, dtype=values.dtype)
    out[where] = values
    return out


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
    rows = read_frame(frame)
    w = None if weight is None else numbers(rows, weight).astype(np.float64)
    values = CellValues(np.ones(len(rows), dtype=np.int64), weight=w)
    categories, trees = frame_hierarchies(frame), as_hierarchies(hierarchies)
    coded = _code_rows(rows, margins, categories, trees, values, declared)
    table = build_table(coded, margins, CONVENTIONS["discreet"], support, structural_zeros)
    amounts = _amounts(rows, of, w)
    return replace(table, contributions=_contributions(table.design, coded, rows, of, amounts))


def _contributions(
    design: Design, coded: CodedCells, rows: Frame, of: Magnitude, amounts: Real
) -> Contributions:
    owners, who = _owners(rows, of)
    where = inner_positions(coded, design)
    inner = top_contributions(where, who, amounts, design.n_inner, of.largest)
    published = CellContributions.none(design.n_published, of.largest)
    for positions, part in design.member_blocks():
        cell = positions[where]
        cell = np.where(cell < 0, OUTSIDE, cell - part.start)
        found = top_contributions(cell, who, amounts, part.stop - part.start, of.largest)
        published.set_cells(part, found)
    named = _drop_unused_owners(owners, published, inner)
    is_weighted = coded.values.weight is not None
    return Contributions(
        of.value, *named, is_weighted=is_weighted, may_be_negative=of.negative == "absolute"
    )


def _amounts(rows: Frame, of: Magnitude, weight: Real | None) -> Real:
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


def _owners(rows: Frame, of: Magnitude) -> tuple[tuple[str, ...], Whole]:
    """The owners of the rows, and the place of each row's owner among them."""
    check_known("column", of.columns, rows.column_names)
    alone = factorise(rows.column(of.contributor))
    nobody = np.full(len(rows), -1, dtype=np.int32)
    holdings = ([], nobody) if of.holding is None else factorise(rows.column(of.holding))
    if ((alone[1] < 0) & (holdings[1] < 0)).any():
        raise DataError(f"some rows have no {of.contributor!r}; every row needs a contributor.")
    return named_owners(holdings, alone)


def _drop_unused_owners(
    owners: tuple[str, ...], *cells: CellContributions
) -> tuple[CellContributions, CellContributions, tuple[str, ...]]:
    """Contributions that know the owners among the largest only, by new places."""
    used = np.unique(np.concatenate([c.owner.ravel() for c in cells]))
    used = used[used >= 0]
    place = np.full(len(owners) + 1, -1, dtype=np.int64)
    place[used] = np.arange(len(used))
    first, second = (replace(c, owner=place[c.owner]) for c in cells)
    return first, second, tuple(owners[i] for i in used.tolist())
