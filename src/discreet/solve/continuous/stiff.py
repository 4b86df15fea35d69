r"""Exact margins and very heavy ones, met by shifting their targets.

A margin that must be met exactly, or whose weight exceeds the others' by far, would make the
equations stiff. It gets an ordinary weight instead, and its target is moved until the margin comes
out right: the method of multipliers. With weight :math:`w`, working weight :math:`\kappa` and
:math:`\rho = \kappa / w` (zero for an exact margin) the shift

.. math:: e \leftarrow (1 - \rho)(e + z - X^\top y)

has its fixed point where the fit with targets :math:`z + e` is the one asked for.
See Bertsekas (1982).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.solve.continuous.problem import Problem

Vector = NDArray[np.float64]

_STIFF = 30.0  # times the median weight: beyond it a weight is worked off by shifting
_WORKING = 3.0  # times the median weight: what a stiff margin weighs instead


class StiffMargins:
    """The margins of a problem that are met by shifting.

    Args:
      problem: Targets and weights.
      exact: Published positions that must be met; their weights do not matter.
    """

    def __init__(self, problem: Problem, exact: NDArray[np.int64]) -> None:
        weights = problem.weights.copy()
        weights[exact] = np.inf
        soft = weights[(weights > 0) & np.isfinite(weights)]
        typical = float(np.median(soft)) if len(soft) else 1.0
        self._at = np.flatnonzero(weights > _STIFF * typical)
        self._ratio = _WORKING * typical / weights[self._at]
        weights[self._at] = _WORKING * typical
        self._true = problem.z[self._at]
        self._shift = np.zeros(len(self._at))
        self._exact = exact
        self.problem = problem.weighing(weights) if len(self._at) else problem
        self.deviation = np.inf if len(self._at) else 0.0

    def __bool__(self) -> bool:
        return len(self._at) > 0

    def update(self, fitted: Vector) -> Problem:
        """Shift the targets after a fit; `deviation` is how far they moved."""
        moved = (1 - self._ratio) * (self._shift + self._true - fitted[self._at])
        self.deviation = float(np.abs(moved - self._shift).max(initial=0.0)) / self.problem.size
        self._shift = moved
        z = self.problem.z.copy()
        z[self._at] = self._true + moved
        self.problem = self.problem.aiming(z)
        return self.problem

    def multipliers(self, fitted: Vector) -> Vector:
        """Multipliers of the exact margins, zero elsewhere."""
        found = np.zeros(len(fitted))
        found[self._exact] = self.problem.misfit(fitted)[self._exact]
        return found
