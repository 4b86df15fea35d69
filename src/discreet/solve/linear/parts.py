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
        by_sum = (self._equation_of, self._equations)
        where = (*by_sum, self._sum_of, self._sums, usable)
        if np.count_nonzero(usable) <= size:
            members, is_whole = _near(*where, free, total, size, size)
        else:
            members, is_whole = _near(*where, free, total, size // _CORE, _WIDTH)
            for _ in range(0 if is_whole else _CLOSING):
                members = _closed(*where, members, size)
        n = len(self._sum_of) - 1
        sums = _movable(*by_sum, members, n)
        start, index, position = _entries(*by_sum, sums, n)
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
    usable: Marks,
    free: Marks,
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


@njit(cache=True)
def _closed(
    equation_of: NDArray[Any],
    equations: NDArray[Any],
    sum_of: NDArray[Any],
    sums: NDArray[Any],
    usable: Marks,
    members: Whole,
    size: int,
) -> Whole:
    """The members and further sums that lie in two of their equations, up to a size."""
    found = list(members)
    waiting, met = usable.copy(), np.zeros(len(usable), dtype=np.bool_)
    waiting[members] = False
    touched = _number_in(equation_of, equations, members, len(sum_of) - 1) > 0
    for equation in np.flatnonzero(touched):
        for b in range(sum_of[equation], sum_of[equation + 1]):
            other = sums[b]
            if not waiting[other] or len(found) >= size:
                continue
            if met[other]:
                waiting[other] = False
                found.append(np.int64(other))
            met[other] = True
    return np.array(found)


@njit(cache=True)
def _number_in(equation_of: NDArray[Any], equations: NDArray[Any], members: Whole, n: int) -> Whole:
    """How many members each equation has."""
    number = np.zeros(n, np.int64)
    for one in members:
        for a in range(equation_of[one], equation_of[one + 1]):
            number[equations[a]] += 1
    return number


@njit(cache=True)
def _movable(equation_of: NDArray[Any], equations: NDArray[Any], members: Whole, n: int) -> Whole:
    """The members that are in no equation alone, nor when others are left out that are."""
    number = _number_in(equation_of, equations, members, n)
    left = members
    while True:
        moves = np.ones(len(left), dtype=np.bool_)
        for k, one in enumerate(left):
            for a in range(equation_of[one], equation_of[one + 1]):
                moves[k] &= number[equations[a]] != 1
        if moves.all():
            return left
        number -= _number_in(equation_of, equations, left[~moves], n)
        left = left[moves]


@njit(cache=True)
def _entries(
    equation_of: NDArray[Any], equations: NDArray[Any], members: Whole, n: int
) -> tuple[Whole, Whole, Whole]:
    """Where the entries of members start, their equations by new numbers, and their positions."""
    start = np.zeros(len(members) + 1, np.int64)
    for k, one in enumerate(members):
        start[k + 1] = start[k] + equation_of[one + 1] - equation_of[one]
    index, position = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
    name = np.full(n, -1)
    used = names = 0
    for one in members:
        for a in range(equation_of[one], equation_of[one + 1]):
            if name[equations[a]] < 0:
                name[equations[a]] = names
                names += 1
            index[used], position[used] = name[equations[a]], a
            used += 1
    return start, index, position
