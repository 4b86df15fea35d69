"""From cells in a frame to a table: axes, support, and values in their places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Whole
from discreet.design.axis import Axis
from discreet.design.base import Design
from discreet.design.codes import canonical_array, natural_order
from discreet.design.formats.tables import declared_categories
from discreet.design.formula import Margins, Term, parse, unknown_name
from discreet.design.hierarchy import Hierarchy
from discreet.design.sparse import SparseDesign, complete_design
from discreet.design.structured import StructuredDesign
from discreet.design.support import Support, check_support
from discreet.errors import CodeError, DataError, ParameterError, UnknownNameError
from discreet.frames import numbers, to_arrow
from discreet.tables.keys import KeyConvention, check_keys
from discreet.tables.keys import convention as key_convention
from discreet.tables.truth import CellValues, TrueTable, summed

if TYPE_CHECKING:
    import pyarrow as pa

HierarchyLike = Hierarchy | str | Path | Sequence[Hierarchy | str | Path]
HierarchiesLike = Mapping[str, HierarchyLike]
Hierarchies = dict[str, tuple[Hierarchy, ...]]
TOTALS = ("Total", "_T", "(all)", "(grand total)")
"""Codes of the total, the usual one first."""
Declared = bool | Sequence[str]
"""Whether the codes of a frame were declared beforehand: of all variables, or of those named."""


def as_hierarchies(given: HierarchiesLike | None) -> Hierarchies:
    """Hierarchies by variable, read from files where a path is given."""
    found: Hierarchies = {}
    for variable, value in (given or {}).items():
        several = [value] if isinstance(value, (Hierarchy, str, Path)) else value
        trees = [h if isinstance(h, Hierarchy) else Hierarchy.read(h) for h in several]
        if not trees:
            raise ParameterError(f"no hierarchy is given for variable {variable!r}.")
        found[variable] = tuple(trees)
    return found


def frame_hierarchies(frame: object) -> Hierarchies:
    """Code lists that a frame declares: the categories of pandas categoricals and polars enums."""
    return {
        name: (Hierarchy.flat(codes, root=free_total(codes)),)
        for name, codes in declared_categories(frame).items()
    }


def variables_of(
    terms: Iterable[Term], columns: Sequence[str], hierarchies: Hierarchies
) -> list[str]:
    """The variables that the terms speak of, in order of appearance.

    A name is a level of a hierarchy before it is a column: a coarser column that is also a level
    belongs to the variable it groups.
    """
    owner = {
        level: variable
        for variable, trees in hierarchies.items()
        for tree in trees
        for level in tree.level_names[1:]
        if variable in columns
    }
    found: dict[str, None] = {}
    for name in dict.fromkeys(name for term in terms for name in term):
        base = name.split("[", 1)[0] if name.endswith("]") else name
        if name in hierarchies and name in columns:
            found[name] = None
        elif base in owner:
            found[owner[base]] = None
        elif base in columns:
            found[base] = None
        else:
            raise unknown_name(base, [*columns, *owner])
    return list(found)


@dataclass(frozen=True, eq=False)
class CodedCells:
    """Cells from a frame: an axis and leaf positions for each variable, and their values."""

    axes: tuple[Axis, ...]
    leaves: tuple[Whole, ...]
    values: CellValues

    @property
    def crossing(self) -> int:
        """Number of combinations of categories."""
        return math.prod(len(axis) for axis in self.axes)


def code_cells(
    frame: pa.Table,
    variables: Sequence[str],
    hierarchies: Hierarchies,
    values: CellValues,
    declared: frozenset[str] = frozenset(),
) -> CodedCells:
    """Codes of the frame's rows as leaf positions on axes."""
    pairs = [
        code_column(frame.column(v), v, hierarchies.get(v), declared=v in declared)
        for v in variables
    ]
    return CodedCells(tuple(a for a, _ in pairs), tuple(p for _, p in pairs), values)


def code_column(
    column: Any, variable: str, trees: Sequence[Hierarchy] | None, *, declared: bool = False
) -> tuple[Axis, Whole]:
    """The axis of a variable and the leaf position of each row."""
    codes, index = canonical_array(column)
    axis = (
        Axis.from_hierarchies(variable, trees)
        if trees
        else axis_of_codes(variable, codes, declared=declared)
    )
    axis.check_codes(codes)
    position = np.array([axis.leaf_position[c] for c in codes], dtype=np.int64)
    return axis, position[index] if len(codes) else np.empty(0, dtype=np.int64)


