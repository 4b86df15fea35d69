r"""The least squares problem, :math:`\min_y \sum_k w_k (x_k^\top y - z_k)^2`, checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.design.base import Design
from discreet.solve.continuous.inputs import checked_values, checked_weights

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    r"""A design with checked targets and weights.

    Attributes:
      design: The design.
      z: Targets; zero where the weight is.
      weights: Precisions.
      scale: Largest entry of :math:`XWz`, against which gradients are measured.
    """

    design: Design
    z: Vector
    weights: Vector
    scale: float

    @classmethod
    def of(cls, design: Design, z: ArrayLike, weights: ArrayLike | None) -> Problem:
        """Checked; targets of cells with weight zero are not looked at."""
        w = checked_weights(design, weights)
        values = checked_values(design, z, w > 0)
        scale = float(np.abs(design.adjoint(w * values)).max(initial=0.0))
        return cls(design, values, w, scale or 1.0)

    @property
    def pull(self) -> Vector:
        r"""The gradient at zero with its sign turned, :math:`XWz`."""
        return self.design.adjoint(self.weights * self.z)

    def misfit(self, fitted: Vector) -> Vector:
        r"""Weighted residuals :math:`W(z - \hat z)` of fitted published cells."""
        return self.weights * (self.z - fitted)
