r"""What a least squares fit is asked to reach, for every cell on its own scale.

A gradient :math:`g_i` that should be zero could be undone by moving the target of any published
cell `k` that counts `i` by :math:`g_i / w_k`. By so much that cell deviates from what the optimum
demands. The limit is a share of one count, more for cells that are noisier than the others beside
them: :math:`|g_i| \le \tau c \sqrt{\sum_k w_k / \sum_k w_k^{-1}}`, which is :math:`\tau c w` where
weights are alike. Nothing is divided by the largest entry of anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet.arrays import Real, Whole
from discreet.solve.least_squares.basis import pseudo_inverse
from discreet.solve.least_squares.schedule import GOAL


class InnerCells(Protocol):
    """All inner cells of a design, or some."""

    def adjoint(self, z: Real, /) -> Real:
        """For each of them the sum over the published cells that it counts in."""


@dataclass(frozen=True)
class Accuracy:
    """What was asked for.

    Attributes:
      tolerance: Deviation of a cell, in counts.
      count: What one count is in the units of the data.
    """

    tolerance: float
    count: float = 1.0

    def deviation(self, z: Real) -> float:
        """The deviation in the units of the data; less where all targets are below one count."""
        return self.tolerance * min(self.count, float(np.abs(z).max(initial=0.0)) or np.inf)


@dataclass(frozen=True, eq=False)
class Goal:
    """Limits that make a certificate hold.

    Attributes:
      accuracy: What was asked for.
      gradient: For every inner cell the largest gradient.
      curvature: For every inner cell the gradient that a count too many causes.
      margin: For every published cell the largest deviation where it is held.
      inner: For every inner cell the largest deviation from the form that singles it out.
      size: The size of the smallest published cells that count an inner cell.
    """

    accuracy: Accuracy
    gradient: Real
    curvature: Real
    margin: Real
    inner: Real
    size: Real

    @classmethod
    def of(
        cls,
        design: InnerCells,
        z: Real,
        weights: Real,
        held: Whole,
        accuracy: Accuracy,
    ) -> Goal:
        """The limits of a problem; held margins have multipliers, whatever their weight."""
        size, soft, deviation = np.abs(z), weights.copy(), accuracy.deviation(z)
        soft[held] = 0.0
        smallest = smallest_sizes(design, z, weights, accuracy.count)
        total = design.adjoint(soft)
        return cls(
            accuracy,
            gradient_limits(design, z, soft, accuracy),
            np.where(total > 0, total, _unit(soft.sum(), pseudo_inverse(soft).sum())),
            np.maximum(deviation, GOAL.resolved * size),
            GOAL.choice * np.maximum(deviation, GOAL.resolved * smallest),
            smallest,
        )


def gradient_limits(design: InnerCells, z: Real, soft: Real, accuracy: Accuracy) -> Real:
    """For every inner cell the largest gradient, with the weights of the margins not held."""
    total, spread = design.adjoint(soft), design.adjoint(pseudo_inverse(soft))
    elsewhere = _unit(soft.sum(), pseudo_inverse(soft).sum())
    unit = np.where(total > 0, _unit(total, spread), elsewhere)
    return np.maximum(
        accuracy.deviation(z) * unit, GOAL.rounding * design.adjoint(soft * np.abs(z))
    )


def smallest_sizes(design: InnerCells, z: Real, weights: Real, count: float) -> Real:
    """The size of the smallest published cells that count each inner cell; zero where none does."""
    return pseudo_inverse(design.adjoint((weights > 0) / np.maximum(np.abs(z), count)))


def _unit(total: Real, spread: Real) -> Real:
    return np.sqrt(np.divide(total, spread, out=np.ones_like(total), where=spread > 0))
