r"""Which published cells each inner cell counts in, as index arrays for compiled loops.

Published cells are put in groups such that an inner cell counts in at most one cell of a group.
The blocks of a structured table are such groups; the columns of a general matrix are packed into
them. A group is then one array of positions, and :math:`X^\top y` is one pass for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.structured import StructuredDesign
from discreet.solve.continuous.membership_kernels import pack_columns

Index = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Membership:
    """The published cell of every inner cell, group by group.

    Attributes:
      index: Groups × inner cells; `n_published` where an inner cell counts in no cell of a group.
      cells: The published positions of each group.
      n_published: Number of published cells, and the position that stands for none.
    """

    index: Index
    cells: tuple[Index, ...]
    n_published: int

    @classmethod
    def of(cls, design: Design) -> Membership:
        """All published cells of a design; memory four bytes per group and inner cell."""
        if not isinstance(design, StructuredDesign):
            return cls._packed(design)
        m = design.n_published
        index = np.empty((len(design.blocks), design.n_inner), dtype=np.int32)
        for g, (where, _) in enumerate(design.member_blocks()):
            index[g] = where
        index[index < 0] = m
        slices = [design.slice_of(g) for g in range(len(design.blocks))]
        return cls(index, tuple(np.arange(s.start, s.stop, dtype=np.int32) for s in slices), m)

    @classmethod
    def _packed(cls, design: Design) -> Membership:
        columns = design.matrix().tocsc()
        columns.sort_indices()
        group = pack_columns(columns.indptr, columns.indices, design.n_inner)
        n_groups = int(group.max(initial=-1)) + 1
        index = np.full((n_groups, design.n_inner), design.n_published, dtype=np.int32)
        column = np.repeat(np.arange(design.n_published), np.diff(columns.indptr))
        index[group[column], columns.indices] = column
        cells = [np.flatnonzero(group == g).astype(np.int32) for g in range(n_groups)]
        return cls(index, tuple(cells), design.n_published)

    @property
    def n_inner(self) -> int:
        """Number of inner cells."""
        return int(self.index.shape[1])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each group begins in `ordered`, and its length at the end."""
        return np.concatenate([[0], np.cumsum([len(c) for c in self.cells])]).astype(np.int64)

    @cached_property
    def ordered(self) -> Index:
        """The published positions of all groups, one group after the other."""
        return np.concatenate([*self.cells, np.empty(0, np.int32)]).astype(np.int32)

    def sizes(self) -> NDArray[np.int64]:
        """Number of inner cells in each published cell."""
        counted = np.zeros(self.n_published + 1, dtype=np.int64)
        for row in self.index:
            counted += np.bincount(row, minlength=self.n_published + 1)
        return counted[:-1]

    def touches(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Inner cells that count in some published cell that is marked."""
        lookup = np.append(marked, False)
        found = np.zeros(self.n_inner, dtype=bool)
        for row in self.index:
            found |= lookup[row]
        return found

    def restricted(self, inner: NDArray[np.int64]) -> Membership:
        """The same published cells over some of the inner cells."""
        if len(inner) == self.n_inner:
            return self
        return Membership(np.ascontiguousarray(self.index[:, inner]), self.cells, self.n_published)

    def using(self, used: NDArray[np.bool_]) -> Membership:
        """Without the published cells that are not used; groups left empty are dropped."""
        if used.all():
            return self
        lookup = np.where(np.append(used, False), np.arange(len(used) + 1), len(used))
        kept = [g for g, cells in enumerate(self.cells) if used[cells].any()]
        index = lookup.astype(np.int32)[self.index[kept]]
        return Membership(index, tuple(self.cells[g][used[self.cells[g]]] for g in kept), len(used))

    def groups(self, chosen: Sequence[int]) -> Membership:
        """Only the groups with these numbers."""
        if len(chosen) == len(self.cells):
            return self
        return Membership(self.index[chosen], tuple(self.cells[g] for g in chosen), self.n_published)

    def blocks(self) -> list[Index]:
        """Views of `ordered`, group by group."""
        return [self.ordered[a:b] for a, b in pairwise(self.starts)]
