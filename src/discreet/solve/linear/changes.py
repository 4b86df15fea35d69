r"""Changes of sums that leave others as they are.

Sums :math:`s` of nonnegative cells are tied by equations, each sum to its parts. A change of the
open sums satisfies the same equations, leaves all others unmoved, and takes no sum below its floor.
The programs here find the change that moves a sum by a given amount and costs least. In a large
table they can look at the sums near it first, and at all only where these are not enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InfeasibleError
from discreet.solve.linear.boxes import Boxes, Room
from discreet.solve.linear.parts import Part, Ties
from discreet.solve.linear.program import Program

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]
Places = NDArray[np.intp]

UNMOVED = 1e-7
"""Moves below this share of the goal are rounding errors."""

_TRIALS, _SELDOM = 50, 0.05  # how often sums near a goal are tried, and must be enough
_NEAR, _FAR = 250, 25  # inner cells that make as much effort in boxes as a sum in a program
_PAID = 1.0  # changes that cost less are made of sums that are free
_EASY = 10_000  # sums from which on the effort of a program grows with their fourth power


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


class Change(NamedTuple):
    """Moves of some sums.

    Attributes:
      places: The sums that move.
      values: By how much.
    """

    places: Places
    values: Vector

    def on(self, n: int) -> Vector:
        """The moves of all sums."""
        full = np.zeros(n)
        full[self.places] = self.values
        return full


class Changes:
    """The changes of some open sums.

    Attributes:
      effort: How many sums programs may still have, all programs together; any number if `None`.

    Args:
      equations: Sums × equations, sparse.
      is_open: Which sums may move.
      down: How far each sum can go down; infinite where nothing is known.
      cost: What a unit of each sum's move costs; one when absent.
      up: How far each sum can go up; any far when absent.
      near: How many sums around the goal are looked at before all are; none when absent.
      effort: How many sums programs may have, all programs together; any number when absent.
      boxes: Changes along boxes, which are looked at before all sums are.
    """

    def __init__(
        self,
        equations: Any,
        is_open: Marks,
        down: Vector,
        cost: Vector | None = None,
        *,
        up: Vector | None = None,
        near: int | None = None,
        effort: int | None = None,
        boxes: Boxes | None = None,
    ) -> None:
        self._boxes, self._is_uniform = boxes, cost is None
        self._usable = movable(equations, is_open)
        self._moves = self._usable.copy()
        self._up = np.full(len(down), np.inf) if up is None else up
        self._down, self.effort = down, effort
        self._free = np.full(len(down), cost is None)
        self._cost = np.ones(len(down)) if cost is None else cost.copy()
        self._equations = equations
        self._whole: _Whole | None = None
        self._tried = self._reached = 0
        is_large = near is not None and near < np.count_nonzero(self._moves)
        self._near = near if is_large else None
        self._ties = Ties(equations, self._cost) if is_large else None

    @property
    def moves(self) -> Marks:
        """Which sums can take part in a change at all."""
        return self._moves

    def cheapest(self, goal: Goal, held: Places) -> Change | None:
        """The cheapest change that reaches a goal while other sums are held, if there is one.

        Where sums near the goal are enough, or a box, it is the cheapest of these. When all effort
        is spent, none is found.
        """
        if (self._up if goal.sign > 0 else self._down)[goal.total] < goal.reach:
            return None
        before = self._usable[held]
        self._usable[held] = False
        try:
            return self._found(goal) if self._usable[goal.total] else None
        finally:
            self._usable[held] = before

    def price(self, sums: Places, cost: float, *, free: bool = True) -> None:
        """Say what a move of some sums costs from now on, and whether that is little."""
        self._cost[sums] = cost
        self._free[sums] = free

    def close(self, total: int, *, closed: bool = True) -> None:
        """Let a sum move no more, or again."""
        self._usable[total] = self._moves[total] and not closed

    def _found(self, goal: Goal) -> Change | None:
        """A box where costs do not matter or tables are large; else the cheapest change."""
        if self._is_uniform and (box := self._along_box(goal)) is not None:
            return box
        if self._ties is not None and self._near is not None:
            if self._is_worthwhile() and self._can_afford(self._near):
                part = self._ties.near(goal.total, self._near, self._usable, self._free)
                found = self._within(part, goal)
                self._tried += 1
                self._reached += found is not None
                if found is not None or part.is_whole:
                    return found
            if not self._is_uniform and (box := self._along_box(goal)) is not None:
                return box
        return self._throughout(goal)

    def _is_worthwhile(self) -> bool:
        """Whether sums near a goal were enough often enough that it is tried again."""
        return self._tried < _TRIALS or self._reached > _SELDOM * self._tried

    def _along_box(self, goal: Goal) -> Change | None:
        """A change along a box: one that costs nothing, or else the cheapest."""
        if self._boxes is None:
            return None
        is_far = not self._is_uniform
        if not self._can_afford(len(self._boxes) // (_FAR if is_far else _NEAR)):
            return None
        room = Room(self._usable, self._up, self._down, self._cost)
        enough = _PAID if is_far else np.inf
        found = self._boxes.cheapest(
            goal.total, goal.sign * goal.reach, room, enough=enough, far=is_far
        )
        return None if found is None else Change(*found)

    def _throughout(self, goal: Goal) -> Change | None:
        """The cheapest change of all sums."""
        sums = int(np.count_nonzero(self._moves))
        if not self._can_afford(math.ceil(sums * max(1.0, sums / _EASY) ** 3)):
            return None
        if self._whole is None:
            self._whole = _Whole(self._equations, self._moves, self._up, self._down)
        return self._whole.cheapest(goal, self._usable, self._cost)

    def _can_afford(self, sums: int) -> bool:
        """Spend effort on a program with some sums, if that much is left."""
        if self.effort is None:
            return True
        if self.effort < sums:
            return False
        self.effort -= sums
        return True

    def _within(self, part: Part, goal: Goal) -> Change | None:
        """The cheapest change of a part of the sums."""
        place = np.flatnonzero(part.sums == goal.total)
        if not len(place):
            return None
        up, down = self._up[part.sums], self._down[part.sums]
        floor, ceiling = _bounds(goal, int(place[0]), up, down)
        none = np.zeros(part.matrix.shape[1])
        program = Program(part.matrix, none, none, floor, ceiling, dual=True)
        try:
            solution = program.minimise(np.tile(self._cost[part.sums], 2))
        except InfeasibleError:
            return None
        return _change(part.sums, solution, goal)


class _Whole:
    """The program of all sums that can move, solved anew for each goal."""

    def __init__(self, equations: Any, moves: Marks, up: Vector, down: Vector) -> None:
        from scipy import sparse

        self.sums = np.flatnonzero(moves)
        self._place = np.full(len(moves), -1)
        self._place[self.sums] = np.arange(len(self.sums))
        self._up, self._down = up[self.sums], down[self.sums]
        part = equations.tocsr()[self.sums].tocsc()
        matrix = part[:, np.diff(part.indptr) > 0]
        both = sparse.vstack([matrix, -matrix], format="csc")
        none = np.zeros(matrix.shape[1])
        ceiling = np.concatenate([self._up, self._down])
        floor = np.zeros(len(ceiling))
        self._program = Program(both, none, none, floor, ceiling, dual=True)

    def cheapest(self, goal: Goal, usable: Marks, cost: Vector) -> Change | None:
        """The cheapest change of sums that are usable."""
        can = usable[self.sums]
        up, down = np.where(can, self._up, 0.0), np.where(can, self._down, 0.0)
        floor, ceiling = _bounds(goal, int(self._place[goal.total]), up, down)
        try:
            solution = self._program.afresh(np.tile(cost[self.sums], 2), floor, ceiling)
        except InfeasibleError:
            return None
        return _change(self.sums, solution, goal)


def _bounds(goal: Goal, place: int, up: Vector, down: Vector) -> tuple[Vector, Vector]:
    """How far sums must go and may go, up and then down."""
    n = len(up)
    floor, ceiling = np.zeros(2 * n), np.concatenate([up, down])
    ahead, behind = (place, n + place) if goal.sign > 0 else (n + place, place)
    floor[ahead], ceiling[ahead], ceiling[behind] = goal.reach, goal.reach, 0.0
    return floor, ceiling


def _change(sums: Places, solution: Vector | None, goal: Goal) -> Change | None:
    """The moves of a solution."""
    if solution is None:
        return None
    moved = solution[: len(sums)] - solution[len(sums) :]
    is_moved = np.abs(moved) > UNMOVED * goal.reach
    return Change(sums[is_moved], moved[is_moved])


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
