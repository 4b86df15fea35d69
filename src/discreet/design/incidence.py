r"""Which published cells each inner cell counts in, as index arrays for compiled loops.

Published cells are put in groups such that an inner cell counts in at most one cell of a group.
The blocks of a structured table that no other block refines are such groups; the columns of a
general matrix are packed into them. Coarser blocks are sums over a group. So :math:`X^\top y` is
one pass over the inner cells, and a short pass over published cells for the rest; :math:`Xz` is the
same backwards.

In a full crossing the position of an inner cell in a block is a sum over the axes. The axes are cut
in two, and what either part adds is listed for each of its combinations: two short lists instead of
an index as long as the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numba import njit

from discreet.arrays import Mask, Real, Whole, Whole32
from discreet.design.axis import OUTSIDE
from discreet.design.base import Design
from discreet.design.product import ProductDesign
from discreet.design.structured import StructuredDesign


@dataclass(frozen=True, eq=False)
class Nested:
    """A coarser block: sums over the cells of a finer one.

    Attributes:
      source: Number of the finer block; groups are numbered first, then nested blocks.
      cells: The block's published positions.
      fine: Published positions in the finer block.
      coarse: The position in this block that each of them adds to.
    """

    source: int
    cells: Whole32
    fine: Whole32
    coarse: Whole32


@dataclass(frozen=True, eq=False)
class Incidence:
    """The published cells of inner cells, group by group.

    Inner cell `i` counts in cell `head[g, i // n] + tail[g, i % n]` of group `g`, where `n` is the
    length of the tail; sums of `n_published` or more stand for none.

    Memory: four bytes for each group and inner cell where these are listed, next to nothing for
    full crossings.
    """

    # Groups × combinations of the first axes; a single one where inner cells are listed.
    head: Whole32
    tail: Whole32  # groups × combinations of the other axes, or all inner cells
    cells: tuple[Whole32, ...]  # the published cells of each group
    nested: tuple[Nested, ...]  # coarser blocks, each after the block it is summed from
    position: Whole  # where the published cells lie in the design

    @classmethod
    def of(cls, design: Design, inner: Whole | None = None) -> Incidence:
        """The published cells of all inner cells, or of some and only those that they reach."""
        position = np.arange(design.n_published)
        if inner is not None:
            design, position = design.restricted(inner)
        structured = design.over_variables
        if structured is None:
            return cls._from_columns(design, position)
        return cls._from_blocks(structured, position)

    @classmethod
    def _from_index(
        cls, index: Whole32, cells: tuple[Whole32, ...], nested: tuple[Nested, ...], position: Whole
    ) -> Incidence:
        """Inner cells listed one by one, groups × inner cells."""
        return cls(np.zeros((len(index), 1), np.int32), index, cells, nested, position)

    @classmethod
    def _from_blocks(cls, design: StructuredDesign, position: Whole) -> Incidence:
        groups = sorted(k for k, source in design.plan if source is None)
        number = {k: place for place, k in enumerate(groups)}
        full = design.product_form
        head, tail = (
            _listed_cells(design, groups) if full is None else _crossing_lists(full, groups)
        )
        nested = []
        for k, source in design.plan:
            if source is not None:
                fine, coarse = (
                    part.astype(np.int32) for part in design.block_coarsening(source, k)
                )
                nested.append(Nested(number[source], _positions(design, k), fine, coarse))
                number[k] = len(number)
        cells = tuple(_positions(design, k) for k in groups)
        return cls(head, tail, cells, tuple(nested), position)

    @classmethod
    def _from_columns(cls, design: Design, position: Whole) -> Incidence:
        columns = design.matrix().tocsc()
        group = pack_columns(columns.indptr, columns.indices, design.n_inner)
        n_groups = int(group.max(initial=-1)) + 1
        index = np.full((n_groups, design.n_inner), design.n_published, dtype=np.int32)
        column = np.repeat(np.arange(design.n_published), np.diff(columns.indptr))
        index[group[column], columns.indices] = column
        cells = [np.flatnonzero(group == g).astype(np.int32) for g in range(n_groups)]
        return cls._from_index(index, tuple(cells), (), position)

    @property
    def n_inner(self) -> int:
        """Number of inner cells."""
        return int(self.head.shape[1] * self.tail.shape[1])

    @property
    def n_published(self) -> int:
        """Number of published cells, and the position that stands for none."""
        return len(self.position)

    @cached_property
    def index(self) -> Whole32:
        """Groups × inner cells; `n_published` where an inner cell counts in no cell of a group."""
        if self.head.shape[1] == 1:
            return self.tail
        return np.array([self.row(g) for g in range(len(self.head))])

    def aggregate(self, y: Real) -> Real:
        """The sums of the inner cells in each published cell."""
        published = np.empty(self.n_published)
        sum_up(self.sums, y, published)
        return published

    def adjoint(self, z: Real) -> Real:
        """For each inner cell the sum over the published cells it counts in."""
        inner = np.empty(self.n_inner)
        hand_down(self.sums, z.copy(), inner)
        return inner

    @property
    def sums(self) -> SumArrays:
        """What compiled loops need: heads, tails, and the edges of nested sums."""
        return self.head, self.tail, *self.edges

    @cached_property
    def group_cells(self) -> Whole32:
        """The published positions of all groups, one group after the other."""
        return np.concatenate([np.empty(0, np.int32), *self.cells])

    @cached_property
    def edges(self) -> tuple[Whole32, Whole32]:
        """Fine and coarse positions of all nested sums, in the order in which to add them up."""
        none = [np.empty(0, np.int32)]
        fine = np.concatenate(none + [block.fine for block in self.nested])
        return fine, np.concatenate(none + [block.coarse for block in self.nested])

    def sizes(self) -> Whole:
        """Number of inner cells in each published cell of the groups."""
        counted = np.zeros(self.n_published + 1, dtype=np.int64)
        for g in range(len(self.cells)):
            counted += np.bincount(self.row(g), minlength=self.n_published + 1)
        return counted[:-1]

    def restrict(self, inner: Whole) -> Incidence:
        """The same published cells over some of the inner cells, in the order given."""
        if len(inner) == self.n_inner and np.array_equal(inner, np.arange(self.n_inner)):
            return self
        index = self._at(self.head, self.tail, inner)
        return self._from_index(index, self.cells, self.nested, self.position)

    def compact(self, keep: Mask, live: Mask) -> Incidence:
        """The same inner cells with only some published cells, which are numbered anew.

        Args:
          keep: Which published cells to keep.
          live: Which of them hold an inner cell; what they add to is kept as well.
        """
        if keep.all():
            return self
        n_kept = int(np.count_nonzero(keep))
        number = np.full(len(keep) + 1, n_kept, dtype=np.int32)
        number[:-1][keep] = np.arange(n_kept)
        nested = []
        for block in self.nested:
            kept = live[block.fine]
            fine, coarse = number[block.fine[kept]], number[block.coarse[kept]]
            nested.append(
                Nested(block.source, number[block.cells[keep[block.cells]]], fine, coarse)
            )
        cells = tuple(number[c[keep[c]]] for c in self.cells)
        return self._from_index(number[self.index], cells, tuple(nested), self.position[keep])

    def using(self, used: Mask, implied: Mask) -> Incidence:
        """Groups for the published cells in use, with none that are implied by another group.

        Args:
          used: Which published cells count.
          implied: For each nested block whether the block it is summed from says it all.
        """
        if used.all() and implied.all():
            return replace(self, nested=())
        lookup = np.where(np.append(used, False), np.arange(len(used) + 1), len(used))
        cells = [*self.cells, *(block.cells for block in self.nested)]
        needed = [*([True] * len(self.cells)), *~implied]
        kept = [g for g, c in enumerate(cells) if needed[g] and used[c].any()]
        index = np.empty((len(kept), self.n_inner), dtype=np.int32)
        for row, g in zip(index, kept, strict=True):
            row[:] = lookup[self.row(g)]
        used_cells = tuple(cells[g][used[cells[g]]] for g in kept)
        return self._from_index(index, used_cells, (), self.position)

    def row(self, number: int, inner: Whole | None = None) -> Whole32:
        """The published cell of inner cells, all by default, in a group or nested block."""
        if number < len(self.cells):
            head: Whole32 = self.head[number]
            tail: Whole32 = self.tail[number]
            if inner is not None:
                return self._at(head, tail, inner)
            if len(head) == 1:
                return tail
            every: Whole32 = np.add.outer(head, tail).ravel()
            return np.minimum(every, self.n_published, out=every)
        block = self.nested[number - len(self.cells)]
        up = np.full(self.n_published + 1, self.n_published, dtype=np.int32)
        up[block.fine] = block.coarse
        return up.take(self.row(block.source, inner))

    def _at(self, head: Whole32, tail: Whole32, inner: Whole) -> Whole32:
        """The published cells of some inner cells in groups with these heads and tails."""
        if head.shape[-1] == 1:
            return np.ascontiguousarray(tail[..., inner])
        first, last = np.divmod(inner, tail.shape[-1])
        index = head.take(first, axis=-1)
        index += tail.take(last, axis=-1)
        return np.minimum(index, self.n_published, out=index)


def _positions(design: StructuredDesign, k: int) -> Whole32:
    place = design.slice_of(k)
    return np.arange(place.start, place.stop, dtype=np.int32)


def _listed_cells(design: StructuredDesign, groups: list[int]) -> tuple[Whole32, Whole32]:
    """The heads and tails of listed inner cells: nothing, and everything."""
    index = np.empty((len(groups), design.n_inner), dtype=np.int32)
    for row, k in zip(index, groups, strict=True):
        where = design.published_in(k)
        row[:] = np.where(where == OUTSIDE, design.n_published, where)
    return np.zeros((len(groups), 1), np.int32), index


def _crossing_lists(design: ProductDesign, groups: list[int]) -> tuple[Whole32, Whole32]:
    """The heads and tails of a full crossing, cut where they are shortest together."""
    n, shape = len(design.axes), design.shape
    cut = min(range(n + 1), key=lambda a: math.prod(shape[:a]) + math.prod(shape[a:]))
    head = [_position_terms(design, k, range(cut), 0) for k in groups]
    tail = [_position_terms(design, k, range(cut, n), int(design.offsets[k])) for k in groups]
    return np.array(head, dtype=np.int32), np.array(tail, dtype=np.int32)


def _position_terms(design: ProductDesign, k: int, axes: range, first: int) -> Whole:
    """What every combination of some axes adds to a position in block `k`, from `first` on."""
    block, total = design.blocks[k], np.array([first], dtype=np.int64)
    for a in axes:
        level, length = block.levels[a], math.prod(block.shape[a + 1 :])
        group = np.zeros(design.shape[a], np.int64) if level is None else level.group
        # A leaf outside the level lifts the sum to `n_published` or beyond, whatever else is added.
        added = np.where(group == OUTSIDE, design.n_published, group * length)
        total = np.add.outer(total, added).ravel()
    return np.minimum(total, design.n_published)


SumArrays = tuple[Whole32, Whole32, Whole32, Whole32]


@njit(cache=True)
def add_to_coarser(fine: Whole32, coarse: Whole32, published: Real) -> None:
    """Sum published cells into the coarser ones, finest first."""
    for e in range(len(fine)):
        published[coarse[e]] += published[fine[e]]


@njit(cache=True)
def take_from_coarser(fine: Whole32, coarse: Whole32, published: Real) -> None:
    """The adjoint of `add_to_coarser`: published cells take on the values of the coarser ones."""
    for e in range(len(fine) - 1, -1, -1):  # backwards: coarse cells first take what lies above
        published[fine[e]] += published[coarse[e]]


@njit(cache=True)
def sum_up(sums: SumArrays, inner: Real, published: Real) -> None:
    """Write the sums of inner cells to the published cells."""
    head, tail, fine, coarse = sums
    published[:] = 0.0
    n = tail.shape[1]
    for h in range(head.shape[1]):
        first, part = head[:, h].copy(), inner[h * n : (h + 1) * n]
        for i in range(n):
            for g in range(len(tail)):
                k = np.uint32(first[g] + tail[g, i])  # never negative: no check for that
                if k < len(published):
                    published[k] += part[i]
    add_to_coarser(fine, coarse, published)


@njit(cache=True)
def hand_down(sums: SumArrays, published: Real, inner: Real) -> None:
    """Write to each inner cell the sum over its published cells, which are used up."""
    head, tail, fine, coarse = sums
    take_from_coarser(fine, coarse, published)
    inner[:] = 0.0
    n = tail.shape[1]
    for h in range(head.shape[1]):
        part = inner[h * n : (h + 1) * n]
        for g in range(len(tail)):
            first, row = head[g, h], tail[g]
            for i in range(n):
                k = first + row[i]
                if k < len(published):
                    part[i] += published[k]


@njit(cache=True)
def pack_columns(indptr: Whole32, indices: Whole32, n_inner: int) -> Whole:
    """A group for every column, the first one none of whose columns shares an inner cell with it.

    Bit `g` of `taken[i]` says that inner cell `i` has a column in group `g`; a word holds 62
    groups, and further ones are opened 62 at a time for the columns left over.
    """
    m = len(indptr) - 1
    group = np.full(m, -1, dtype=np.int64)
    first = 0
    left = m
    while left > 0:
        taken = np.zeros(n_inner, dtype=np.int64)
        for k in range(m):
            if group[k] >= 0:
                continue
            used = np.int64(0)
            for j in range(indptr[k], indptr[k + 1]):
                used |= taken[indices[j]]
            g = 0
            while g < 62 and used >> g & 1:
                g += 1
            if g < 62:
                group[k] = first + g
                left -= 1
                for j in range(indptr[k], indptr[k + 1]):
                    taken[indices[j]] |= np.int64(1) << g
        first += 62
    return group
