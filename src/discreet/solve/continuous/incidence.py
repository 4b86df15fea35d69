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
from discreet.design.product import ProductDesign
from discreet.design.structured import StructuredDesign
from discreet.solve.continuous.kernels import hand_down, sum_up

Whole = NDArray[np.int32]
_MASK_FACTOR = 8  # a crossing this many times larger than its cells is numbered by sorting


@dataclass(frozen=True, eq=False)
class Incidence:
    """Edges over a buffer that holds the chosen inner cells first, then the published nodes.

    Attributes:
      n_cells: Number of chosen inner cells.
      source: Node at which each edge begins.
      target: Node it adds to.
      position: Published position of each node after the cells.
    """

    n_cells: int
    source: Whole
    target: Whole
    position: NDArray[np.int64]

    @property
    def n_nodes(self) -> int:
        """Length of the buffer."""
        return self.n_cells + len(self.position)

    def aggregate(self, y: Vector) -> Vector:
        """Sums of the cells, node by node."""
        nodes = np.zeros(self.n_nodes)
        nodes[: self.n_cells] = y
        sum_up(self.source, self.target, nodes)
        return nodes[self.n_cells :]

    def adjoint(self, z: Vector) -> Vector:
        """For each cell the sum over the nodes it counts in."""
        nodes = np.zeros(self.n_nodes)
        nodes[self.n_cells :] = z
        hand_down(self.source, self.target, nodes)
        return nodes[: self.n_cells]


class Restrictor:
    """Makes incidences of one design for changing sets of inner cells."""

    def __init__(self, design: Design) -> None:
        self.design = design

    def __call__(self, cells: Vector) -> Incidence:
        """The incidence of the inner cells at the given positions."""
        if isinstance(self.design, StructuredDesign):
            return self._structured(self.design, cells)
        return self._general(cells)

    @cached_property
    def _matrix(self) -> tuple[NDArray[np.int64], Whole]:
        matrix = self.design.matrix()
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)

    def _general(self, cells: Vector) -> Incidence:
        starts, columns = self._matrix
        lengths = np.diff(starts)[cells]
        source = np.repeat(np.arange(len(cells), dtype=np.int32), lengths)
        within = np.arange(len(source)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        reached = columns[np.repeat(starts[cells], lengths) + within]
        position, rank = np.unique(reached, return_inverse=True)
        target = (rank + len(cells)).astype(np.int32)
        return Incidence(len(cells), source, target, position.astype(np.int64))

    @cached_property
    def _order(self) -> list[tuple[int, int | None]]:
        """Blocks with the block each is summed from, sources first."""
        design = self.design
        if isinstance(design, ProductDesign):
            return design.plan
        sizes = np.diff(design.offsets).tolist()  # type: ignore[attr-defined]
        sources = design.lattice.sources(design.blocks, sizes)  # type: ignore[attr-defined]
        return [(k, sources[k]) for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k], k))]

    def _structured(self, design: StructuredDesign, cells: Vector) -> Incidence:
        codes = _codes(design, cells)
        first_node = len(cells)
        reached: dict[int, NDArray[np.int64]] = {}
        begin: dict[int, int] = {}
        sources, targets, positions = [], [], []
        for k, source in self._order:
            if source is None:
                flat, inside = _flat(design, k, None, codes)
                start = 0
            else:
                groups = np.unravel_index(reached[source], design.blocks[source].shape)
                flat, inside = _flat(design, k, source, groups)
                start = begin[source]
            reached[k], rank = _ranked(flat, design.blocks[k].size)
            begin[k] = first_node
            sources.append((inside + start).astype(np.int32))
            targets.append((rank + first_node).astype(np.int32))
            positions.append(_positions(design, k, reached[k]))
            first_node += len(reached[k])
        return Incidence(
            len(cells), np.concatenate(sources), np.concatenate(targets), np.concatenate(positions)
        )


def _codes(design: StructuredDesign, cells: Vector) -> Sequence[Vector]:
    """Leaf positions of the chosen cells along every axis."""
    if isinstance(design, ProductDesign):
        return np.unravel_index(cells, design.shape)
    return [leaf[cells] for leaf in design.inner_codes()]


def _flat(
    design: StructuredDesign, k: int, source: int | None, groups: Sequence[Vector]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the source's cells lie in block k's crossing, and which of them lie in it at all."""
    fine = design.inner_block if source is None else design.blocks[source]
    n = len(groups[0]) if groups else 1
    flat = np.zeros(n, dtype=np.int64)
    outside: NDArray[np.bool_] | None = None
    for from_level, to_level, group in zip(
        fine.levels, design.blocks[k].levels, groups, strict=True
    ):
        if to_level is None or from_level is None:
            continue
        if from_level is not to_level:
            up = np.asarray(design.lattice.step(from_level, to_level))
            group = up[group]
            if (up == OUTSIDE).any():
                outside = group == OUTSIDE if outside is None else outside | (group == OUTSIDE)
        flat *= len(to_level)
        flat += group
    if outside is None:
        return flat, np.arange(n)
    inside = np.flatnonzero(~outside)
    return flat[inside], inside


def _ranked(flat: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different positions in increasing order, and the rank of each entry among them."""
    if size > _MASK_FACTOR * len(flat) + 1024:
        cells, rank = np.unique(flat, return_inverse=True)
        return cells, rank
    seen = np.zeros(size, dtype=bool)
    seen[flat] = True
    cells = np.flatnonzero(seen)
    rank_of = np.empty(size, dtype=np.int64)
    rank_of[cells] = np.arange(len(cells))
    return cells, rank_of[flat]


def _positions(design: StructuredDesign, k: int, flat: NDArray[np.int64]) -> NDArray[np.int64]:
    """Published positions of cells of block k's crossing."""
    begin = int(design.offsets[k])
    if isinstance(design, ProductDesign):
        return flat + begin
    return np.searchsorted(design.block_cells(k), flat) + begin
