"""From coded cells to a table: axes, support, and values in their places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Whole
from discreet.design.axis import Axis
from discreet.design.base import Design
from discreet.design.codes import natural_order
from discreet.design.formats.tables import frame_categories
from discreet.design.formula import Margins, Term, unknown_name
from discreet.design.hierarchy import Hierarchy
from discreet.design.sparse import SparseDesign, complete_design
from discreet.design.structured import StructuredDesign
from discreet.design.support import CombinationMask, Support, check_support
from discreet.errors import CodeError, DataError, ParameterError
from discreet.frames import is_frame
from discreet.tables.keys import KeyConvention
from discreet.tables.truth import CellValues, TrueTable

HierarchyLike = Hierarchy | str | Path | Sequence[Hierarchy | str | Path] | Any  # or a frame
HierarchiesLike = Mapping[str, HierarchyLike]
Hierarchies = dict[str, tuple[Hierarchy, ...]]
TOTALS = ("Total", "_T", "(all)", "(grand total)")
"""Codes of the total, the usual one first."""


def as_hierarchies(given: HierarchiesLike | None) -> Hierarchies:
    """Hierarchies by variable, read from files where a path is given."""
    found: Hierarchies = {}
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError(f"hierarchies are given by variable, {{name: …}}; got {given!r:.60}.")
    for variable, value in (given or {}).items():
        is_one = isinstance(value, (Hierarchy, str, Path)) or is_frame(value)
        several = [value] if is_one else value
        if not isinstance(several, Sequence) or not all(
            isinstance(h, (Hierarchy, str, Path)) or is_frame(h) for h in several
        ):
            raise ParameterError(
                f"variable {variable!r} needs a Hierarchy, the name of a file or a frame, or "
                f"several; got {value!r:.60}."
            )
        trees = [h if isinstance(h, Hierarchy) else Hierarchy.read(h) for h in several]
        if not trees:
            raise ParameterError(f"no hierarchy is given for variable {variable!r}.")
        found[variable] = tuple(trees)
    return found


def frame_hierarchies(frame: object) -> Hierarchies:
    """Code lists that come with a frame: the categories of pandas categoricals and polars enums."""
    return {
        name: (Hierarchy.flat(codes, root=free_total(codes)),)
        for name, codes in frame_categories(frame).items()
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
    def shape(self) -> tuple[int, ...]:
        """Number of categories of each variable."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def crossing(self) -> int:
        """Number of combinations of categories."""
        return math.prod(self.shape)


def axis_of_codes(variable: str, codes: Sequence[str], *, declared: bool = False) -> Axis:
    """The axis of a variable without a code list, whose records hold these codes."""
    if not codes:
        raise DataError(
            f"variable {variable!r} has no records and no code list, so it has no categories. "
            "Give it a hierarchy or code list."
        )
    return Axis.flat(variable, natural_order(codes), free_total(codes), declared=declared)


def free_total(codes: Iterable[str]) -> str:
    """A code for the total that is not a category."""
    taken = set(codes)
    return next(c for c in TOTALS if c not in taken)


def build_table(
    coded: CodedCells,
    margins: Margins,
    rule: KeyConvention,
    support: Support = "all",
    structural_zeros: Sequence[Mapping[str, Any]] = (),
) -> TrueTable:
    """A table with inner cells from coded cells; rows of the same cell are summed."""
    check_support(support)
    if support == "all":
        design: StructuredDesign = complete_design(coded.axes, margins, structural_zeros)
    else:
        chosen = coded.values.count > 0 if support == "occurring" else slice(None)
        leaves = np.unravel_index(np.unique(_flat_places(coded)[chosen]), coded.shape)
        design = SparseDesign(coded.axes, margins, leaves, occurring=True)
    design.require_dense()
    where, n = inner_positions(coded, design), design.n_inner

    def scatter(values: Array) -> Array:
        out = np.zeros(n + 1, dtype=values.dtype)  # rows outside the design fall behind the end
        np.add.at(out, where, values)
        return out[:n]

    return TrueTable.from_inner(design, coded.values.apply_linear(scatter, rule), rule)


def inner_positions(coded: CodedCells, design: Design) -> Whole:
    """The inner position of each row, one past the end outside the design.

    Only rows without records may be outside.
    """
    where = design.require_variables("codes").inner_at(_flat_places(coded))
    _refuse_rows(coded, where == design.n_inner)
    return where


def check_possible(coded: CodedCells, masks: Sequence[CombinationMask]) -> None:
    """Refuse records in structural zeros, where cells are not listed."""
    for mask in masks:
        _refuse_rows(coded, ~mask.at(coded.leaves))


def _refuse_rows(coded: CodedCells, impossible: Mask) -> None:
    outside = np.flatnonzero(impossible & (coded.values.count > 0))
    if len(outside):
        row = int(outside[0])
        cell = {a.name: a.leaves[p[row]] for a, p in zip(coded.axes, coded.leaves, strict=True)}
        raise CodeError(
            f"records fall into cell {cell}, which was declared a structural zero. "
            "Correct the records or the declaration."
        )


def _flat_places(coded: CodedCells) -> Whole:
    """Position of each row in the full crossing."""
    if not coded.axes:
        return np.zeros(len(coded.values.count), dtype=np.int64)
    return np.ravel_multi_index(coded.leaves, coded.shape)
