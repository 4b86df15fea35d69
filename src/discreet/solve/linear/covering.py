r"""Covers: what must be open so that sums can move as far as they should, and cheapest choices.

A change :math:`\Delta` of sums satisfies their equations, and no sum that is not open moves. Prices
of the equations give weights `w` with :math:`w^\top\Delta = \pm\Delta_t` for every change. A sum
moves down by its room at most, so if the target moves by `r`,

.. math:: \sum_{w_j<0} |w_j|\, d_j\, x_j + \sum_{w_j>0} \infty\, x_j \ge r,

with `x` one for open sums. Coefficients above `r` are as good as `r` itself. The cheapest choice of
what to open meets all covers found so far: its coefficients add up to one or more in each.

See Fischetti & Salazar-González (2000).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from discreet.arrays import Index, Mask, Real
from discreet.errors import NotConvergedError
from discreet.solve.linear.changes import MoveGoal, Tied
from discreet.solve.linear.program import Program

_SOLVED, _LIMIT, _OTHER = 0, 1, 4  # SciPy has no number of its own for a limit of nodes
# Covers times nodes of trees of choices, all choices together: about ten seconds. A limit in
# seconds would make patterns depend on the machine.
_EFFORT = 60_000
_ROOT = 10  # nodes that the first of a tree counts for: it solves a program from nothing
_NOTHING = 1e-7  # weights below this are rounding errors
_MISSING = 1e-6  # covers that are missed by less are met


class Cuts:
    """Covers that follow from the equations, where some sums are open and some may be opened."""

    def __init__(self, sums: Tied, always: Mask, choice: Index) -> None:
        self._equations, self._down = sums.equations, sums.down
        self._always, self._choice = always, choice
        none, up = np.zeros(sums.equations.shape[1]), np.full(len(sums), np.inf)
        self._program = Program(sums.equations, none, none, -sums.down, up, changing="bounds")

    def cut(self, goal: MoveGoal, held: Index, share: Real) -> Real | None:
        """Coefficients of the choice that add up to one in every pattern with the goal reached.

        Args:
          goal: A sum that is to move.
          held: Sums that must not.
          share: How far each sum of the choice is open, zero to one. Only a cover that it misses
            is given.
        """
        # Those that are open in part go no further than the goal. Their limits decide which prices
        # are found, not whether the cover holds.
        opened = self._always.astype(np.float64)
        opened[self._choice] = share
        wide = opened >= 1
        up = np.where(wide, np.inf, goal.reach * opened)
        down = np.where(wide, self._down, np.minimum(self._down, goal.reach) * opened)
        up[held] = down[held] = 0.0
        ahead = up if goal.sign > 0 else down
        ahead[goal.total] = min(ahead[goal.total], goal.reach)
        cost = np.zeros(len(up))
        cost[goal.total] = -goal.sign
        self._program.afresh(cost, -down, up)
        weights = np.asarray(self._equations @ self._program.prices()) - cost
        weights[np.abs(weights) < _NOTHING] = 0.0
        weights[held] = 0.0
        gain = np.where(weights > 0, np.inf, 0.0)
        falls = weights < 0
        gain[falls] = -weights[falls] * self._down[falls]
        missing = goal.reach - float(gain[self._always].sum())
        if missing <= _MISSING * goal.reach:
            return None
        coefficients = np.minimum(gain[self._choice] / missing, 1.0)
        return coefficients if coefficients @ share < 1 - _MISSING else None


class CoverChoice(NamedTuple):
    """The outcome of a choice.

    Attributes:
      share: How much of each thing is chosen, zero to one; `None` where no choice was found.
      bound: What every choice costs at least.
    """

    share: Real | None
    bound: float


class Covering:
    """Things with costs, and the covers found so far; `effort` counts covers times nodes."""

    def __init__(self, cost: Real, *, effort: int = _EFFORT) -> None:
        self._cost, self._effort = cost, effort
        self._scale = float(cost.max(initial=0.0)) or 1.0
        self._rows: list[Real] = []

    def add(self, coefficients: Real) -> None:
        """Ask that the coefficients of what is chosen add up to one or more."""
        self._rows.append(coefficients)

    def relaxed(self) -> CoverChoice:
        """The cheapest choice where parts of things can be chosen."""
        if not self._rows or not len(self._cost):
            return CoverChoice(np.zeros(len(self._cost)), 0.0)
        found = self._solve({})
        return CoverChoice(found.x, float(found.fun) * self._scale)

    def whole(self, gap: float = 0.0) -> CoverChoice:
        """The cheapest choice of whole things, by a share of `gap` above the bound at most."""
        if not self._rows or not len(self._cost):
            return CoverChoice(np.zeros(len(self._cost)), 0.0)
        nodes = self._effort // len(self._rows) - _ROOT
        if nodes <= 0:
            return CoverChoice(None, 0.0)
        found = self._solve({"mip_rel_gap": gap, "node_limit": nodes}, whole=True)
        self._effort -= len(self._rows) * (_ROOT + (found.mip_node_count or 0))
        share = None if found.x is None else np.round(found.x)
        return CoverChoice(share, float(found.mip_dual_bound or 0.0) * self._scale)

    def _solve(self, options: Any, *, whole: bool = False) -> Any:
        from scipy.optimize import Bounds, LinearConstraint, milp

        found = milp(
            self._cost / self._scale,
            integrality=np.full(len(self._cost), int(whole)),
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(np.array(self._rows), lb=1.0),
            options=options,
        )
        is_limited = found.status == _OTHER and found.mip_dual_bound is not None
        if found.status not in (_SOLVED, _LIMIT) and not is_limited:
            raise NotConvergedError(f"a choice of least cost was not found: {found.message}")
        return found
