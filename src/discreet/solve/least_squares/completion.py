"""A design with chosen inner cells inside the complete one.

Structural zeros leave most of a table in place. The complete table has a basis in which sums are
easy to invert; held against it, the chosen cells are only a bound: all others are zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.product import LARGEST_DENSE, ProductDesign
from discreet.design.sparse import SparseDesign
from discreet.solve.least_squares.goal import Goal
from discreet.solve.least_squares.problem import Problem

Vector = NDArray[np.float64]

_SMALLEST_SHARE = 0.25  # of the full crossing that chosen cells must be for it to be worth while


@dataclass(frozen=True, eq=False)
class Completion:
    """The full crossing around a design.

    Attributes:
      full: The complete design.
      published: Where the published cells lie in it.
      inner: Where the inner cells lie in it.
    """

    full: ProductDesign
    published: NDArray[np.int64]
    inner: NDArray[np.int64]

    @classmethod
    def of(cls, design: Design) -> Completion | None:
        """The completion of a design with chosen cells, where these are a good part of it."""
        if not isinstance(design, SparseDesign):
            return None
        n = math.prod(design.shape)
        if n > LARGEST_DENSE or design.n_inner < _SMALLEST_SHARE * n:
            return None
        lift = design.completed()
        return None if lift.inner is None else cls(lift.design, lift.published, lift.inner)

    def embedded(self, y: Vector) -> Vector:
        """Chosen inner cells in the full crossing, zero elsewhere."""
        table = np.zeros(self.full.n_inner)
        table[self.inner] = y
        return table

    def problem(self, problem: Problem) -> Problem:
        """The same problem on the complete design; cells out of reach are zero in any case."""
        design = self.full
        means = block_means(problem.design, problem.weights)
        weights = np.repeat(means, np.diff(design.offsets))
        weights[self.published] = problem.weights
        z = np.zeros(design.n_published)
        z[self.published] = problem.z
        goal = Goal.of(design, z, weights, self.published[problem.held], problem.goal.accuracy)
        return replace(problem, design=design, z=z, weights=weights, goal=goal)


def block_means(design: Design, weights: Vector) -> Vector:
    """Mean weight of each block; one for a block without cells."""
    design = design.structured("blocks")
    n = len(design.blocks)
    block = design.block_of_cell()
    size = np.bincount(block, minlength=n)
    sums = np.bincount(block, weights=weights, minlength=n)
    return np.divide(sums, size, out=np.ones(n), where=size > 0)
