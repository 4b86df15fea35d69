"""The cells that a noise method works on, with the truth about them. Confidential."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.axis import Axis
from discreet.design.base import Cell, Design
from discreet.design.support import Embedding
from discreet.errors import DesignError, KeysError
from discreet.tables.protected import WEIGHT
from discreet.tables.truth import CellValues, TrueTable


@dataclass(frozen=True, eq=False)
class NoiseCells:
    """The published cells of a table, or its inner cells, that get noise of their own."""

    table: TrueTable  # the table they belong to
    # Whether the inner cells get the noise and the published ones are summed from them.
    are_inner: bool = False
    # What one step of the noise stands for where weighted counts are published.
    grid: float | None = None
    goes_by_records: bool = False  # whether their noise goes by the number of sampled records

    @property
    def values(self) -> CellValues:
        """The true values of the cells."""
        return self.table.require_inner() if self.are_inner else self.table.published

    @cached_property
    def count(self) -> Whole:
        """What decides the law of the noise: true counts, or steps of weighted counts."""
        if self.table.unit != WEIGHT or self.goes_by_records:
            return self.values.count
        return self.steps

    @cached_property
    def steps(self) -> Whole:
        """Weighted counts in whole steps of the grid."""
        # halves go up, not to even numbers, so that whole shifts stay whole shifts
        return np.floor(self.weight / (self.grid or 1.0) + 0.5).astype(np.int64)

    @property
    def weight(self) -> Real:
        """True weighted counts."""
        if self.values.weight is None:
            raise DesignError(
                "weighted counts were asked for, but this table has no weights. Name the weight "
                "column when tabulating."
            )
        return self.values.weight

    @cached_property
    def representative(self) -> Whole:
        """For each cell the first one with the same inner cells, itself if there is none."""
        if self.are_inner:
            return np.arange(len(self.count))
        return self.table.design.duplicates()

    @cached_property
    def distinct(self) -> Whole:
        """Positions of the possible cells that are their own representatives."""
        first = self.representative == np.arange(len(self.representative))
        return np.flatnonzero(first & ~self.impossible)

    @cached_property
    def impossible(self) -> Mask:
        """Published cells that no inner cell belongs to: structural zeros.

        Structured designs leave such cells out, so only those made from a matrix have any.
        """
        if self.are_inner:
            return np.zeros(len(self.count), dtype=bool)
        return self.table.design.without_inner_cells

    def spread(self, drawn: Array) -> Array:
        """Values of the distinct cells, given to the same cells too; impossible ones get zero."""
        possible = ~self.impossible
        values = np.zeros(len(possible), dtype=drawn.dtype)
        values[possible] = drawn[np.searchsorted(self.distinct, self.representative[possible])]
        return values

    def to_published(self, values: Array) -> Array:
        """Values of the published cells that belong to values of these cells."""
        return self.table.design.aggregate(values) if self.are_inner else values


def on_public_support(table: TrueTable, *, with_inner: bool = False) -> TrueTable:
    """The table on the full crossing when its support was read from the records."""
    return embed_table(table, table.design.public(), with_inner=with_inner)


def embed_table(table: TrueTable, embedding: Embedding[Design], *, with_inner: bool) -> TrueTable:
    """The table on another design, with nothing in the cells that this one adds."""
    if embedding.design is table.design:
        return table
    inner = table.require_inner().rearrange(embedding.to_public_support) if with_inner else None
    given = table.contributions
    if given is not None:
        places = embedding.inner if with_inner else None
        sizes = embedding.design.n_published, embedding.design.n_inner
        given = given.spread(embedding.published, sizes[0], places, sizes[1])
    published = table.published.rearrange(embedding.to_public_cells)
    design = embedding.design
    return replace(table, design=design, published=published, inner=inner, contributions=given)


_EDITION = "\0edition"  # no variable has such a name


def keys_of(cells: NoiseCells) -> Whole:
    """Cell keys, or a clear error when there are none."""
    if cells.values.key is None and cells.are_inner:
        raise KeysError(
            "the inner cells of this table have no keys, and margins='summed' perturbs inner "
            "cells. Give the records keys before tabulating, or choose margins='own'."
        )
    return cells.table.cell_keys if cells.values.key is None else cells.values.key


def keys_with_zeros(cells: NoiseCells) -> Whole:
    """Cell keys in which every empty cell that can have records has a key of its own."""
    keys = keys_of(cells)
    empty = np.flatnonzero((cells.values.count == 0) & ~cells.impossible)
    if not len(empty):
        return keys
    secret, rule = cells.table.secret, cells.table.convention
    if secret is None:
        raise KeysError(
            "this method perturbs empty cells, which have no records to take a key from. Give the "
            "table the secret that made the keys: `table.with_secret(secret)`, or open the records "
            "with secret='keys.secret'."
        )
    keys, named = keys.copy(), zero_definitions(cells, empty)
    if cells.table.data_set.mode.kind == "renewed":
        raise KeysError(
            "this method moves empty cells, which have no records whose keys could be renewed, so "
            "that they would stand out over editions. Use editions='phased' or 'fresh', or a "
            "method that keeps zeros."
        )
    # an empty cell has no records whose new keys would tell the edition
    if cells.table.data_set.mode.is_by_edition:
        named = [{**cell, _EDITION: cells.table.data_set.edition} for cell in named]
    keys[empty] = rule.check(secret.zero_key(named, rule))
    return keys


def zero_definitions(cells: NoiseCells, positions: Whole) -> list[Cell]:
    """Definitions of cells; those with the same inner cells get the same one."""
    design = cells.table.design
    if not design.axes and design.n_published > 1:
        raise KeysError(
            "cells of a design made from a matrix have no codes, so empty ones cannot have keys. "
            "Use a design with variables, or a method that keeps zeros."
        )
    found = definitions(design, positions, inner=cells.are_inner)
    if cells.are_inner or design.product_form is not None:
        return found
    # on a sparse support different codes can mean the same inner cells: the definition that comes
    # first stands for all of them, whatever the order of the cells
    group, least = cells.representative[positions].tolist(), dict[int, Cell]()
    for cell, k in zip(found, group, strict=True):
        if k not in least or sorted(cell.items()) < sorted(least[k].items()):
            least[k] = cell
    return [least[k] for k in group]


def definitions(design: Design, positions: Whole, *, inner: bool) -> list[Cell]:
    """The (variable, code) pairs of cells, a group of categories always under the same code."""
    if not design.axes:
        return [{} for _ in positions]
    coded: Sequence[tuple[Array, Sequence[str]]] = design.published_codes()
    if inner:
        leaves = [axis.leaves for axis in design.axes]
        coded = list(zip(design.inner_codes(), leaves, strict=True))
    columns = []
    for axis, (index, codes) in zip(design.axes, coded, strict=True):
        standard = standard_codes(axis)
        shown = [standard[code] for code in codes]
        columns.append([shown[k] for k in index[positions].tolist()])
    names = [axis.name for axis in design.axes]
    return [
        {name: code for name, code in zip(names, row, strict=True) if code is not None}
        for row in zip(*columns, strict=True)
    ]


def standard_codes(axis: Axis) -> dict[str, str | None]:
    """For every code of a variable the one that stands for its categories; `None` for all of them.

    A single category stands under its own code, several under the first of the codes that mean
    them, whichever levels a table shows.
    """
    leaves = {code: frozenset(found.tolist()) for code, found in axis.node_leaves.items()}
    leaves |= {code: frozenset([k]) for code, k in axis.leaf_position.items()}
    standard: dict[frozenset[int], str | None] = {}
    for code in sorted(leaves):
        standard.setdefault(leaves[code], code)
    standard |= {frozenset([k]): code for code, k in axis.leaf_position.items()}
    standard[frozenset(range(len(axis)))] = None
    return {code: standard[found] for code, found in leaves.items()}
