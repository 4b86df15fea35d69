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

# Moves below this share of the goal are rounding errors.
_UNMOVED = 1e-7
# After so many trials, programs of the sums near a goal are given up where they found a change in
# fewer than this share of them.
_TRIALS, _SELDOM = 50, 0.05
# Effort is counted in steps of the simplex method on a small program, about 15 microseconds each,
# and not by a clock: the same table has the same pattern on every machine. A step of a program with
# this many sums takes twice as long; a sum takes as long to set as a fifteenth of a step.
_DOUBLE, _SET = 2_000, 15
# Inner cells that make as much effort in boxes as a step: where boxes along all variables are
# looked at, and where only boxes along the variables of the goal are.
_BOX_EFFORT, _NEAR_BOX_EFFORT = 100, 1_000
# Changes that cost less are made of sums that are free.
_PAID = 1.0
# Sums from which on the effort that a program may need grows with their fourth power: it is not
# begun where so much is not left.
_EASY = 10_000
# What share of a part is found first; the rest closes its changes, in so many rounds in which sums
# are added that lie in two equations of the part.
_CORE, _CLOSING_ROUNDS = 1 / 3, 2
# Sums of an equation that are not free, of those found first: a wide one would fill the part.
_WIDTH = 6


@dataclass(frozen=True, eq=False)
class MoveGoal:
    """A sum that is to move."""

    total: int  # which sum
    sign: float  # plus or minus one: up or down
    reach: float  # how far


Floors = tuple[Index, Real]
"""Sums, and how far each can go down."""
_NO_FLOORS: Floors = (np.empty(0, np.intp), np.empty(0))


class Change(NamedTuple):
    """Moves of some sums."""

    places: Index  # the sums that move
    values: Real  # by how much


@dataclass(frozen=True, eq=False)
class Tied:
    """Sums that are tied by equations."""

    equations: Any  # sums × equations, sparse
    down: Real  # how far each sum can go down; infinite where nothing is known
    up: Real  # how far each can go up; infinite where no bound is public
    boxes: Boxes | None = None  # changes along boxes, where the sums are those of a table

    def __len__(self) -> int:
        return len(self.down)


def work_of(steps: int, sums: int) -> int:
    """The effort that a program with some sums makes, by its steps of the simplex method."""
    return math.ceil(steps * (1 + sums / _DOUBLE) + sums / _SET)


