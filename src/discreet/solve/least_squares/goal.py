r"""What a least squares fit is asked to reach, for every cell on its own scale.

A gradient :math:`g_i` that should be zero could be undone by moving the target of any published
cell `k` that counts `i` by :math:`g_i / w_k`. By so much that cell deviates from what the optimum
demands. The limit is a share of one count, more for cells that are noisier than the others beside
them: :math:`|g_i| \le \tau c \sqrt{\sum_k w_k / \sum_k w_k^{-1}}`, which is :math:`\tau c w` where
weights are alike. Nothing is divided by the largest entry of anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design

Vector = NDArray[np.float64]

CHOICE = 100.0  # times the tolerance: what the choice among equal fits may be off
EXCESS = 0.05  # of the smallest norm: what a norm may exceed it by where cells are not judged
RESOLVED = 1e-12  # share of its size to which a margin that is held can be told from another
ROUNDING = 1e-13  # of the forces on a cell: what double precision leaves


@dataclass(frozen=True)
class Accuracy:
    """What was asked for.

    Attributes:
      tolerance: Deviation of a cell, in counts.
      count: What one count is in the units of the data.
    """

    tolerance: float
    count: float = 1.0


@dataclass(frozen=True, eq=False)
class Goal:
    """Limits that make a certificate hold.

    Attributes:
      tolerance: What was asked for.
      gradient: For every inner cell the largest gradient.
      curvature: For every inner cell the gradient that a count too many causes.
      margin: For every published cell the largest deviation where it is held.
      inner: For every inner cell the largest deviation from the form that singles it out.
      size: The size of the smallest published cells that count an inner cell.
    """

    accuracy: Accuracy
    gradient: Vector
    curvature: Vector
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
        """The limits of a problem; held margins have forces of their own, whatever their weight."""
        size, soft = np.abs(z), weights.copy()
        soft[held] = 0.0
        deviation = accuracy.tolerance * min(accuracy.count, size.max(initial=0.0) or np.inf)
        smallest = _inverse(design.adjoint((weights > 0) / np.maximum(size, accuracy.count)))
        total, spread = design.adjoint(soft), design.adjoint(_inverse(soft))
        seen = total > 0
        elsewhere = _unit(soft.sum(), _inverse(soft).sum())
        unit = np.where(seen, _unit(total, spread), elsewhere)
        return cls(
            accuracy,
            np.maximum(deviation * unit, ROUNDING * design.adjoint(soft * size)),
            np.where(seen, total, elsewhere),
            np.maximum(deviation, RESOLVED * size),
            CHOICE * np.maximum(deviation, RESOLVED * smallest),
            smallest,
        )


def _unit(total: Vector, spread: Vector) -> Vector:
    return np.sqrt(np.divide(total, spread, out=np.ones_like(total), where=spread > 0))


def _inverse(values: Vector) -> Vector:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
