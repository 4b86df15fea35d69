"""Cells from an engine, coded on axes that all groupings share, and the contributions to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Whole, Whole32
from discreet.columns import Column, join_columns
from discreet.design.axis import OUTSIDE, Axis
from discreet.design.codes import MISSING, canonical_array, factorise
from discreet.design.formula import Block
from discreet.design.hierarchy import Hierarchy
from discreet.design.structured import StructuredDesign
from discreet.errors import CodeError, suggest
from discreet.frames import Frame
from discreet.progress import report
from discreet.records.code_list import WORDS, Outside
from discreet.records.engine import (
    CONTRIBUTOR,
    HOLDING,
    Engine,
    ValueGroups,
    as_array,
    check_values,
    values_of,
    with_null,
)
from discreet.tables.assembly import CodedCells, axis_of_codes
from discreet.tables.magnitude import CellContributions, Contributions, Magnitude, named_owners
from discreet.tables.truth import TrueTable

if TYPE_CHECKING:
    from discreet.records.records import UnitRecords


@dataclass(eq=False)
class Reader:
    """Asks an engine for cells and codes them.

    The axis of a variable is made from the first grouping that has it and used for all others.
    """

    engine: Engine  # the engine
    data: UnitRecords  # the records
    axes: dict[str, Axis] = field(default_factory=dict)  # the axes of the variables read so far
    # For each of them the values of a grouping, and the leaf position of each.
    found: dict[str, tuple[Any, Whole]] = field(default_factory=dict)

    def read(self, variables: Sequence[str]) -> CodedCells:
        """The cells of one grouping."""
        cells = self.engine.group(self.data, variables)
        leaves = tuple(self._leaves(v, cells.column(place)) for place, v in enumerate(variables))
        for place, v in enumerate(variables):
            self.found[v] = (cells.column(place), leaves[place])
        axes = tuple(self.axes[v] for v in variables)
        return CodedCells(axes, leaves, values_of(cells, len(variables)))

    def groups_of(self, variable: str, group: Array) -> tuple[Column, Whole]:
        """The distinct values of a variable as they were read, and the group of each one's leaf."""
        column, leaves = self.found[variable]
        codes, values = with_null(column)
        first = np.full(len(values), -1, dtype=np.int64)
        first[codes] = leaves
        return values, np.asarray(group, dtype=np.int64)[first]

    def _leaves(self, variable: str, column: Any) -> Whole:
        """The leaf position of each row."""
        rule = self.data.outside.get(variable)
        if rule is not None:
            return leaf_positions(self._axis(variable, ()), *factorise(column), rule)
        codes, index = canonical_array(column)
        axis = self._axis(variable, codes)
        axis.check_codes(codes)
        return np.array([axis.leaf_position[code] for code in codes], dtype=np.int64)[index]

    def _axis(self, variable: str, codes: Sequence[str]) -> Axis:
        """The axis of a variable, made when it is first asked for."""
        if variable not in self.axes:
            trees = self.data.hierarchies.get(variable)
            if trees:
                shown = with_missing(trees) if MISSING in codes else trees
                said = shown == trees and variable not in self.data.undeclared
                axis = Axis.from_hierarchies(variable, shown, declared=said)
            else:
                axis = axis_of_codes(variable, codes)
            self.axes[variable] = axis
        return self.axes[variable]


def with_missing(trees: Sequence[Hierarchy]) -> tuple[Hierarchy, ...]:
    """Hierarchies with a category for missing values, right under the total.

    A hierarchy that covers some of the categories only goes on to cover those.
    """
    found = []
    for tree in trees:
        if len(tree.leaves) == len(trees[0].leaves) and MISSING not in tree:
            parents = {**tree.parents, MISSING: tree.root}
            tree = Hierarchy(tree.root, parents, tree.labels, tree.level_names, tree.total_aliases)
        found.append(tree)
    return tuple(found)


