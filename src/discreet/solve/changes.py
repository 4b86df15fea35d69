r"""Changes of sums that leave others as they are.

Sums :math:`s` of nonnegative cells are tied by equations, each sum to its parts. A change of the
open sums satisfies the same equations, leaves all others unmoved, and takes no sum below its floor.
The programs here find the change that moves a sum by a given amount and costs least.
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

UNMOVED = 1e-7
"""Moves below this share of the goal are rounding errors."""


@dataclass(frozen=True, eq=False)
class Goal:
    """A sum that is to move.

    Attributes:
      total: Which sum.
      sign: Plus or minus one: up or down.
      reach: How far.
    """

    total: int
    sign: float
    reach: float


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
        self._program: Program | None = None

    @property
    def moves(self) -> Marks:
        """Which sums can take part in a change at all."""
        return self._place >= 0

    def cheapest(self, goal: Goal, held: Places) -> Vector | None:
        """The cheapest change that reaches a goal while other sums are held, if there is one."""
        n, place = len(self._open), int(self._place[goal.total])
        floor, ceiling = np.zeros(2 * n), self._ceiling(held)
        ahead, behind = (place, n + place) if goal.sign > 0 else (n + place, place)
        if place < 0 or ceiling[ahead] < goal.reach:
            return None
        floor[ahead], ceiling[ahead], ceiling[behind] = goal.reach, goal.reach, 0.0
        if self._program is None:
            self._program = self._new_program()
        try:
            solution = self._program.afresh(np.tile(self._cost, 2), floor, ceiling)
        except InfeasibleError:
            return None
        return self._spread(solution, goal.reach)

    def price(self, sums: Places, cost: Vector) -> None:
        """Change what moves of some sums cost."""
        place = self._place[sums]
        self._cost[place[place >= 0]] = cost[place >= 0]

    def close(self, total: int, *, closed: bool = True) -> None:
        """Let a sum move no more, or again."""
        if self._place[total] >= 0:
            self._closed[self._place[total]] = closed

    def _new_program(self) -> Program:
        from scipy import sparse

        both = sparse.vstack([self._matrix, -self._matrix], format="csc")
        none = np.zeros(self._matrix.shape[1])
        ceiling = self._ceiling(np.empty(0, np.intp))
        return Program(both, none, none, np.zeros(len(ceiling)), ceiling, dual=True)

    def _ceiling(self, held: Places) -> Vector:
        """How far each sum may go up, then how far down."""
        up, down = np.full(len(self._open), np.inf), self._down.copy()
        still = self._closed.copy()
        place = self._place[held]
        still[place[place >= 0]] = True
        up[still] = down[still] = 0.0
        return np.concatenate([up, down])

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
