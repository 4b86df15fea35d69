"""Sums around one of them, among which a change of it is looked for first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from discreet.arrays import Array, Mask, Real, Whole
from discreet.solve.linear.schedule import CHANGE


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