def leaf_positions(axis: Axis, codes: Sequence[str], index: Whole32, rule: Outside) -> Whole:
    """The leaf position of each row, whose code is `codes[index]`, or missing where that is -1.

    Records that are dropped are not among them any more; what the rule refuses is a `CodeError`.
    """
    leaf = axis.leaf_position
    other, missing = (None if to in WORDS else to for to in (rule.other, rule.missing))
    unlisted = next((code for code in codes if code not in leaf), None)
    if unlisted is not None and other is None:
        raise CodeError(
            f"code {unlisted!r} of variable {axis.name!r} is not in its code list. "
            f"{suggest(unlisted, list(axis.leaves))} Correct the records, add the code, or say in "
            'the list where such records go: other = "drop", or one of its codes.'
        )
    if missing is None and (index < 0).any():
        raise CodeError(
            f"variable {axis.name!r} has records without a value, which its code list refuses. "
            'Say in the list where they go: missing = "drop", or one of its codes.'
        )
    found = [leaf[code] if code in leaf else leaf[other or ""] for code in codes]
    at_the_end = -1 if missing is None else leaf[missing]  # where index -1 points
    return np.array([*found, at_the_end], dtype=np.int64)[index]


@dataclass(frozen=True, eq=False)
class _Ranked:
    """The answer for one margin: where each contribution belongs, and what is said of it."""

    place: Whole
    rank: Whole
    answer: Frame


def contributions_of(reader: Reader, table: TrueTable, of: Magnitude) -> Contributions:
    """The contributions to the cells of a table that the reader has read."""
    check_values(of, reader.engine.value_facts(reader.data, of))
    design = table.design.require_variables("contributions to its cells")
    places = None if table.inner is None else design.inner_in_published()
    lacks_inner = places is not None and bool((places == OUTSIDE).any())
    asked = [*design.blocks, *([design.inner_block] if lacks_inner else [])]
    found = []
    for k, block in enumerate(asked):
        report("contributions", k / len(asked))
        found.append(_rank_contributions(reader, design, of, block, k))
    report("contributions", 1.0)
    owners, codes = _owners([one.answer for one in found])
    published = _place_contributions(
        found[: len(design.blocks)], codes, design.n_published, of.largest
    )
    inner = None if places is None else published.take(places)
    if lacks_inner:
        inner = _place_contributions(found[-1:], codes[-1:], design.n_inner, of.largest)
    return Contributions(
        of.value,
        published,
        inner,
        owners,
        is_weighted=reader.data.weight is not None,
        may_be_negative=of.negative == "absolute",
    )


def _rank_contributions(
    reader: Reader, design: StructuredDesign, of: Magnitude, block: Block, k: int
) -> _Ranked:
    """The largest contributions to the cells of one margin."""
    pairs = list(zip(design.axes, block.levels, strict=True))
    groups = [
        ValueGroups(axis.name, *reader.groups_of(axis.name, level.group))
        for axis, level in pairs
        if level is not None
    ]
    answer = reader.engine.contributions(reader.data, of, groups)
    flat = np.zeros(len(answer), dtype=np.int64)
    sizes = [len(level) for _, level in pairs if level is not None]
    for i, size in enumerate(sizes):
        flat = flat * size + as_array(answer.column(f"g{i}")).astype(np.int64)
    rank = as_array(answer.column("rank")).astype(np.int64)
    is_published = k < len(design.blocks)  # the inner block comes last
    place = design.published_at(k, flat) if is_published else design.inner_at(flat)
    return _Ranked(place, rank, answer)


def _owners(answers: Sequence[Frame]) -> tuple[tuple[str, ...], list[Whole]]:
    """The identifiers of all owners, and for each answer the place of each row's owner."""
    coded = [
        factorise(join_columns([answer.column(name) for answer in answers]))
        for name in (HOLDING, CONTRIBUTOR)
    ]
    owners, codes = named_owners(*coded)
    return owners, np.split(codes, np.cumsum([len(answer) for answer in answers])[:-1])


def _place_contributions(
    found: Sequence[_Ranked], codes: Sequence[Whole], n: int, largest: int
) -> CellContributions:
    """Contributions in their places."""
    cells = CellContributions.none(n, largest)
    for one, owner in zip(found, codes, strict=False):
        columns: dict[str, Any] = {c: as_array(one.answer.column(c)) for c in ("x", "n", "s", "a")}
        cells.sum[one.place] = columns["s"]
        cells.absolute[one.place] = columns["a"]
        cells.count[one.place] = columns["n"]
        cells.largest[one.place, one.rank] = np.abs(columns["x"].astype(np.float64))
        cells.owner[one.place, one.rank] = owner
    return cells
