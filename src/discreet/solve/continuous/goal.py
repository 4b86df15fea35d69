r"""What a least squares fit is asked to reach, for every cell on its own scale.

A gradient :math:`g_i` that should be zero could be undone by moving the target of any published
cell that counts `i`: that of weight :math:`w_k` by :math:`g_i / w_k`. This is by how much the cell
deviates from what the optimum demands, in counts. It is judged in units of the cell's own: one
count, times how much noisier it is than the others that count `i`, or a share of its size where
that is more. Nothing is divided by the largest entry of anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design

Vector = NDArray[np.float64]

SHARE = 1e-3  # of its size that is one unit of a large cell
ROUNDING = 1e-14  # of the forces on a cell: what double precision leaves


@dataclass(frozen=True)
class Accuracy:
    """What was asked for.

    Attributes:
      tolerance: Deviation of a cell in its own units.
      count: What one count is in the units of the data, the smallest unit of a cell.
    """

    tolerance: float
    count: float = 1.0


@dataclass(frozen=True, eq=False)
class Goal:
    r"""Limits that make a certificate hold.

    Attributes:
      accuracy: What was asked for.
      gradient: For every inner cell the largest gradient,
        :math:`\sqrt{\sum_k w_k} / \sum_k w_k^{-1/2}` for one count, summed over the published cells
        that count it and are not held.
      margin: For every published cell the largest deviation where it is held.
      inner: For every inner cell the largest deviation from the form that singles it out.
      size: The size of the smallest published cells that count an inner cell, one over the sum
        of their inverses.
    """

    accuracy: Accuracy
    gradient: Vector
    margin: Vector
    inner: Vector
    size: Vector

    @classmethod
    def of(
        cls,
        design: Design,
        z: Vector,
        weights: Vector,
        held: NDArray[np.int64],
        accuracy: Accuracy,
    ) -> Goal:
        """The limits of a problem; held margins count only where nothing else does."""
        largest = float(np.abs(z).max(initial=0.0)) or accuracy.count
        count, tolerance = min(accuracy.count, largest), accuracy.tolerance
        size, soft = np.maximum(np.abs(z), count), weights.copy()
        soft[held] = 0.0
        gradient = _gradients(design, soft, size, count)
        if len(held):
            others = _gradients(design, weights, size, count)
            gradient = np.where(gradient > 0, gradient, others)
        rounding = ROUNDING * design.adjoint(soft * size)
        smallest = _inverse(design.adjoint((weights > 0) / size))
        return cls(
            accuracy,
            np.maximum(tolerance * np.where(gradient > 0, gradient, count), rounding),
            tolerance * np.maximum(count, SHARE * size),
            tolerance * np.maximum(count, SHARE * smallest),
            smallest,
        )


def _gradients(design: Design, weights: Vector, size: Vector, count: float) -> Vector:
    """The gradient that is one unit of each inner cell; zero where no published cell counts it."""
    noise = _inverse(np.sqrt(weights))
    counts = count * np.sqrt(design.adjoint(weights)) * _inverse(design.adjoint(noise))
    return np.maximum(counts, SHARE * _inverse(design.adjoint(noise**2 / size)))


def _inverse(values: Vector) -> Vector:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
