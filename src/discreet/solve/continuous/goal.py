r"""What a least squares fit is asked to reach, for every cell on its own scale.

A gradient :math:`g_i` that should be zero could be undone by moving the target of any published
cell that counts `i`: that of weight :math:`w_k` by :math:`g_i / w_k`. By so much the cell deviates
from what the optimum demands, in counts. That is judged in units of its own: one count or its
residual, whichever is more, times how much noisier it is than the others that count `i`; or a share
of its size where that is more. Nothing is divided by the largest entry of anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design

Vector = NDArray[np.float64]

SHARE = 1e-4  # of its size that is one unit of a large cell
RESOLVED = 1e-11  # share of its size to which a margin that is held can be told from another
CHOICE = 1e4  # units that are one of the choice among equal fits
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

    With sums over the :math:`n_i` published cells that count `i` and are not held, and units
    :math:`u_k`, the gradient of `i` may be
    :math:`\sqrt{n_i \sum_k w_k u_k^2} / \sum_k w_k^{-1/2}` times the tolerance, which is
    :math:`wu` where all are alike.

    Attributes:
      accuracy: What was asked for.
      gradient: For every inner cell the largest gradient, with units of one count or of size.
      spread: The factor of the root of :math:`\sum_k w_k u_k^2` in it.
      weight: Mean weight of the published cells that count an inner cell.
      soft: Weights of the published cells that are not held.
      margin: For every published cell the largest deviation where it is held.
      size: The size of the smallest published cells that count an inner cell.
    """

    accuracy: Accuracy
    gradient: Vector
    spread: Vector
    weight: Vector
    soft: Vector
    margin: Vector
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
        spread, unit, weight = _units(design, soft, size, count)
        if len(held):
            _, *others = _units(design, weights, size, count)
            alone = weight == 0
            unit, weight = (np.where(alone, *pair) for pair in zip(others, (unit, weight), strict=True))
        rounding = ROUNDING * design.adjoint(soft * size)
        return cls(
            accuracy,
            np.maximum(tolerance * np.where(weight > 0, unit, count), rounding),
            tolerance * spread,
            np.where(weight > 0, weight, 1.0),
            soft,
            np.maximum(tolerance * count, RESOLVED * size),
            _inverse(design.adjoint((weights > 0) / size)),
        )

    def limits(self, design: Design, residual: Vector) -> Vector:
        """The largest gradients of a fit that leaves these residuals."""
        noise = self.spread * np.sqrt(design.adjoint(self.soft * residual**2))
        return np.maximum(self.gradient, noise)

    def inner(self, limits: Vector) -> Vector:
        """The largest deviations of inner cells from the form that singles them out."""
        return CHOICE * limits / self.weight


def _units(
    design: Design, weights: Vector, size: Vector, count: float
) -> tuple[Vector, Vector, Vector]:
    """The factor of residuals, the unit without them, and the mean weight of each inner cell."""
    number, inverse = design.adjoint((weights > 0).astype(np.float64)), _inverse(weights)
    total = design.adjoint(weights)
    spread = np.sqrt(number) * _inverse(design.adjoint(np.sqrt(inverse)))
    sizes = number * _inverse(design.adjoint(inverse / size))
    unit = np.maximum(count * spread * np.sqrt(total), SHARE * sizes)
    return spread, unit, total * _inverse(number)


def _inverse(values: Vector) -> Vector:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
