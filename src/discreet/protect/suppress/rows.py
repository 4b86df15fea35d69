"""The rows on which columns of published cells are compared.

Every inner cell is a row. Rows of inner cells that everybody knows to be empty carry nothing. Where
inner cells are many times as many as published ones, one row for each published cell is enough: its
*representative*, the inner cell with the most frequent category of every variable that the
published cell is summed over. Fewer rows make more cells follow from others, never fewer, so a
pattern that is safe on some rows is safe on all of them; and columns of representatives stay
sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.design.axis import OUTSIDE, Axis, Level
from discreet.design.structured import StructuredDesign
from discreet.protect.suppress.pattern import Pattern

if TYPE_CHECKING:
    from scipy.sparse import csc_array

_MANY = 4  # inner cells for each published one from which representatives stand for them


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Columns of the published cells on chosen rows.

    Attributes:
      columns: Rows × published cells.
      inner: The inner cell of each row; the number of inner cells where the row is a combination
        that the design does not list.
    """

    columns: csc_array
    inner: Whole

    def without(self, known: Mask) -> ChosenRows:
        """Only the rows that are not known."""
        from scipy.sparse import csc_array

        rows = np.flatnonzero(~known)
        return ChosenRows(csc_array(self.columns.tocsr()[rows]), self.inner[rows])


def chosen_rows(pattern: Pattern, *, zeros_are_public: bool, every_row: bool = False) -> ChosenRows:
    """The columns of the published cells on the rows that tell them apart.

    Args:
      pattern: The pattern.
      zeros_are_public: Whether every empty published cell is shown as empty; its inner cells are
        then known to be empty as well, if no value is negative.
      every_row: Whether all inner cells are rows, however many they are.
    """
    design = pattern.design
    empty = (pattern.z == 0) & (zeros_are_public and bool((pattern.z >= 0).all()))
    is_large = design.n_inner > _MANY * design.n_published and not every_row
    if is_large and design.over_variables is not None and pattern.known is None:
        return _representatives(pattern, design.over_variables, empty)
    return _all_rows(pattern, empty)


def _all_rows(pattern: Pattern, empty: Mask) -> ChosenRows:
    from scipy.sparse import csc_array

    design = pattern.design
    X = csc_array(design.matrix().astype(np.int64))
    known = design.adjoint(empty.astype(np.int64)) > 0
    if pattern.known is not None:
        known = known | pattern.known
    return ChosenRows(X, np.arange(design.n_inner)).without(known)


def _representatives(pattern: Pattern, design: StructuredDesign, empty: Mask) -> ChosenRows:
    """One row for each published cell; another inner cell where that is empty or somebody's own.

    What somebody alone in an inner cell knows is of no use to him when other rows tell as much: a
    row that is a combination of others is no combination of published cells. So lone inner cells
    are left out where there is a choice.
    """
    leaves = [_frequent(pattern, design, a) for a in range(len(design.axes))]
    codes = _corner_codes(design, leaves)
    if pattern.y is not None:
        unfit = _columns(design, codes, empty)[1]
        if pattern.lone is not None:
            unfit |= np.append(pattern.lone, False)[_inner_of(design, codes)]
        cells = np.flatnonzero(unfit & ~empty)
        others = _best_inner(pattern, cells, zeros_are_public=bool(empty.any()))
        for code, inner in zip(codes, design.leaf_positions(others), strict=True):
            code[cells] = inner
    distinct = list(np.unique(np.column_stack(codes), axis=0).T)
    columns, known = _columns(design, distinct, empty)
    return ChosenRows(columns, _inner_of(design, distinct)).without(known)


def _frequent(pattern: Pattern, design: StructuredDesign, a: int) -> Real:
    """How many are in each leaf of one variable; the first is preferred where nothing is known."""
    n = len(design.axes[a])
    if pattern.y is None:
        return np.arange(n, 0, -1, dtype=np.float64)
    found = np.bincount(design.inner_codes()[a], np.abs(pattern.y), n)
    return np.asarray(found, dtype=np.float64)


def _corner_codes(design: StructuredDesign, leaves: list[Real]) -> list[Whole]:
    """For each variable the leaf that stands for each published cell."""
    parts: list[list[Whole]] = [[] for _ in design.axes]
    for k, block in enumerate(design.blocks):
        groups = np.unravel_index(design.block_cells(k), block.shape)
        for a, axis in enumerate(design.axes):
            stand_in = _stand_ins(axis, block.levels[a], leaves[a])
            parts[a].append(stand_in[groups[a]])
    return [np.concatenate(part) for part in parts]


def _stand_ins(axis: Axis, level: Level | None, size: Real) -> Whole:
    """The most frequent leaf of each group of a level."""
    group = np.zeros(len(axis), dtype=np.int64) if level is None else level.group
    order = np.lexsort((-np.arange(len(axis)), size))
    stand_in = np.zeros(1 if level is None else len(level), dtype=np.int64)
    inside = order[group[order] != OUTSIDE]
    stand_in[group[inside]] = inside
    return stand_in


def _best_inner(pattern: Pattern, cells: Index, *, zeros_are_public: bool) -> Index:
    """For each of some published cells its largest inner cell in which nobody is alone, if any."""
    from scipy.sparse import csc_array

    value = np.abs(np.asarray(pattern.y)).astype(np.float64)
    if pattern.lone is not None:
        value = np.where(pattern.lone, 0.25 if zeros_are_public else -1.0, value)
    X = csc_array(pattern.design.matrix())[:, cells]
    column = np.repeat(np.arange(len(cells)), np.diff(X.indptr))
    order = np.lexsort((value[X.indices], column))
    last = np.cumsum(np.diff(X.indptr)) - 1
    return np.asarray(X.indices[order[last]], dtype=np.intp)


def _columns(design: StructuredDesign, codes: list[Array], empty: Mask) -> tuple[csc_array, Mask]:
    """The columns of the published cells on rows given by their leaves, and which rows are empty.

    A row is known to be empty when it lies in an empty published cell. A design that was read from
    records does not list those.
    """
    from scipy.sparse import csc_array

    known = np.zeros(len(codes[0]), dtype=bool)
    rows, cells = [], []
    for k in range(len(design.blocks)):
        flat, inside = (np.broadcast_to(v, len(known)) for v in design.placed(k, codes))
        listed = np.append(design.block_cells(k), -1)
        place = np.searchsorted(listed[:-1], flat)
        present, cell = inside & (listed[place] == flat), design.offsets[k] + place
        known |= inside & ~present
        rows.append(np.flatnonzero(present))
        cells.append(cell[present])
        known[rows[-1]] |= empty[cells[-1]]
    where = (np.concatenate(rows), np.concatenate(cells))
    shape = (len(known), design.n_published)
    return csc_array((np.ones(len(where[0]), np.int64), where), shape=shape), known


def _inner_of(design: StructuredDesign, codes: list[Array]) -> Whole:
    """The inner cell of each combination of leaves."""
    return design.inner_at(np.ravel_multi_index(codes, design.shape))
