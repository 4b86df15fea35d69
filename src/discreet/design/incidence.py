"""The sums behind a design, restricted to chosen inner cells.

A block that can be summed from another one is, so an inner cell needs an edge only to the blocks
nothing else refines. Edges run from cells to published cells and from published cells to coarser
ones; one pass over them is `aggregate`, one pass backwards is `adjoint`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design, Vector
from discreet.design.incidence_kernels import Sums, hand_down, sum_up

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


@dataclass(frozen=True, eq=False)
class Restrictor:
    """Makes incidences of one design for changing sets of inner cells."""

    design: Design

    def __call__(self, cells: Vector) -> Incidence:
        """The incidence of the inner cells at the given positions."""
        chosen, published = self.design.restricted(cells)
        return Incidence(len(cells), published, chosen.sums())
