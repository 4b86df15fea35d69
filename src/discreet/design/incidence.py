r"""Which published cells each inner cell counts in, as index arrays for compiled loops.

Published cells are put in groups such that an inner cell counts in at most one cell of a group.
The blocks of a structured table that no other block refines are such groups; the columns of a
general matrix are packed into them. Coarser blocks are sums over a group. So :math:`X^\top y` is
one pass over the inner cells, and a short pass over published cells for the rest; :math:`Xz` is the
same backwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.design.axis import OUTSIDE
from discreet.design.base import Design
from discreet.design.incidence_kernels import Index, Real, Sums, hand_down, pack_columns, sum_up
from discreet.design.structured import StructuredDesign

Marks = NDArray[np.bool_]
Positions = NDArray[np.int64]


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
    cells: Index
    fine: Index
    coarse: Index


@dataclass(frozen=True, eq=False)
class Incidence:
    """The published cells of inner cells, group by group.

    Memory: four bytes for each group and inner cell.

    Attributes:
      index: Groups × inner cells; `n_published` where an inner cell counts in no cell of a group.
      cells: The published cells of each group.
      nested: Coarser blocks, each after the block it is summed from.
      position: Where the published cells lie in the design.
    """

    index: Index
    cells: tuple[Index, ...]
    nested: tuple[Nested, ...]
    position: Positions

    @classmethod
    def of(cls, design: Design, inner: Positions | None = None) -> Incidence:
        """The published cells of all inner cells, or of some and only those that they reach."""
        position = np.arange(design.n_published)
        if inner is not None:
            design, position = design.restricted(inner)
        structured = design.over_variables
        if structured is None:
            return cls._packed(design, position)
        return cls._structured(structured, position)

    @classmethod
    def _structured(cls, design: StructuredDesign, position: Positions) -> Incidence:
        groups = sorted(k for k, source in design.plan if source is None)
        number = {k: place for place, k in enumerate(groups)}
        index = np.empty((len(groups), design.n_inner), dtype=np.int32)
        for row, k in zip(index, groups, strict=True):
            where = design.published_in(k)
            row[:] = np.where(where == OUTSIDE, design.n_published, where)
        nested = []
        for k, source in design.plan:
            if source is not None:
                fine, coarse = (part.astype(np.int32) for part in design.coarsened(source, k))
                nested.append(Nested(number[source], _positions(design, k), fine, coarse))
                number[k] = len(number)
        cells = tuple(_positions(design, k) for k in groups)
        return cls(index, cells, tuple(nested), position)

    @classmethod
    def _packed(cls, design: Design, position: Positions) -> Incidence:
        columns = design.matrix().tocsc()
        group = pack_columns(columns.indptr, columns.indices, design.n_inner)
        n_groups = int(group.max(initial=-1)) + 1
        index = np.full((n_groups, design.n_inner), design.n_published, dtype=np.int32)
        column = np.repeat(np.arange(design.n_published), np.diff(columns.indptr))
        index[group[column], columns.indices] = column
        cells = [np.flatnonzero(group == g).astype(np.int32) for g in range(n_groups)]
        return cls(index, tuple(cells), (), position)

    @property
    def n_inner(self) -> int:
        """Number of inner cells."""
        return int(self.index.shape[1])

    @property
    def n_published(self) -> int:
        """Number of published cells, and the position that stands for none."""
        return len(self.position)

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
    def sums(self) -> Sums:
        """What compiled loops need: the index, and the edges of nested sums."""
        return self.index, *self.edges

    @cached_property
    def ordered(self) -> Index:
        """The published positions of all groups, one group after the other."""
        return np.concatenate([np.empty(0, np.int32), *self.cells])

    @cached_property
    def edges(self) -> tuple[Index, Index]:
        """Fine and coarse positions of all nested sums, in the order in which to add them up."""
        none = [np.empty(0, np.int32)]
        fine = np.concatenate(none + [block.fine for block in self.nested])
        return fine, np.concatenate(none + [block.coarse for block in self.nested])

    def sizes(self) -> NDArray[np.int64]:
        """Number of inner cells in each published cell of the groups."""
        counted = np.zeros(self.n_published + 1, dtype=np.int64)
        for row in self.index:
            counted += np.bincount(row, minlength=self.n_published + 1)
        return counted[:-1]

    def restricted(self, inner: Positions) -> Incidence:
        """The same published cells over some of the inner cells, in the order given."""
        if np.array_equal(inner, np.arange(self.n_inner)):
            return self
        index = np.ascontiguousarray(self.index[:, inner])
        return Incidence(index, self.cells, self.nested, self.position)

    def compact(self, keep: Marks, live: Marks) -> Incidence:
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
        return Incidence(number[self.index], cells, tuple(nested), self.position[keep])

    def using(self, used: Marks, implied: Marks) -> Incidence:
        """Groups for the published cells in use, with none that are implied by another group.

        Args:
          used: Which published cells count.
          implied: For each nested block whether the block it is summed from says it all.
        """
        if used.all() and implied.all():
            return Incidence(self.index, self.cells, (), self.position)
        lookup = np.where(np.append(used, False), np.arange(len(used) + 1), len(used))
        cells = [*self.cells, *(block.cells for block in self.nested)]
        needed = [*([True] * len(self.cells)), *~implied]
        kept = [g for g, c in enumerate(cells) if needed[g] and used[c].any()]
        index = np.empty((len(kept), self.n_inner), dtype=np.int32)
        for row, g in zip(index, kept, strict=True):
            row[:] = lookup[self.row(g)]
        return Incidence(index, tuple(cells[g][used[cells[g]]] for g in kept), (), self.position)

    def row(self, number: int, inner: Positions | slice = slice(None)) -> Index:
        """The published cell of inner cells in a group or nested block."""
        if number < len(self.cells):
            return np.asarray(self.index[number, inner])
        block = self.nested[number - len(self.cells)]
        up = np.full(self.n_published + 1, self.n_published, dtype=np.int32)
        up[block.fine] = block.coarse
        return up.take(self.row(block.source, inner))


def _positions(design: StructuredDesign, k: int) -> Index:
    place = design.slice_of(k)
    return np.arange(place.start, place.stop, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Restrictor:
    """Makes incidences of one design for changing sets of inner cells."""

    design: Design

    def __call__(self, cells: Positions) -> Incidence:
        """The incidence of the inner cells at the given positions."""
        return Incidence.of(self.design, cells)
