"""Parts of a system of equations around one of its sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]
Whole = NDArray[np.int64]

_CORE = 3  # what share of a part is found first
_WIDTH = 6  # sums of an equation that are not free, of those found first
_CLOSING = 2  # rounds in which sums are added that lie in two equations of the part


@dataclass(frozen=True, eq=False)
class Part:
    """Some sums with their equations.

    Attributes:
      sums: Which sums; each is in no equation alone.
      matrix: Moves up and moves down × equations, sparse.
      is_whole: Whether no sum was left out that could take part.
    """

    sums: Whole
    matrix: Any
    is_whole: bool


class Ties:
    """Sums and the equations that tie them.

    Args:
      equations: Sums × equations, sparse.
      cost: What sums cost; cheap ones of an equation are taken before others.
    """

    def __init__(self, equations: Any, cost: Vector) -> None:
        by_sum, by_equation = equations.tocsr(), equations.tocsc()
        self._equation_of, self._equations = by_sum.indptr, by_sum.indices
        self._signs = by_sum.data.astype(np.float64)
        self._sum_of = by_equation.indptr
        column = np.repeat(np.arange(by_equation.shape[1]), np.diff(by_equation.indptr))
        order = np.lexsort((by_equation.indices, cost[by_equation.indices], column))
        self._sums = by_equation.indices[order]
        self._place = np.full(equations.shape[0], -1, dtype=np.int64)
        self._seen = np.zeros(equations.shape[1], dtype=np.int64)

    def near(self, total: int, size: int, usable: Marks, free: Marks) -> Part:
        """Sums around one of them, as many as wanted, and their equations.

        Sums that are free come first, and cheap ones of each equation; then those that lie in two
        equations of the part, with which changes close.

        Args:
          total: The sum in the middle.
          size: How many sums at most.
          usable: The sums that may take part.
          free: Those that cost little.
        """
        where = (self._equation_of, self._equations, self._sum_of, self._sums)
        work = (self._place, self._seen)
        if np.count_nonzero(usable) <= size:
            members, is_whole = _near(*where, *work, usable, free, total, size, size)
        else:
            members, is_whole = _near(*where, *work, usable, free, total, size // _CORE, _WIDTH)
            for _ in range(0 if is_whole else _CLOSING):
                members = _closed(*where, *work, usable, members, size)
        sums, start, index, position = _tied(*where[:2], *work, members)
        return Part(sums, _both_ways(self._signs[position], index, start), bool(is_whole))


def _both_ways(signs: Vector, index: Whole, start: Whole) -> Any:
    """Moves up, then moves down, × equations."""
    from scipy.sparse import csr_array

    return csr_array(
        (
            np.concatenate([signs, -signs]),
            np.concatenate([index, index]),
            np.concatenate([start, start[1:] + start[-1]]),
        ),
        shape=(2 * (len(start) - 1), int(index.max(initial=-1)) + 1),
    )


@njit(cache=True)
def _near(
    equation_of: NDArray[Any],
    equations: NDArray[Any],
    sum_of: NDArray[Any],
    sums: NDArray[Any],
    place: Whole,
    seen: Whole,
    usable: Marks,
    free: Marks,
    total: int,
    size: int,
    width: int,
) -> tuple[Whole, bool]:
    """Sums around one of them, in the order found, and whether none was left out.

    `place` and `seen` are −1 and zero everywhere, and so they are left.
    """
    members = [np.int64(total)]
    touched = [np.int64(0) for _ in range(0)]
    place[total] = 0
    head, left_out = 0, False
    while head < len(members):
        one = members[head]
        head += 1
        for a in range(equation_of[one], equation_of[one + 1]):
            equation = equations[a]
            if seen[equation]:
                continue
            seen[equation] = 1
            touched.append(np.int64(equation))
            taken = 0
            for b in range(sum_of[equation], sum_of[equation + 1]):
                other = sums[b]
                if not usable[other] or place[other] >= 0:
                    continue
                if len(members) >= size or (not free[other] and taken >= width):
                    left_out = True
                    continue
                taken += not free[other]
                place[other] = len(members)
                members.append(np.int64(other))
    for one in members:
        place[one] = -1
    for equation in touched:
        seen[equation] = 0
    return np.array(members), not left_out


@njit(cache=True)
def _closed(
    equation_of: NDArray[Any],
    equations: NDArray[Any],
    sum_of: NDArray[Any],
    sums: NDArray[Any],
    place: Whole,
    seen: Whole,
    usable: Marks,
    members: Whole,
    size: int,
) -> Whole:
    """The members and further sums that lie in two of their equations, up to a size.

    `place` and `seen` are −1 and zero everywhere, and so they are left.
    """
    found = [np.int64(0) for _ in range(0)]
    touched = [np.int64(0) for _ in range(0)]
    for one in members:
        place[one] = 0
        found.append(one)
        for a in range(equation_of[one], equation_of[one + 1]):
            if not seen[equations[a]]:
                seen[equations[a]] = 1
                touched.append(np.int64(equations[a]))
    met = [np.int64(0) for _ in range(0)]
    for equation in touched:
        for b in range(sum_of[equation], sum_of[equation + 1]):
            other = sums[b]
            if not usable[other] or place[other] == 0:
                continue
            if place[other] == -1:
                place[other] = -2
                met.append(np.int64(other))
            elif place[other] == -2 and len(found) < size:
                place[other] = 0
                found.append(np.int64(other))
    for one in found:
        place[one] = -1
    for one in met:
        place[one] = -1
    for equation in touched:
        seen[equation] = 0
    return np.array(found)


@njit(cache=True)
def _tied(
    equation_of: NDArray[Any],
    equations: NDArray[Any],
    place: Whole,
    seen: Whole,
    members: Whole,
) -> tuple[Whole, Whole, Whole, Whole]:
    """The members that no equation fixes, and their entries: starts, equations and positions.

    `place` and `seen` are −1 and zero everywhere, and so they are left.
    """
    for one in members:
        place[one] = 0
        for a in range(equation_of[one], equation_of[one + 1]):
            seen[equations[a]] += 1
    again = True
    while again:
        again = False
        for one in members:
            if place[one] < 0:
                continue
            for a in range(equation_of[one], equation_of[one + 1]):
                if seen[equations[a]] == 1:
                    place[one] = -1
                    again = True
                    break
            if place[one] < 0:
                for a in range(equation_of[one], equation_of[one + 1]):
                    seen[equations[a]] -= 1
    kept = members[place[members] >= 0]
    start = np.zeros(len(kept) + 1, np.int64)
    for k, one in enumerate(kept):
        start[k + 1] = start[k] + equation_of[one + 1] - equation_of[one]
    index, position = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
    number, used = 0, 0
    for one in kept:
        for a in range(equation_of[one], equation_of[one + 1]):
            if seen[equations[a]] > 0:
                number += 1
                seen[equations[a]] = -number
            index[used], position[used] = -seen[equations[a]] - 1, a
            used += 1
    for one in members:
        place[one] = -1
        for a in range(equation_of[one], equation_of[one + 1]):
            seen[equations[a]] = 0
    return kept, start, index, position
