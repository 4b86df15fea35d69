r"""Which published cells each inner cell counts in, as index arrays for compiled loops.

Published cells are put in groups such that an inner cell counts in at most one cell of a group.
The blocks of a structured table that no other block refines are such groups; the columns of a
general matrix are packed into them. Coarser blocks are sums over a group. So :math:`X^\top y` is
one pass over the inner cells for each group, and a short pass over published cells for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.structured import StructuredDesign
from discreet.solve.continuous.membership_kernels import pack_columns

Index = NDArray[np.int32]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Nested:
    """A coarser block: sums over the cells of one group.

    Attributes:
      group: The group it is summed from.
      cells: Its published positions.
      parent: For every published position the coarser one it adds to, `n_published` for none.
    """

    group: int
    cells: Index
    parent: Index


@dataclass(frozen=True, eq=False)
class Membership:
    """The published cell of every inner cell, group by group.

    Attributes:
      index: Groups × inner cells; `n_published` where an inner cell counts in no cell of a group.
      cells: The published positions of each group.
      nested: Coarser blocks that are sums over a group.
      n_published: Number of published cells, and the position that stands for none.
    """

    index: Index
    cells: tuple[Index, ...]
    nested: tuple[Nested, ...]
    n_published: int

    @classmethod
    def of(cls, design: Design) -> Membership:
        """All published cells of a design; memory four bytes per group and inner cell."""
        if isinstance(design, StructuredDesign):
            return cls._structured(design)
        return cls._packed(design)

    @classmethod
    def _structured(cls, design: StructuredDesign) -> Membership:
        source = _sources(design)
        finest = [k for k, s in enumerate(source) if s is None]
        group_of = {k: g for g, k in enumerate(finest)}
        index = np.empty((len(finest), design.n_inner), dtype=np.int32)
        for k, (where, _) in enumerate(design.member_blocks()):
            if k in group_of:
                index[group_of[k]] = np.where(where < 0, design.n_published, where)
        cells = [_positions(design, k) for k in range(len(source))]
        nested = []
        for k, (where, _) in enumerate(design.member_blocks() if len(finest) < len(source) else ()):
            if (s := source[k]) is not None:
                parent = np.full(design.n_published + 1, design.n_published, dtype=np.int32)
                inside = where >= 0
                parent[index[group_of[s]][inside]] = where[inside]
                nested.append(Nested(group_of[s], cells[k], parent))
        return cls(index, tuple(cells[k] for k in finest), tuple(nested), design.n_published)

    @classmethod
    def _packed(cls, design: Design) -> Membership:
        columns = design.matrix().tocsc()
        group = pack_columns(columns.indptr, columns.indices, design.n_inner)
        n_groups = int(group.max(initial=-1)) + 1
        index = np.full((n_groups, design.n_inner), design.n_published, dtype=np.int32)
        column = np.repeat(np.arange(design.n_published), np.diff(columns.indptr))
        index[group[column], columns.indices] = column
        cells = [np.flatnonzero(group == g).astype(np.int32) for g in range(n_groups)]
        return cls(index, tuple(cells), (), design.n_published)

    @property
    def n_inner(self) -> int:
        """Number of inner cells."""
        return int(self.index.shape[1])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each group begins in `ordered`, and its length at the end."""
        return np.cumsum([0, *(len(c) for c in self.cells)], dtype=np.int64)

    @cached_property
    def ordered(self) -> Index:
        """The published positions of all groups, one group after the other."""
        return np.concatenate([np.empty(0, np.int32), *self.cells])

    @cached_property
    def edges(self) -> tuple[Index, Index]:
        """Fine and coarse positions: every published cell with each coarser one it adds to."""
        fine, coarse = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        for block in self.nested:
            within = self.cells[block.group]
            within = within[block.parent[within] < self.n_published]
            fine.append(within)
            coarse.append(block.parent[within])
        return np.concatenate(fine), np.concatenate(coarse)

    def sizes(self) -> NDArray[np.int64]:
        """Number of inner cells in each published cell of the groups."""
        counted = np.zeros(self.n_published + 1, dtype=np.int64)
        for row in self.index:
            counted += np.bincount(row, minlength=self.n_published + 1)
        return counted[:-1]

    def restricted(self, inner: NDArray[np.int64]) -> Membership:
        """The same published cells over some of the inner cells."""
        if len(inner) == self.n_inner:
            return self
        index = np.ascontiguousarray(self.index[:, inner])
        return Membership(index, self.cells, self.nested, self.n_published)

    def using(self, used: Marks, implied: Marks) -> Membership:
        """Groups for the published cells in use, with none that are implied by another group.

        Args:
          used: Which published cells count.
          implied: For each nested block whether its group says all that it says.
        """
        if used.all() and implied.all():
            return Membership(self.index, self.cells, (), self.n_published)
        lookup = np.where(np.append(used, False), np.arange(len(used) + 1), len(used))
        rows, cells = list(self.index), list(self.cells)
        for block, skip in zip(self.nested, implied, strict=True):
            if not skip:
                rows.append(block.parent[self.index[block.group]])
                cells.append(block.cells)
        kept = [g for g, positions in enumerate(cells) if used[positions].any()]
        index = np.empty((len(kept), self.n_inner), dtype=np.int32)
        for row, g in zip(index, kept, strict=True):
            row[:] = lookup[rows[g]]
        return Membership(index, tuple(cells[g][used[cells[g]]] for g in kept), (), len(used))


def _sources(design: StructuredDesign) -> list[int | None]:
    """For each block one that refines it and is refined by no other; `None` if there is none."""
    sizes = np.diff(design.offsets).tolist()
    direct = design.lattice.sources(design.blocks, sizes)
    found: list[int | None] = []
    for k in range(len(direct)):
        top, above = None, direct[k]
        while above is not None:
            top, above = above, direct[above]
        found.append(top)
    return found


def _positions(design: StructuredDesign, k: int) -> Index:
    place = design.slice_of(k)
    return np.arange(place.start, place.stop, dtype=np.int32)
