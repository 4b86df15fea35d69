"""Keys of cells without records, and the definitions they are made from.

The sum of no record keys says nothing about a cell, so an empty cell takes a keyed hash of its
definition: its sorted (variable, code) pairs, totals left out. Where record keys are drawn anew for
each edition, the edition is part of it: a value that stays while others change would betray an
empty cell. Two names of the same cell (a parent with one child, the total of a variable with one
category) are one definition. Cells that only declared structural zeros make the same share the
first of the definitions they have in the table at hand; a table that shows another of them may give
it another key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.axis import Axis
from discreet.design.base import Cell, Design
from discreet.errors import KeysError
from discreet.protect.cells import Cells
from discreet.tables.values import Whole

_EDITION = "\0edition"  # no variable has such a name


def keys_of(cells: Cells) -> Whole:
    """Cell keys, or a clear error when there are none."""
    if cells.values.key is None and cells.are_inner:
        raise KeysError(
            "the inner cells of this table have no keys, and margins='summed' perturbs inner "
            "cells. Give the records keys before tabulating, or choose margins='own'."
        )
    return cells.table.cell_keys if cells.values.key is None else cells.values.key


def keys_with_zeros(cells: Cells) -> Whole:
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
    if cells.table.data_set.keys == "redrawn":
        named = [{**cell, _EDITION: cells.table.data_set.edition} for cell in named]
    keys[empty] = rule.check(secret.zero_key(named, rule))
    return keys


def zero_definitions(cells: Cells, positions: NDArray[np.int64]) -> list[Cell]:
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
    return _least_of_equal(found, cells.representative[positions])


def definitions(design: Design, positions: NDArray[np.int64], *, inner: bool) -> list[Cell]:
    """The (variable, code) pairs of cells, a group of categories always under the same code."""
    if not design.axes:
        return [{} for _ in positions]
    columns = []
    for axis, (index, codes) in zip(design.axes, _coded(design, inner), strict=True):
        standard = standard_codes(axis)
        shown = [standard[code] for code in codes]
        columns.append([shown[k] for k in index[positions].tolist()])
    names = [axis.name for axis in design.axes]
    return [
        {name: code for name, code in zip(names, row, strict=True) if code is not None}
        for row in zip(*columns, strict=True)
    ]


def _coded(design: Design, inner: bool) -> Sequence[tuple[NDArray[Any], Sequence[str]]]:
    """For each axis the index of every cell's code, and the codes."""
    if not inner:
        return design.published_codes()
    leaves = [axis.leaves for axis in design.axes]
    return list(zip(design.inner_codes(), leaves, strict=True))


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


def _least_of_equal(found: Sequence[Cell], group: NDArray[np.int64]) -> list[Cell]:
    """In each group the definition that comes first, whatever the order of the cells."""
    least: dict[int, Cell] = {}
    for cell, k in zip(found, group.tolist(), strict=True):
        if k not in least or sorted(cell.items()) < sorted(least[k].items()):
            least[k] = cell
    return [least[k] for k in group.tolist()]
