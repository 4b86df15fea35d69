r"""What must be open so that a sum can move as far as it should.

A change :math:`\Delta` of sums satisfies their equations, and no sum that is not open moves. Prices
of the equations give weights `w` with :math:`w^\top\Delta = \pm\Delta_t` for every change. A sum
moves down by its room at most, so if the target moves by `r`,

.. math:: \sum_{w_j<0} |w_j|\, d_j\, x_j + \sum_{w_j>0} \infty\, x_j \ge r,

with `x` one for open sums. Coefficients above `r` are as good as `r` itself.

See Fischetti & Salazar-González (2000).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.solve.linear.changes import Goal
from discreet.solve.linear.program import Program

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]
Places = NDArray[np.intp]

_NOTHING = 1e-7  # weights below this are rounding errors
_MISSING = 1e-6  # covers that are missed by less are met


class Cuts:
    """Covers that follow from the equations.

    Args:
      equations: Sums × equations, sparse.
      always: Sums that are open in any case.
      choice: Sums that may be opened.
      down: How far each sum can go down; infinite where nothing is known.
    """

    def __init__(self, equations: Any, always: Marks, choice: Places, down: Vector) -> None:
        self._equations, self._choice, self._down = equations, choice, down
        self._always = always
        none = np.zeros(equations.shape[1])
        self._program = Program(equations, none, none, -down, np.full(len(down), np.inf), dual=True)

    def cut(self, goal: Goal, held: Places, share: Vector) -> Vector | None:
        """Coefficients of the choice that add up to one in every pattern with the goal reached.

        Args:
          goal: A sum that is to move.
          held: Sums that must not.
          share: How far each sum of the choice is open, zero to one. Only a cover that it misses
            is given.
        """
        weights = self._weights(goal, held, share)
        gain = np.where(weights > 0, np.inf, 0.0)
        falls = weights < 0
        gain[falls] = -weights[falls] * self._down[falls]
        missing = goal.reach - float(gain[self._always].sum())
        if missing <= _MISSING * goal.reach:
            return None
        coefficients = np.minimum(gain[self._choice] / missing, 1.0)
        return coefficients if coefficients @ share < 1 - _MISSING else None

    def _weights(self, goal: Goal, held: Places, share: Vector) -> Vector:
        """Weights from the prices of equations where the sum goes as far as it can."""
        up, down = self._room(goal, held, share)
        cost = np.zeros(len(up))
        cost[goal.total] = -goal.sign
        self._program.afresh(cost, -down, up)
        weights = np.asarray(self._equations @ self._program.prices()) - cost
        weights[np.abs(weights) < _NOTHING] = 0.0
        weights[held] = 0.0
        return weights

    def _room(self, goal: Goal, held: Places, share: Vector) -> tuple[Vector, Vector]:
        """How far sums may go up and down; those that are open in part, no further than the goal.

        The limits of the latter decide which prices are found, not whether their cover holds.
        """
        opened = self._always.astype(np.float64)
        opened[self._choice] = share
        wide = opened >= 1
        up = np.where(wide, np.inf, goal.reach * opened)
        down = np.where(wide, self._down, np.minimum(self._down, goal.reach) * opened)
        up[held] = down[held] = 0.0
        ahead = up if goal.sign > 0 else down
        ahead[goal.total] = min(ahead[goal.total], goal.reach)
        return up, down
