"""The sums behind a design, restricted to chosen inner cells.

A block that can be summed from another one is, so an inner cell needs an edge only to the blocks
nothing else refines. Edges run from cells to published cells and from published cells to coarser
ones; one pass over them is `aggregate`, one pass backwards is `adjoint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.design.axis import OUTSIDE
from discreet.design.base import Design, Vector
from discreet.design.incidence_kernels import Sums, hand_down, sum_up
from discreet.design.structured import StructuredDesign, ranked

Whole = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Incidence:
    """Sums of chosen inner cells; nodes are the published cells they reach.

    Attributes:
      n_cells: Number of chosen inner cells.
      position: Published position of each node.
      sums: Rows (`starts`, `columns`) of the nodes each cell counts in directly, and edges
        (`source`, `target`) from nodes to coarser ones.
    """

    n_cells: int
    position: NDArray[np.int64]
    sums: Sums

    def aggregate(self, y: Vector) -> Vector:
        """Sums of the cells, node by node."""
        nodes = np.empty(len(self.position))
        sum_up(self.sums, y, nodes)
        return nodes

    def adjoint(self, z: Vector) -> Vector:
        """For each cell the sum over the nodes it counts in."""
        cells = np.empty(self.n_cells)
        hand_down(self.sums, z.copy(), cells)
        return cells


class Restrictor:
    """Makes incidences of one design for changing sets of inner cells."""

    def __init__(self, design: Design) -> None:
        self.design = design

    def __call__(self, cells: Vector) -> Incidence:
        """The incidence of the inner cells at the given positions."""
        design = self.design.over_variables
        return self._general(cells) if design is None else self._structured(design, cells)

    @cached_property
    def _matrix(self) -> tuple[NDArray[np.int64], Whole]:
        matrix = self.design.matrix()
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)

    def _general(self, cells: Vector) -> Incidence:
        starts, columns = self._matrix
        lengths = np.diff(starts)[cells]
        begin = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(begin[-1]) - np.repeat(begin[:-1], lengths)
        reached = columns[np.repeat(starts[cells], lengths) + within]
        position, rank = np.unique(reached, return_inverse=True)
        none = np.empty(0, dtype=np.int32)
        sums = (begin, rank.astype(np.int32), none, none)
        return Incidence(len(cells), position.astype(np.int64), sums)

    def _structured(self, design: StructuredDesign, cells: Vector) -> Incidence:
        codes = design.leaf_positions(cells)
        nodes = _Nodes()
        rows: list[Whole] = []
        for k, source in design.plan:
            if source is None:
                flat, inside = _flat(design, k, None, codes)
                row = np.full(len(cells), OUTSIDE, dtype=np.int32)
                row[inside] = nodes.add(design, k, flat)
                rows.append(row)
            else:
                groups = np.unravel_index(nodes.reached[source], design.blocks[source].shape)
                flat, inside = _flat(design, k, source, groups)
                begin = nodes.begin[source]
                nodes.link(inside + begin, nodes.add(design, k, flat))
        starts, columns = _by_cell(rows)
        sums = (starts, columns, _joined(nodes.sources), _joined(nodes.targets))
        return Incidence(len(cells), np.concatenate(nodes.positions), sums)


class _Nodes:
    """The published cells reached so far, and the edges between them."""

    def __init__(self) -> None:
        self.reached: dict[int, NDArray[np.int64]] = {}
        self.begin: dict[int, int] = {}
        self.positions: list[NDArray[np.int64]] = []
        self.sources: list[Whole] = []
        self.targets: list[Whole] = []
        self._count = 0

    def add(self, design: StructuredDesign, k: int, flat: NDArray[np.int64]) -> Whole:
        """Number the cells of block k that are reached; returns the node of each entry."""
        cells, rank = ranked(flat, design.blocks[k].size)
        self.reached[k], self.begin[k] = cells, self._count
        self.positions.append(design.published_at(k, cells))
        self._count += len(cells)
        return (rank + self.begin[k]).astype(np.int32)

    def link(self, source: NDArray[np.int64], target: Whole) -> None:
        """Edges from nodes to the coarser nodes they count in."""
        self.sources.append(source.astype(np.int32))
        self.targets.append(target)


def _joined(parts: Sequence[Whole]) -> Whole:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)


def _by_cell(rows: Sequence[Whole]) -> tuple[NDArray[np.int64], Whole]:
    """The nodes of each cell together, cells in order, without those it lies outside of."""
    table = np.stack(rows, axis=1)
    inside = table != OUTSIDE
    starts = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    return starts, table[inside]


def _flat(
    design: StructuredDesign, k: int, source: int | None, groups: Sequence[Vector]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the source's cells lie in block k's crossing, and which of them lie in it at all."""
    fine = design.inner_block if source is None else design.blocks[source]
    n = len(groups[0]) if groups else 1
    flat, inside = design.placed_in(design.blocks[k], fine, groups, n)
    if inside is None:
        return flat, np.arange(n)
    return flat[inside], np.flatnonzero(inside)
