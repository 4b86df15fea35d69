r"""Changes of sums that leave others as they are.

Sums :math:`s` of nonnegative cells are tied by equations, each sum to its parts. A change of the
open sums satisfies the same equations, leaves all others unmoved, and takes no sum below its floor.
The programs here find a change that moves chosen sums far, or one that moves a sum by a given
amount and costs least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InfeasibleError
from discreet.solve.program import Program

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]
Places = NDArray[np.intp]

LITTLE = 1e-5
"""What each unit of a move costs beside one unit of a goal, so that nothing moves in vain."""
UNMOVED = 1e-7
"""Moves below this share of the goal are rounding errors."""


@dataclass(frozen=True, eq=False)
class Goal:
    """Sums that are to move.

    Attributes:
      sums: Which sums.
      signs: Plus or minus one: up or down.
      reach: How far each of them is to move, at most.
    """

    sums: Places
    signs: Vector
    reach: Vector


class Changes:
    """The changes of some open sums.

    Args:
      equations: Sums × equations, sparse.
      is_open: Which sums may move.
      down: How far each sum can go down; infinite where nothing is known.
      cost: What a unit of each sum's move costs; one when absent.
    """

    def __init__(
        self, equations: Any, is_open: Marks, down: Vector, cost: Vector | None = None
    ) -> None:
        self._open = np.flatnonzero(movable(equations, is_open))
        self._place = np.full(len(is_open), -1)
        self._place[self._open] = np.arange(len(self._open))
        self._down = down[self._open]
        self._closed = np.zeros(len(self._open), dtype=bool)
        part = equations.tocsr()[self._open].tocsc()
        self._matrix = part[:, np.diff(part.indptr) > 0]
        self._cost = np.ones(len(self._open)) if cost is None else cost[self._open]
        self._far: Program | None = None
        self._cheap: Program | None = None

    @property
    def moves(self) -> Marks:
        """Which sums can take part in a change at all."""
        return self._place >= 0

    def farthest(self, goal: Goal, held: Places) -> Vector:
        """The change that brings the goal's sums farthest, while other sums are held."""
        if self._far is None:
            self._far = self._program(dual=False)
        n, cost = len(self._open), np.full(2 * len(self._open), LITTLE)
        place, signs, reach = self._within(goal)
        cost[place] -= signs
        cost[n + place] += signs
        floor, ceiling = np.zeros(2 * n), self._ceiling(held)
        ahead = np.where(signs > 0, place, n + place)
        ceiling[ahead] = np.minimum(ceiling[ahead], reach)
        return self._spread(self._far.afresh(cost, floor, ceiling), float(reach.max(initial=0.0)))

    def cheapest(self, goal: Goal, held: Places) -> Vector | None:
        """The cheapest change that brings the goal's sums as far as asked, if there is one."""
        place, signs, reach = self._within(goal)
        if len(place) < len(goal.sums):
            return None
        if self._cheap is None:
            self._cheap = self._program(dual=True)
        n = len(self._open)
        floor, ceiling = np.zeros(2 * n), self._ceiling(held)
        ahead, behind = np.where(signs > 0, (place, n + place), (n + place, place))
        if (ceiling[ahead] < reach).any():
            return None
        floor[ahead], ceiling[ahead], ceiling[behind] = reach, reach, 0.0
        cost = np.concatenate([self._cost, self._cost])
        try:
            return self._spread(self._cheap.afresh(cost, floor, ceiling), float(reach.max()))
        except InfeasibleError:
            return None

    def price(self, sums: Places, cost: Vector) -> None:
        """Change what moves of some sums cost."""
        place = self._place[sums]
        self._cost[place[place >= 0]] = cost[place >= 0]

    def close(self, total: int, *, closed: bool = True) -> None:
        """Let a sum move no more, or again."""
        if self._place[total] >= 0:
            self._closed[self._place[total]] = closed

    def _program(self, *, dual: bool) -> Program:
        from scipy import sparse

        both = sparse.vstack([self._matrix, -self._matrix], format="csc")
        none = np.zeros(self._matrix.shape[1])
        ceiling = self._ceiling(np.empty(0, np.intp))
        return Program(both, none, none, np.zeros(len(ceiling)), ceiling, dual=dual)

    def _ceiling(self, held: Places) -> Vector:
        """How far each sum may go up, then how far down."""
        up, down = np.full(len(self._open), np.inf), self._down.copy()
        still = self._closed.copy()
        place = self._place[held]
        still[place[place >= 0]] = True
        up[still] = down[still] = 0.0
        return np.concatenate([up, down])

    def _within(self, goal: Goal) -> tuple[Places, Vector, Vector]:
        place = self._place[goal.sums]
        inside = place >= 0
        return place[inside], goal.signs[inside], goal.reach[inside]

    def _spread(self, solution: Vector | None, reach: float) -> Vector:
        change = np.zeros(len(self._place))
        if solution is not None:
            n = len(self._open)
            moved = solution[:n] - solution[n:]
            moved[np.abs(moved) <= UNMOVED * reach] = 0.0
            change[self._open] = moved
        return change


def movable(equations: Any, is_open: Marks) -> Marks:
    """The open sums without those that an equation fixes, since it has no other open one."""
    entries = equations.tocoo()
    found = is_open.copy()
    while True:
        inside = found[entries.row]
        count = np.bincount(entries.col[inside], minlength=equations.shape[1])
        fixed = entries.row[inside & (count[entries.col] == 1)]
        if not len(fixed):
            return found
        found[fixed] = False
