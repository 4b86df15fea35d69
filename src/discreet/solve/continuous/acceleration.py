"""Anderson's acceleration of a fixed-point iteration."""

from __future__ import annotations

from collections import deque

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
        self._scale = scale
        self._images: deque[Vector] = deque(maxlen=memory)
        self._residuals: deque[Vector] = deque(maxlen=memory)
        self._last: tuple[Vector, Vector] | None = None

    def propose(self, x: Vector, image: Vector) -> Vector | None:
        """The extrapolated point after the step from `x` to `image`, once there is a history."""
        residual = (image - x) * self._scale
        if self._last is not None:
            self._images.append(image - self._last[0])
            self._residuals.append(residual - self._last[1])
        self._last = (image.copy(), residual)
        if not self._residuals:
            return None
        steps = np.array(self._residuals)
        gram = steps @ steps.T
        gram[np.diag_indices(len(gram))] += _RIDGE * np.trace(gram)
        if not gram.any():
            return None
        weights = np.linalg.solve(gram, steps @ residual)
        return np.asarray(image - weights @ np.array(self._images))

    def forget(self) -> None:
        """Drop the history, after a proposal that did not help."""
        self._images.clear()
        self._residuals.clear()
        self._last = None