def axis_of_codes(variable: str, codes: Sequence[str], *, declared: bool = False) -> Axis:
    """The axis of a variable without a code list, whose records hold these codes."""
    if not codes:
        raise DataError(
            f"variable {variable!r} has no records and no code list, so it has no categories. "
            "Give it a hierarchy or code list."
        )
    return Axis.flat(variable, natural_order(codes), free_total(codes), declared=declared)


def declared_among(variables: Sequence[str], declared: Declared) -> frozenset[str]:
    """The variables whose codes in a frame are said to be declared."""
    if isinstance(declared, bool):
        return frozenset(variables if declared else ())
    named = frozenset([declared] if isinstance(declared, str) else declared)
    for name in named.difference(variables):
        raise UnknownNameError("variable", name, variables)
    return named


def free_total(codes: Iterable[str]) -> str:
    """A code for the total that is not a category."""
    taken = set(codes)
    return next(c for c in TOTALS if c not in taken)


def merge_cells(coded: CodedCells, design: StructuredDesign) -> CellValues:
    """Values in the design's inner order; rows of the same cell are summed."""
    where, n = inner_positions(coded, design), design.n_inner

    def scatter(values: Array) -> Array:
        out = np.zeros(n + 1, dtype=values.dtype)
        np.add.at(out, where, values)
        return out[:n]

    v = coded.values
    optional = [None if a is None else scatter(a) for a in (v.weight, v.weight_squared, v.key)]
    return CellValues(summed(v.count, scatter), *optional)


def inner_positions(coded: CodedCells, design: Design) -> Whole:
    """The inner position of each row, one past the end outside the design.

    Only rows without records may be outside.
    """
    where = design.require_variables("codes").inner_at(_flat(coded))
    outside = np.flatnonzero((where == design.n_inner) & (coded.values.count > 0))
    if len(outside):
        row = int(outside[0])
        cell = {a.name: a.leaves[p[row]] for a, p in zip(coded.axes, coded.leaves, strict=True)}
        raise CodeError(
            f"records fall into cell {cell}, which was declared a structural zero. "
            "Correct the records or the declaration."
        )
    return where


def _flat(coded: CodedCells) -> Whole:
    """Position of each row in the full crossing."""
    if not coded.axes:
        return np.zeros(len(coded.values.count), dtype=np.int64)
    return np.ravel_multi_index(coded.leaves, [len(axis) for axis in coded.axes])


def design_for(
    coded: CodedCells,
    margins: Margins,
    support: Support = "all",
    structural_zeros: Sequence[Mapping[str, Any]] = (),
) -> StructuredDesign:
    """The design for coded cells."""
    check_support(support)
    if support != "all":
        chosen = coded.values.count > 0 if support == "occurring" else slice(None)
        flat = np.unique(_flat(coded)[chosen])
        leaves = np.unravel_index(flat, [len(axis) for axis in coded.axes])
        return SparseDesign(coded.axes, margins, leaves, occurring=True)
    return complete_design(coded.axes, margins, structural_zeros)


def cells_to_table(
    frame: Any,
    margins: Margins,
    *,
    count: str,
    key: str | None,
    weight: str | None,
    hierarchies: HierarchiesLike | None,
    support: Support,
    structural_zeros: Sequence[Mapping[str, Any]],
    convention: str | KeyConvention,
    declared: Declared = False,
) -> TrueTable:
    """A table from a frame of inner cells; see `Table.from_counts`."""
    cells = to_arrow(frame)
    rule = key_convention(convention)
    categories = frame_hierarchies(frame).items()
    complete = {v: trees for v, trees in categories if not cells.column(v).null_count}
    trees = {**complete, **as_hierarchies(hierarchies)}
    values = CellValues(
        numbers(cells, count),
        weight=None if weight is None else numbers(cells, weight).astype(np.float64),
        key=None if key is None else read_keys(numbers(cells, key), rule),
    )
    if values.key is not None:
        check_keys(values.key[values.count > 0], rule)
    names = variables_of(parse(margins), cells.column_names, trees)
    coded = code_cells(cells, names, trees, values, declared_among(names, declared))
    return build_table(coded, margins, rule, support, structural_zeros)


def build_table(
    coded: CodedCells,
    margins: Margins,
    rule: KeyConvention,
    support: Support = "all",
    structural_zeros: Sequence[Mapping[str, Any]] = (),
) -> TrueTable:
    """A table with inner cells from coded cells."""
    design = design_for(coded, margins, support, structural_zeros)
    design.require_dense()
    inner = merge_cells(coded, design).mapped(lambda values: values, rule)
    return TrueTable.from_inner(design, inner, rule)


def read_keys(keys: Array, rule: KeyConvention) -> Whole:
    """Keys of a convention from a column of whole numbers or of fractions."""
    return rule.scale(keys) if keys.dtype.kind == "f" else rule.check(keys)
