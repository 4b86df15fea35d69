"""Published and inner cells as sums that are tied to their parts.

Only inner cells that somebody could doubt count: others are known to be empty. Cells that hold the
same of them are one sum. Every sum of several inner cells is the sum of its parts along one line of
the table, or of its inner cells where no line gives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, eye_array, hstack, vstack

from discreet.arrays import Array, Index, Mask, Whole
from discreet.design.axis import OUTSIDE
from discreet.design.structured import StructuredDesign
from discreet.rules.counts import lines
from discreet.solve.linear.boxes import Boxes
from discreet.solve.linear.changes import Change, Tied
from discreet.solve.linear.unknowns import distinct_columns
from discreet.suppress.pattern import Pattern

NONE = -1
"""Stands for the sum of a published cell all of whose inner cells are known."""
_UNMOVED = 1e-9  # of the largest move of a change: what products of matrices leave of cells unmoved
# Up to so many inner cells for each published one all are rows: boxes, the cheapest proofs, move
# single inner cells. Beyond that the programs would have many more columns than sums.
_MANY = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class TableSums(Tied):
    """The sums of a pattern, with an equation of each and its parts.

    Attributes:
      of_cell: The sum of each published cell, or `NONE`.
      of_row: The sum that is each inner cell in doubt.
      inner: Positions of the inner cells in doubt.
      of_difference: The sum that is each sensitive difference.
      lines: Sums × equations that follow from these: the sums of every line of the table.
    """

    of_cell: Whole
    of_row: Whole
    inner: Whole
    of_difference: Whole
    lines: Any

    def changes_of(self, pattern: Pattern, changes: csc_array) -> Iterator[Change]:
        """Changes of inner cells, a column each, as moves of the sums.

        Those are left out that move an inner cell which is no sum here.
        """
        outside = np.ones(changes.shape[0], dtype=bool)
        outside[self.inner] = False
        cells = np.flatnonzero(self.of_cell != NONE)
        published = csc_array(pattern.design.matrix().tocsc().T @ changes)
        both = vstack([published.tocsr()[cells], changes.tocsr()[self.inner]], format="csc")
        places = np.concatenate([self.of_cell[cells], self.of_row])
        differences = csc_array(pattern.difference_signs().T @ published)
        moved = np.zeros(len(self))
        for k in np.flatnonzero(abs(changes).T @ outside.astype(np.float64) == 0).tolist():
            part = slice(*both.indptr[k : k + 2])
            apart = slice(*differences.indptr[k : k + 2])
            moved[:] = 0.0
            moved[places[both.indices[part]]] = both.data[part]
            moved[self.of_difference[differences.indices[apart]]] = differences.data[apart]
            found = np.flatnonzero(np.abs(moved) > _UNMOVED * np.abs(moved).max(initial=0.0))
            yield Change(found, moved[found])


def table_sums(pattern: Pattern, *, zeros_are_public: bool, every_row: bool = False) -> TableSums:
    """The sums of a pattern with known inner values; the arguments are those of `chosen_rows`."""
    design = pattern.design
    every_row = every_row or design.n_inner <= _MANY * design.n_published
    found = chosen_rows(pattern, zeros_are_public=zeros_are_public, every_row=every_row)
    # Proofs change inner cells, so rows that are none of the design's own are of no use to them.
    found = found.without(found.inner == design.n_inner)
    number = _number_sums(found.columns)
    of_cell, of_row = number[: len(pattern.z)], number[len(pattern.z) :]
    down, up = _room(pattern, found, of_cell, of_row)
    pairs, best = _shortest_lines(pattern, of_cell, np.diff(found.columns.indptr), len(down))
    sums = TableSums(
        equations=_equations(found, of_cell, of_row, pairs, best),
        down=down,
        up=up,
        of_cell=of_cell,
        of_row=of_row,
        inner=found.inner,
        of_difference=np.empty(0, np.int64),
        lines=_all_lines(pairs, len(down)),
    )
    if pattern.differences:
        sums = _with_differences(sums, pattern)
    return replace(sums, boxes=_boxes(pattern, found, sums))


def _room(pattern: Pattern, found: ChosenRows, of_cell: Whole, of_row: Whole) -> tuple[Any, Any]:
    """How far each sum can go down and up: not below zero where no value is, and within bounds."""
    y = np.asarray(pattern.y)
    down = np.full(max(of_cell.max(initial=NONE), of_row.max(initial=NONE)) + 1, np.inf)
    up, held = down.copy(), of_cell != NONE
    if not pattern.is_signed:
        down[of_row] = y[found.inner]
        down[of_cell[held]] = (found.columns.T @ y[found.inner].astype(np.float64))[held]
    if pattern.bounds is not None:
        low, high = pattern.bounds
        np.minimum.at(down, of_cell[held], (pattern.z - low)[held])
        np.minimum.at(up, of_cell[held], (high - pattern.z)[held])
    return down, up


def _boxes(pattern: Pattern, found: ChosenRows, sums: TableSums) -> Boxes | None:
    """The boxes of the inner cells in doubt; none where there are no variables, or too many."""
    design = pattern.design.over_variables
    if design is None or not Boxes.fits(design.shape):
        return None
    n, m = len(sums) - len(sums.of_difference), len(found.inner)
    # Rows are members of their own sums anyway; of the others one published cell stands for all.
    one_cell = np.full(n, NONE)
    one_cell[sums.of_cell[sums.of_cell != NONE]] = np.flatnonzero(sums.of_cell != NONE)
    one_cell[sums.of_row] = NONE
    totals = np.flatnonzero(one_cell != NONE)
    inside = found.columns[:, one_cell[totals]].tocoo()
    apart = (found.columns @ pattern.difference_signs()).tocoo()
    rows = np.concatenate([inside.row, np.arange(m), apart.row])
    columns = np.concatenate([totals[inside.col], sums.of_row, n + apart.col])
    times = np.concatenate([inside.data, np.ones(m), apart.data]).astype(np.float64)
    members = csr_array((times, (rows, columns)), shape=(m, len(sums)))
    codes = np.column_stack(design.leaf_positions(found.inner)).astype(np.int64)
    of_block = np.append(sums.of_cell, NONE)[design.members(found.inner)]
    crossed = np.array([[level is not None for level in b.levels] for b in design.blocks])
    return Boxes(codes, design.shape, members, sums.of_row, of_block, crossed)


def _with_differences(sums: TableSums, pattern: Pattern) -> TableSums:
    """Sensitive differences as further sums, which may have any sign."""
    n, m = len(sums), len(pattern.differences)
    signs = pattern.difference_signs().tocoo()
    used = sums.of_cell[signs.row] != NONE
    entries = (-signs.data[used], (sums.of_cell[signs.row[used]], signs.col[used]))
    parts = vstack([coo_array(entries, shape=(n, m)), coo_array(np.eye(m))])
    above = vstack([sums.equations, csc_array((m, sums.equations.shape[1]))])
    return replace(
        sums,
        of_difference=np.arange(n, n + m),
        equations=csc_array(hstack([above, parts], format="csc")),
        lines=csc_array(vstack([sums.lines, csc_array((m, sums.lines.shape[1]))], format="csc")),
        down=np.concatenate([sums.down, np.full(m, np.inf)]),
        up=np.concatenate([sums.up, np.full(m, np.inf)]),
    )


def _number_sums(columns: csc_array) -> Whole:
    """A number for each distinct column and each row; `NONE` for columns without rows."""
    # Cells of hierarchies often hold the same inner cells, and many hold one: as one sum they need
    # no equation that says so, and a proof for one is a proof for all.
    both = hstack([columns, eye_array(columns.shape[0], dtype=np.int64)], format="csc")
    first, kind = distinct_columns(both)
    is_kept = np.diff(both.indptr)[first] > 0
    return np.where(is_kept, np.cumsum(is_kept) - 1, NONE)[kind]


def _equations(
    found: ChosenRows, of_cell: Whole, of_row: Whole, pairs: list[tuple[Whole, Whole]], best: Whole
) -> Any:
    """For each sum of several inner cells one equation with its parts."""
    size, n = np.diff(found.columns.indptr), len(best)
    total = np.full(n, NONE)
    total[of_cell[size > 1]] = np.flatnonzero(size > 1)
    chosen = [best[parent] == one for one, (parent, _) in enumerate(pairs)]
    parents = [parent[some] for (parent, _), some in zip(pairs, chosen, strict=True)]
    parts = [part[some] for (_, part), some in zip(pairs, chosen, strict=True)]
    rest = np.flatnonzero((total != NONE) & (best == NONE))
    inside = found.columns[:, total[rest]]
    parents.append(np.repeat(rest, np.diff(inside.indptr)))
    parts.append(of_row[inside.indices])
    several = np.flatnonzero(total != NONE)
    equation = np.full(n, NONE)
    equation[several] = np.arange(len(several))
    whose = equation[np.concatenate(parents)]
    rows = np.concatenate([several, np.concatenate(parts)])
    signs = np.concatenate([np.ones(len(several)), -np.ones(len(whose))])
    entries = (signs, (rows, np.concatenate([np.arange(len(several)), whose])))
    return csc_array(entries, shape=(n, len(several)))


def _all_lines(pairs: list[tuple[Whole, Whole]], n: int) -> Any:
    """Every line that gives a sum wholly, as an equation."""
    rows, columns, m = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    for parent, child in pairs:
        totals, number = np.unique(parent, return_inverse=True)
        rows += [totals, child]
        columns += [m + np.arange(len(totals)), m + number.ravel()]
        m += len(totals)
    where = (np.concatenate(rows), np.concatenate(columns))
    return csc_array((np.ones(len(where[0])), where), shape=(n, m))


def _shortest_lines(
    pattern: Pattern, of_cell: Whole, size: Array, n: int
) -> tuple[list[tuple[Whole, Whole]], Whole]:
    """Lines as pairs of sums, wholes and parts; for each sum the line that gives it with fewest.

    One line with few parts keeps the equations short, and the others follow from it.
    """
    pairs: list[tuple[Whole, Whole]] = []
    best, fewest = np.full(n, NONE), np.full(n, np.iinfo(np.int64).max)
    n_cells = len(of_cell)
    for one in lines(pattern.design):
        filled = (size[one.child] > 0) & (size[one.parent] > 1)
        parent, child = one.parent[filled], one.child[filled]
        parts = np.bincount(parent, minlength=n_cells)
        # A part that is not published leaves a gap: then the line gives no equation.
        covered = np.bincount(parent, size[child], minlength=n_cells) == size
        cells = np.flatnonzero((parts > 1) & covered)
        cells = cells[np.unique(of_cell[cells], return_index=True)[1]]
        better = cells[parts[cells] < fewest[of_cell[cells]]]
        used = np.isin(parent, cells)
        best[of_cell[better]] = len(pairs)
        fewest[of_cell[better]] = parts[better]
        pairs.append((of_cell[parent[used]], of_cell[child[used]]))
    return pairs, best


# With more inner cells for each published one, representatives stand for them. Fewer rows make more
# cells follow from others, never fewer, so that a pattern that is safe on them is safe on all.
_MANY_COLUMNS = 4


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
    empty = (pattern.z == 0) & (zeros_are_public and not pattern.is_signed)
    is_large = design.n_inner > _MANY_COLUMNS * design.n_published and not every_row
    if is_large and design.over_variables is not None and pattern.known is None:
        return _representatives(pattern, design.over_variables, empty)
    X = design.matrix().astype(np.int64).tocsc()
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
    codes = _corner_codes(pattern, design)
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


def _corner_codes(pattern: Pattern, design: StructuredDesign) -> list[Whole]:
    """For each variable the leaf that stands for each published cell: its most frequent one."""
    found: list[Whole] = []
    for a, axis in enumerate(design.axes):
        # Frequent leaves are filled in most cells; the first ones come first where all are alike.
        size: Array = np.arange(len(axis), 0, -1, dtype=np.float64)
        if pattern.y is not None:
            size = np.bincount(design.inner_codes()[a], np.abs(pattern.y), len(axis))
        order = np.lexsort((-np.arange(len(axis)), size))
        parts = []
        for k, block in enumerate(design.blocks):
            level = block.levels[a]
            group = np.zeros(len(axis), dtype=np.int64) if level is None else level.group
            stand_in = np.zeros(1 if level is None else len(level), dtype=np.int64)
            # Of several leaves that are written to one group the last, most frequent one stays.
            inside = order[group[order] != OUTSIDE]
            stand_in[group[inside]] = inside
            parts.append(stand_in[np.unravel_index(design.block_cells(k), block.shape)[a]])
        found.append(np.concatenate(parts))
    return found


def _best_inner(pattern: Pattern, cells: Index, *, zeros_are_public: bool) -> Index:
    """For each of some published cells its largest inner cell in which nobody is alone, if any."""
    value = np.abs(np.asarray(pattern.y)).astype(np.float64)
    # Where empty cells are public, a lone inner cell is a better row than an empty one, which may
    # be known; where they are not, an empty one is better, since nobody knows it.
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
    known = np.zeros(len(codes[0]), dtype=bool)
    rows, cells = [], []
    for k in range(len(design.blocks)):
        flat, inside = (np.broadcast_to(v, len(known)) for v in design.locate(k, codes))
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