class Changes:
    """The changes of some open sums.

    Attributes:
      moves: Which sums can take part in a change at all.
      effort: What programs and boxes may still take, all together; any amount if `None`.
      spent: What they took so far.

    Args:
      sums: The sums. Boxes are looked at before programs of all sums are solved.
      is_open: Which of them may move.
      cost: What a unit of each sum's move costs; one when absent.
      near: How many sums around the goal are looked at before all are; none when absent.
      effort: What programs and boxes may take, all together; any amount when absent.
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
        self.moves, self.effort, self.spent = movable(equations, is_open), effort, 0
        self._free = np.full(n, cost is None)
        cost = np.ones(n) if cost is None else cost.copy()
        self._slack = Slack(self.moves.copy(), sums.up, sums.down.copy(), cost)
        self._whole: _PartProgram | None = None
        self._tried = self._reached = 0
        is_large = near is not None and near < np.count_nonzero(self.moves)
        self._near = Ties(equations, cost, near) if near and is_large else None

    def cheapest(self, goal: MoveGoal, held: Index, floors: Floors | None = None) -> Change | None:
        """The cheapest change that reaches a goal while other sums are held, if there is one.

        Where sums near the goal are enough, or a box, it is the cheapest of these. When all effort
        is spent, none is found. Floors are sums that go down less far than otherwise, each once.
        """
        slack = self._slack
        if (slack.up if goal.sign > 0 else slack.down)[goal.total] < goal.reach:
            return None
        before, (lowered, down) = slack.usable[held], floors or _NO_FLOORS
        room = slack.down[lowered]
        slack.usable[held] = False
        slack.down[lowered] = np.minimum(room, down)
        try:
            return self._find(goal) if slack.usable[goal.total] else None
        finally:
            slack.usable[held], slack.down[lowered] = before, room

    def price(self, sums: Index, cost: float, *, free: bool = True) -> None:
        """Say what a move of some sums costs from now on, and whether that is little."""
        self._slack.cost[sums] = cost
        self._free[sums] = free

    def close(self, total: int, *, closed: bool = True) -> None:
        """Let a sum move no more, or again."""
        self._slack.usable[total] = self.moves[total] and not closed

    def _find(self, goal: MoveGoal) -> Change | None:
        """A box where costs do not matter or tables are large; else the cheapest change."""
        if self._is_uniform and (box := self._along_box(goal)) is not None:
            return box
        if self._near is not None:
            is_worthwhile = self._tried < _TRIALS or self._reached > _SELDOM * self._tried
            if is_worthwhile and self._is_left():
                sums, is_all = self._near.around(goal.total, self._slack.usable, self._free)
                found = self._solve(_PartProgram(self._equations, sums, self._slack), goal)
                self._tried += 1
                self._reached += found is not None
                if found is not None or is_all:
                    return found
            if not self._is_uniform and (box := self._along_box(goal)) is not None:
                return box
        n = np.count_nonzero(self.moves)
        if not self._is_left(n * max(0.0, n / _EASY - 1) ** 3):
            return None
        if self._whole is None:
            self._whole = _PartProgram(self._equations, np.flatnonzero(self.moves), self._slack)
        return self._solve(self._whole, goal)

    def _solve(self, program: _PartProgram, goal: MoveGoal) -> Change | None:
        before = program.steps
        found = program.cheapest(goal, self._slack)
        self._spend(work_of(program.steps - before, len(program)))
        return found

    def _along_box(self, goal: MoveGoal) -> Change | None:
        """A change along a box: one that costs nothing, or else the cheapest."""
        if self._boxes is None:
            return None
        is_far = not self._is_uniform
        cells = _BOX_EFFORT if is_far else _NEAR_BOX_EFFORT
        if not self._is_left():
            return None
        self._spend(len(self._boxes) / cells)
        enough = _PAID if is_far else np.inf
        amount = goal.sign * goal.reach
        found = self._boxes.cheapest(goal.total, amount, self._slack, enough=enough, far=is_far)
        return None if found is None else Change(*found)

    def _is_left(self, least: float = 0.0) -> bool:
        """Whether effort is left, and this much."""
        return self.effort is None or self.effort > least

    def _spend(self, work: float) -> None:
        self.spent += math.ceil(work)
        if self.effort is not None:
            self.effort -= math.ceil(work)


class _PartProgram:
    """The program of some sums, moves up and then moves down, solved anew for each goal."""

    def __init__(self, equations: Any, sums: Index, slack: Slack) -> None:
        from scipy.sparse import csr_array, vstack

        # The part has equations of its own numbers: those of all sums would make empty rows by the
        # thousand, which the program would have to carry.
        part = equations[sums]
        used, number = np.unique(part.indices, return_inverse=True)
        part = csr_array((part.data, number, part.indptr), shape=(len(sums), len(used)))
        moves = movable(part, np.ones(len(sums), dtype=bool))
        self._sums, part = sums[moves], part[moves]
        both, none = vstack([part, -part], format="csr"), np.zeros(len(used))
        floor, ceiling = np.zeros(both.shape[0]), self._ceiling(slack)
        self._program = Program(both, none, none, floor, ceiling, changing="bounds")

    def __len__(self) -> int:
        return len(self._sums)

    @property
    def steps(self) -> int:
        """Steps of the simplex method so far."""
        return self._program.steps

    def cheapest(self, goal: MoveGoal, slack: Slack) -> Change | None:
        """The cheapest change of sums that are usable."""
        place = np.flatnonzero(self._sums == goal.total)
        if not len(place):
            return None
        n, can = len(self._sums), slack.usable[self._sums]
        ceiling = np.where(np.tile(can, 2), self._ceiling(slack), 0.0)
        floor, ahead, behind = np.zeros(2 * n), place[0], n + place[0]
        if goal.sign < 0:
            ahead, behind = behind, ahead
        # Both directions are variables of their own: without this the goal could go up and down at
        # once and reach nothing.
        floor[ahead], ceiling[ahead], ceiling[behind] = goal.reach, goal.reach, 0.0
        try:
            solution = self._program.afresh(np.tile(slack.cost[self._sums], 2), floor, ceiling)
        except InfeasibleError:
            return None
        if solution is None:
            return None
        moved = solution[:n] - solution[n:]
        is_moved = np.abs(moved) > _UNMOVED * goal.reach
        return Change(self._sums[is_moved], moved[is_moved])

    def _ceiling(self, slack: Slack) -> Real:
        return np.concatenate([slack.up[self._sums], slack.down[self._sums]])


class Ties:
    """Sums and the equations that tie them, sums × equations, for parts of up to `size` sums.

    Sums of an equation that cost less are taken before others.
    """

    def __init__(self, equations: Any, cost: Real, size: int) -> None:
        self.size, self._by_sum, by_equation = size, equations.tocsr(), equations.tocsc()
        column = np.repeat(np.arange(by_equation.shape[1]), np.diff(by_equation.indptr))
        order = np.lexsort((by_equation.indices, cost[by_equation.indices], column))
        self._cost, self._start, self._sums = cost, by_equation.indptr, by_equation.indices[order]
        self._tied = abs(self._by_sum)

    def around(self, total: int, usable: Mask, free: Mask) -> tuple[Whole, bool]:
        """Usable sums around one of them, and whether none was left out that could take part.

        Sums that are free come first, and cheap ones of each equation; then those that lie in two
        equations of the part, with which changes close.
        """
        is_small = np.count_nonzero(usable) <= self.size
        size = self.size if is_small else int(_CORE * self.size)
        width = self.size if is_small else _WIDTH
        by_sum = (self._by_sum.indptr, self._by_sum.indices)
        members, is_all = _near(*by_sum, self._start, self._sums, usable, free, total, size, width)
        for _ in range(0 if is_all or is_small else _CLOSING_ROUNDS):
            inside = np.zeros(self._by_sum.shape[0])
            inside[members] = 1.0
            is_touched = (self._tied.T @ inside) > 0
            times = self._tied @ is_touched.astype(np.float64)
            more = np.flatnonzero((times > 1) & usable & (inside == 0))
            order = np.argsort(self._cost[more], kind="stable")
            members = np.concatenate([members, more[order[: self.size - len(members)]]])
        return members, bool(is_all)


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
