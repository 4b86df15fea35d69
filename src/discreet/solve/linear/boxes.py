r"""Changes along boxes, found without a linear program.

Two inner cells `x` and `y` differ in some variables. Put these into groups; exchanging the
categories of some groups leads from `x` to further cells, the corners of a box. The corners go up
and down by the same amount, by turns: as many exchanged groups, as many changes of sign. Every sum
that tells the two sides of some group not apart stays as it is.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from discreet.arrays import Array, Mask, Real, Whole, Whole32

# Variables of a table, at most: the 2⁵ corners of a box are bits of a word, which 2⁶ would
# overflow, and ways to put variables into groups become many.
_MOST_AXES = 5
# Cells of the crossing of all variables, for which places are listed.
_MOST_CELLS = 20_000_000
# Inner cells of a sum from which boxes along its own variables start, and from which boxes along
# other variables do, which are many.
_NEAR_ROWS, _FAR_ROWS = 32, 8


class _Groupings(NamedTuple):
    """Ways to put variables into a number of groups, by the number of variables."""

    start: Whole  # where the ways for each number of variables begin
    even: Whole  # sets of variables that exchange an even number of groups, a bit for each set
    odd: Whole  # the same for odd numbers
    is_odd: bool  # whether exchanging all groups exchanges an odd number


class Slack(NamedTuple):
    """Which sums may move, how far, and what it costs."""

    usable: Mask  # which sums may move at all
    up: Real  # how far each can go up
    down: Real  # how far each can go down
    cost: Real  # what its move costs


class _Table(NamedTuple):
    """Inner cells by their categories."""

    codes: Whole  # inner cells × variables
    steps: Whole  # how far apart neighbours along each variable are in the full crossing
    place: Whole  # the place of each inner cell in it
    row_at: Whole32  # the inner cell at each place of the full crossing, or −1
    of_row: Whole  # the sum that is each inner cell


class _Others(NamedTuple):
    """Which inner cells are looked at as opposite corners."""

    # For each inner cell a sum that moves if it is a corner, or −1 if it cannot be one.
    beside: Whole
    key: Whole  # the group of each inner cell
    start: Whole  # where each group begins
    order: Whole  # the inner cells by group; opposite corners are of the same group


class Boxes:
    """The boxes of a table's inner cells.

    Args:
      codes: Inner cells × variables: the category of each.
      shape: The number of categories of each variable.
      members: Inner cells × sums, sparse: how often each inner cell is in each sum.
      of_row: The sum that is each inner cell.
      of_block: Inner cells × crossings of levels: the sum that holds an inner cell there, or −1.
      crossed: Crossings × variables: which variables each has.
    """

    def __init__(
        self,
        codes: Whole,
        shape: tuple[int, ...],
        members: Any,
        of_row: Whole,
        of_block: Array,
        crossed: Mask,
    ) -> None:
        steps = np.array([math.prod(shape[a + 1 :]) for a in range(len(shape))])
        row_at = np.full(math.prod(shape), -1, dtype=np.int32)
        place = codes @ steps
        row_at[place] = np.arange(len(codes))
        self._table = _Table(np.ascontiguousarray(codes), steps, place, row_at, of_row)
        self._of_block = np.column_stack([of_block, of_row])
        self._crossed = np.vstack([crossed, np.ones(len(shape), dtype=bool)])
        by_row, self._by_sum = members.tocsr(), members.tocsc()
        self._by_row = (by_row.indptr, by_row.indices, by_row.data)
        self._groupings = [_groupings(len(shape), groups) for groups in range(len(shape) + 1)]
        self._others: dict[int, list[_Others]] = {}

    def __len__(self) -> int:
        return len(self._table.codes)

    @classmethod
    def fits(cls, shape: tuple[int, ...]) -> bool:
        """Whether a table is small enough, and has few enough variables."""
        return len(shape) <= _MOST_AXES and math.prod(shape) <= _MOST_CELLS

    def cheapest(
        self, total: int, amount: float, slack: Slack, *, enough: float = 0.0, far: bool = True
    ) -> tuple[Whole, Real] | None:
        """The sums that move along the cheapest box that moves one of them, and how far.

        It is the cheapest of those with as many groups as possible: the more groups, the fewer sums
        move. Boxes along the variables of the sum come first.

        Args:
          total: The sum.
          amount: How far corners move, below zero if the sum is to go down.
          slack: What may move.
          enough: The first box that costs less is taken.
          far: Whether boxes along other variables are looked at, which are many.
        """
        part = slice(self._by_sum.indptr[total], self._by_sum.indptr[total + 1])
        rows, amounts = self._by_sum.indices[part], amount * np.sign(self._by_sum.data[part])
        own = self._table.of_row[rows]
        able = slack.usable[own] & (slack.up[own] >= amounts) & (slack.down[own] >= -amounts)
        rows, amounts = rows[able], amounts[able]
        found = np.flatnonzero(self._of_block[rows[:1]] == total)
        if not len(found):
            return None
        block = int(found[np.argmax(self._crossed[found].sum(axis=1))])
        searches = [*zip(self._others_of(block), (_NEAR_ROWS, _FAR_ROWS), strict=False)]
        for groups in range(int(self._crossed[block].sum()), 0, -1):
            ways, goal = self._groupings[groups], (total, amount, enough)
            for others, most in searches[: 1 + far]:
                some = (rows[:most], amounts[:most])
                sums, moves = _cheapest(*some, self._table, others, self._by_row, ways, goal, slack)
                if len(sums):
                    return sums, moves
        return None

    def _others_of(self, block: int) -> list[_Others]:
        """Cells that differ only in the variables of a crossing, and then all cells.

        A box that moves one sum of a crossing of levels moves the sums of all its corners there.
        """
        if block not in self._others:
            beside = self._of_block[:, block].astype(np.int64)
            rest = ~self._crossed[block]
            place = self._table.codes[:, rest] @ self._table.steps[rest]
            self._others[block] = []
            for kind in [place, np.zeros_like(place)] if rest.any() else [place]:
                _, key = np.unique(kind, return_inverse=True)
                start = np.concatenate([[0], np.cumsum(np.bincount(key))])
                order = np.argsort(key, kind="stable")
                self._others[block].append(_Others(beside, key, start, order))
        return self._others[block]


def _groupings(axes: int, groups: int) -> _Groupings:
    """All ways with a number of groups, for each number of variables."""
    start, even, odd = [0], [], []
    for number in range(axes + 1):
        for labels in product(range(groups), repeat=number):
            if [*dict.fromkeys(labels)] == [*range(groups)]:  # other orders are the same groups
                sides = [0, 0]
                for some in range(1 << groups):
                    exchanged = sum(1 << v for v, g in enumerate(labels) if some >> g & 1)
                    sides[some.bit_count() % 2] |= 1 << exchanged
                even.append(sides[0])
                odd.append(sides[1])
        start.append(len(even))
    return _Groupings(
        np.array(start), np.array(even, np.int64), np.array(odd, np.int64), bool(groups % 2)
    )


@njit(cache=True)
def _cheapest(
    rows: Array,
    amounts: Real,
    table: _Table,
    others: _Others,
    by_row: tuple[Array, Array, Real],
    ways: _Groupings,
    goal: tuple[int, float, float],
    slack: Slack,
) -> tuple[Whole, Real]:
    """The sums that move along the cheapest box from any of some rows, and how far."""
    n = len(slack.cost)
    moved, seen, touched = np.zeros(n), np.zeros(n, np.bool_), np.empty(n, np.int64)
    axes = table.codes.shape[1]
    corner, jump = np.empty(1 << axes, np.int64), np.empty(axes, np.int64)
    least, best, best_moves = np.inf, np.empty(0, np.int64), np.empty(0)
    for k in range(len(rows)):
        x, amount = rows[k], amounts[k]
        last = -amount if ways.is_odd else amount
        own = _price(x, amount, table, others, slack)
        # Opposite corners depend on the group and the amount alone; rows of a group share the list.
        if not k or others.key[x] != others.key[rows[k - 1]] or amount != amounts[k - 1]:
            opposite, price = _opposite(x, last, table, others, slack)
        for j in range(len(opposite)):
            y = opposite[j]
            # A box that is cheap enough ends the search; two corners alone may be too dear.
            if least < goal[2] or own + price[j] >= least:
                continue
            number = _jumps(table, x, y, jump)
            if ways.start[number] == ways.start[number + 1]:
                continue
            alike, against = _reach_corners(table, others, x, jump[:number], corner, amount, slack)
            for way in range(ways.start[number], ways.start[number + 1]):
                even, odd = ways.even[way], ways.odd[way]
                # A bit for each corner: all that are to go one way must be able to.
                if even & ~alike or odd & ~against:
                    continue
                used = _move(even, amount, corner, by_row, moved, seen, touched, 0)
                used = _move(odd, -amount, corner, by_row, moved, seen, touched, used)
                cost = _cost(touched[:used], moved, slack)
                if cost < least and moved[goal[0]] * goal[1] > 0:
                    least = cost
                    best = touched[:used][moved[touched[:used]] != 0]
                    best_moves = moved[best]
                # Only what was touched is cleared: there are far more sums than a box moves.
                for i in range(used):
                    moved[touched[i]] = 0.0
                    seen[touched[i]] = False
    return best, best_moves


@njit(cache=True)
def _opposite(
    x: int, amount: float, table: _Table, others: _Others, slack: Slack
) -> tuple[Whole, Real]:
    """The cells that can be the opposite corner, and what each costs at least."""
    first, last = others.start[others.key[x]], others.start[others.key[x] + 1]
    cells, price, found = np.empty(last - first, np.int64), np.empty(last - first), 0
    for y in others.order[first:last]:
        cells[found], price[found] = y, _price(y, amount, table, others, slack)
        found += price[found] < np.inf
    return cells[:found], price[:found]


@njit(cache=True)
def _price(row: int, amount: float, table: _Table, others: _Others, slack: Slack) -> float:
    """What it costs at least that an inner cell is a corner; infinitely much if it cannot be."""
    one, other = table.of_row[row], others.beside[row]
    if other < 0 or not slack.usable[other] or not slack.usable[one]:
        return np.inf
    if slack.up[one] < amount or slack.down[one] < -amount:
        return np.inf
    return float(slack.cost[other])


@njit(cache=True)
def _jumps(table: _Table, x: int, y: int, jump: Whole) -> int:
    """Steps from one cell to another, one for each variable in which they differ; how many."""
    number = 0
    for a in range(table.codes.shape[1]):
        if table.codes[x, a] != table.codes[y, a]:
            jump[number] = (table.codes[y, a] - table.codes[x, a]) * table.steps[a]
            number += 1
    return number


@njit(cache=True)
def _reach_corners(
    table: _Table, others: _Others, x: int, jump: Whole, corner: Whole, amount: float, slack: Slack
) -> tuple[int, int]:
    """Sets of steps that lead to cells which can go the way of the first, and the other way."""
    alike = against = 0
    for some in range(1 << len(jump)):
        there = table.place[x]
        for j in range(len(jump)):
            there += jump[j] * (some >> j & 1)
        row = table.row_at[there]
        corner[some] = row
        if row >= 0:
            alike |= int(_price(row, amount, table, others, slack) < np.inf) << some
            against |= int(_price(row, -amount, table, others, slack) < np.inf) << some
    return alike, against


@njit(cache=True)
def _move(
    some: int,
    amount: float,
    corner: Whole,
    by_row: tuple[Array, Array, Real],
    moved: Real,
    seen: Mask,
    touched: Whole,
    used: int,
) -> int:
    """Move the sums of some corners, and list those that are touched; how many are."""
    start, sums, times = by_row
    k = 0
    while some:
        if some & 1:
            for a in range(start[corner[k]], start[corner[k] + 1]):
                if not seen[sums[a]]:
                    seen[sums[a]] = True
                    touched[used] = sums[a]
                    used += 1
                moved[sums[a]] += amount * times[a]
        some >>= 1
        k += 1
    return used


@njit(cache=True)
def _cost(touched: Whole, moved: Real, slack: Slack) -> float:
    """What a change costs; infinitely much if a sum cannot move that way."""
    total = 0.0
    for one in touched:
        if moved[one] != 0:
            if not slack.usable[one] or moved[one] > slack.up[one] or -moved[one] > slack.down[one]:
                return np.inf
            total += slack.cost[one]
    return total
