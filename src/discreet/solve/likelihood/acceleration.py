"""Anderson's acceleration of a fixed-point iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_RIDGE = 1e-10  # against a singular system of differences, relative to its trace


class Anderson:
    r"""Extrapolates from the last steps of :math:`x \leftarrow G(x)`.

    With residuals :math:`f_t = G(x_t) - x_t`, the weights :math:`c` that make
    :math:`\|f_t - \Delta F c\|_W` smallest give the proposal :math:`G(x_t) - \Delta G\,c`.

    Args:
      memory: How many differences are kept; zero proposes nothing.
      scale: Square roots of the norm's weights.

    See Walker & Ni (2011).
    """

    def __init__(self, memory: int, scale: Vector) -> None:
        self._scale, self._memory = scale, memory
        self._images = np.empty((memory, len(scale)))
        self._residuals = np.empty((memory, len(scale)))
        self._gram = np.empty((memory, memory))
        self._kept = 0
        self._last: tuple[Vector, Vector] | None = None

    def propose(self, x: Vector, image: Vector) -> Vector | None:
        """The extrapolated point after the step from `x` to `image`, once there is a history."""
        residual = (image - x) * self._scale
        if self._last is not None and self._memory:
            self._keep(image - self._last[0], residual - self._last[1])
        self._last = (image.copy(), residual)
        filled = min(self._kept, self._memory)
        gram = self._gram[:filled, :filled].copy()
        if not gram.any():
            return None
        gram[np.diag_indices(filled)] += _RIDGE * np.trace(gram)
        weights = np.linalg.solve(gram, self._residuals[:filled] @ residual)
        return np.asarray(image - weights @ self._images[:filled])

    def _keep(self, image: Vector, residual: Vector) -> None:
        """Put differences in the place of the oldest ones."""
        place = self._kept % self._memory
        self._kept += 1
        self._images[place], self._residuals[place] = image, residual
        filled = min(self._kept, self._memory)
        products = self._residuals[:filled] @ residual
        self._gram[place, :filled] = self._gram[:filled, place] = products

    def forget(self) -> None:
        """Drop the history, after a proposal that did not help."""
        self._kept, self._last = 0, None
