"""Changes of sums that leave others as they are.

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
from numba import njit

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.errors import InfeasibleError
from discreet.solve.linear.boxes import Boxes, Slack
from discreet.solve.linear.program import Program
from discreet.solve.linear.schedule import CHANGE


@dataclass(frozen=True, eq=False)
class MoveGoal:
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

    places: Index
    values: Real


@dataclass(frozen=True, eq=False)
class Tied:
    """Sums that are tied by equations.

    Attributes:
      equations: Sums × equations, sparse.
      down: How far each sum can go down; infinite where nothing is known.
      up: How far each can go up; infinite where no bound is public.
      boxes: Changes along boxes, where the sums are those of a table.
    """

    equations: Any
    down: Real
    up: Real
    boxes: Boxes | None = None

    def __len__(self) -> int:
        return len(self.down)


class Changes:
    """The changes of some open sums.

    Attributes:
      moves: Which sums can take part in a change at all.
      effort: How many sums programs may still have, all programs together; any number if `None`.

    Args:
      sums: The sums. Boxes are looked at before programs of all sums are solved.
      is_open: Which of them may move.
      cost: What a unit of each sum's move costs; one when absent.
      near: How many sums around the goal are looked at before all are; none when absent.
      effort: How many sums programs may have, all programs together; any number when absent.
    """

    def __init__(
        self,
        sums: Tied,
        is_open: Mask,
        cost: Real | None = None,
        *,
        near: int | None = None,
        effort: int | None = None,
    ) -> None:
        n, equations = len(sums), sums.equations
        self._equations, self._boxes, self._is_uniform = equations.tocsr(), sums.boxes, cost is None
        self.moves, self.effort = movable(equations, is_open), effort
        self._free = np.full(n, cost is None)
        cost = np.ones(n) if cost is None else cost.copy()
        self._room = Slack(self.moves.copy(), sums.up, sums.down, cost)
        self._whole: _PartProgram | None = None
        self._tried = self._reached = 0
        is_large = near is not None and near < np.count_nonzero(self.moves)
        self._near = Ties(equations, cost, near) if near and is_large else None

    def cheapest(self, goal: MoveGoal, held: Index) -> Change | None:
        """The cheapest change that reaches a goal while other sums are held, if there is one.

        Where sums near the goal are enough, or a box, it is the cheapest of these. When all effort
        is spent, none is found.
        """
        room = self._room
        if (room.up if goal.sign > 0 else room.down)[goal.total] < goal.reach:
            return None
        before = room.usable[held]
        room.usable[held] = False
        try:
            return self._found(goal) if room.usable[goal.total] else None
        finally:
            room.usable[held] = before

    def price(self, sums: Index, cost: float, *, free: bool = True) -> None:
        """Say what a move of some sums costs from now on, and whether that is little."""
        self._room.cost[sums] = cost
        self._free[sums] = free

    def close(self, total: int, *, closed: bool = True) -> None:
        """Let a sum move no more, or again."""
        self._room.usable[total] = self.moves[total] and not closed

    def _found(self, goal: MoveGoal) -> Change | None:
        """A box where costs do not matter or tables are large; else the cheapest change."""
        if self._is_uniform and (box := self._along_box(goal)) is not None:
            return box
        if self._near is not None:
            if self._is_worthwhile() and self._can_afford(self._near.size):
                sums, is_all = self._near.around(goal.total, self._room.usable, self._free)
                found = self._program(sums).cheapest(goal, self._room)
                self._tried += 1
                self._reached += found is not None
                if found is not None or is_all:
                    return found
            if not self._is_uniform and (box := self._along_box(goal)) is not None:
                return box
        return self._throughout(goal)

    def _is_worthwhile(self) -> bool:
        """Whether sums near a goal were enough often enough that it is tried again."""
        return self._tried < CHANGE.trials or self._reached > CHANGE.seldom * self._tried

    def _along_box(self, goal: MoveGoal) -> Change | None:
        """A change along a box: one that costs nothing, or else the cheapest."""
        if self._boxes is None:
            return None
        is_far = not self._is_uniform
        cells = CHANGE.box_effort if is_far else CHANGE.near_box_effort
        if not self._can_afford(len(self._boxes) // cells):
            return None
        enough = CHANGE.paid if is_far else np.inf
        amount = goal.sign * goal.reach
        found = self._boxes.cheapest(goal.total, amount, self._room, enough=enough, far=is_far)
        return None if found is None else Change(*found)

    def _throughout(self, goal: MoveGoal) -> Change | None:
        """The cheapest change of all sums."""
        sums = int(np.count_nonzero(self.moves))
        if not self._can_afford(math.ceil(sums * max(1.0, sums / CHANGE.easy) ** 3)):
            return None
        if self._whole is None:
            self._whole = self._program(np.flatnonzero(self.moves))
        return self._whole.cheapest(goal, self._room)

    def _can_afford(self, sums: int) -> bool:
        """Spend effort on a program with some sums, if that much is left."""
        if self.effort is not None:
            if self.effort < sums:
                return False
            self.effort -= sums
        return True

    def _program(self, sums: Index) -> _PartProgram:
        return _PartProgram(self._equations, sums, self._room)


class _PartProgram:
    """The program of some sums, moves up and then moves down, solved anew for each goal."""

    def __init__(self, equations: Any, sums: Index, room: Slack) -> None:
        from scipy.sparse import csr_array, vstack

        part = equations[sums]
        used, number = np.unique(part.indices, return_inverse=True)
        part = csr_array((part.data, number, part.indptr), shape=(len(sums), len(used)))
        moves = movable(part, np.ones(len(sums), dtype=bool))
        self._sums, part = sums[moves], part[moves]
        both, none = vstack([part, -part], format="csr"), np.zeros(len(used))
        floor, ceiling = np.zeros(both.shape[0]), self._ceiling(room)
        self._program = Program(both, none, none, floor, ceiling, changing="bounds")

    def cheapest(self, goal: MoveGoal, room: Slack) -> Change | None:
        """The cheapest change of sums that are usable."""
        place = np.flatnonzero(self._sums == goal.total)
        if not len(place):
            return None
        n, can = len(self._sums), room.usable[self._sums]
        ceiling = np.where(np.tile(can, 2), self._ceiling(room), 0.0)
        floor, ahead, behind = np.zeros(2 * n), place[0], n + place[0]
        if goal.sign < 0:
            ahead, behind = behind, ahead
        floor[ahead], ceiling[ahead], ceiling[behind] = goal.reach, goal.reach, 0.0
        try:
            solution = self._program.afresh(np.tile(room.cost[self._sums], 2), floor, ceiling)
        except InfeasibleError:
            return None
        if solution is None:
            return None
        moved = solution[:n] - solution[n:]
        is_moved = np.abs(moved) > CHANGE.unmoved * goal.reach
        return Change(self._sums[is_moved], moved[is_moved])

    def _ceiling(self, room: Slack) -> Real:
        return np.concatenate([room.up[self._sums], room.down[self._sums]])


class Ties:
    """Sums and the equations that tie them.

    Attributes:
      size: How many sums a part has at most.

    Args:
      equations: Sums × equations, sparse.
      cost: What sums cost; cheap ones of an equation are taken before others.
      size: How many sums are taken around one of them.
    """

    def __init__(self, equations: Any, cost: Real, size: int) -> None:
        self.size, self._by_sum, by_equation = size, equations.tocsr(), equations.tocsc()
        column = np.repeat(np.arange(by_equation.shape[1]), np.diff(by_equation.indptr))
        order = np.lexsort((by_equation.indices, cost[by_equation.indices], column))
        self._cost, self._start, self._sums = cost, by_equation.indptr, by_equation.indices[order]
        self._tied = abs(self._by_sum)

    def around(self, total: int, usable: Mask, free: Mask) -> tuple[Whole, bool]:
        """Sums around one of them, and whether none was left out that could take part.

        Sums that are free come first, and cheap ones of each equation; then those that lie in two
        equations of the part, with which changes close.

        Args:
          total: The sum in the middle.
          usable: The sums that may take part.
          free: Those that cost little.
        """
        is_small = np.count_nonzero(usable) <= self.size
        size = self.size if is_small else int(CHANGE.core * self.size)
        width = self.size if is_small else CHANGE.width
        by_sum = (self._by_sum.indptr, self._by_sum.indices)
        members, is_all = _near(*by_sum, self._start, self._sums, usable, free, total, size, width)
        for _ in range(0 if is_all or is_small else CHANGE.closing_rounds):
            members = self._closed(members, usable)
        return members, bool(is_all)

    def _closed(self, members: Whole, usable: Mask) -> Whole:
        """The members, and the cheapest further sums that lie in two of their equations."""
        inside = np.zeros(self._by_sum.shape[0])
        inside[members] = 1.0
        is_touched = (self._tied.T @ inside) > 0
        times = self._tied @ is_touched.astype(np.float64)
        more = np.flatnonzero((times > 1) & usable & (inside == 0))
        order = np.argsort(self._cost[more], kind="stable")
        return np.concatenate([members, more[order[: self.size - len(members)]]])


@njit(cache=True)
def _near(
    equation_of: Array,
    equations: Array,
    sum_of: Array,
    sums: Array,
    usable: Mask,
    free: Mask,
    total: int,
    size: int,
    width: int,
) -> tuple[Whole, bool]:
    """Sums around one of them, in the order found, and whether none was left out."""
    members = [np.int64(total)]
    waiting, seen = usable.copy(), np.zeros(len(sum_of), dtype=np.bool_)
    waiting[total] = False
    head, left_out = 0, False
    while head < len(members):
        one = members[head]
        head += 1
        for a in range(equation_of[one], equation_of[one + 1]):
            if seen[equations[a]]:
                continue
            seen[equations[a]] = True
            taken = 0
            for b in range(sum_of[equations[a]], sum_of[equations[a] + 1]):
                other = sums[b]
                if not waiting[other]:
                    continue
                if len(members) >= size or (not free[other] and taken >= width):
                    left_out = True
                    continue
                taken += not free[other]
                waiting[other] = False
                members.append(np.int64(other))
    return np.array(members), not left_out


def movable(equations: Any, is_open: Mask) -> Mask:
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
