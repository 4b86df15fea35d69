"""Compiled sparse elimination in whole numbers, with the columns that must stay out of the span.

A column has a line for each of its entries, a row and a whole number, by row. It is kept primitive
(its numbers have no common divisor, the first is positive), so two columns are proportional exactly
when they are equal; a random sum of each column finds equal ones quickly, and every find is
compared number by number.

Lists say which columns have a row, and which of those to be watched have a random sum of some
class. A column that has lost the row, or changed, stays in the list; whoever reads a list looks at
the column itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Column = NDArray[np.int64]

GONE, CANDIDATE, PRIMARY, LONE = 0, 1, 2, 3
"""What a column is for: to be accepted if possible; never to be spanned; what one person knows."""

UNDECIDED, ACCEPTED, IMPLIED, REJECTED = 0, 1, 2, 3
"""What became of a column."""

NONE = -1
"""Stands for no column."""

_LARGEST = 1 << 30  # products of two such numbers, and their differences, fit into 64 bits
_WORSE = 1 << 40  # beyond any number of columns


class System(NamedTuple):
    """Columns, and lists of those with each row and of those with equal random sums.

    Attributes:
      columns: Rows and numbers of each column.
      kind: What it is for; `GONE` once that is decided.
      owner: Who a primary column belongs to wholly, and may therefore know it.
      attacker: Who knows a lone column: no primary may follow from it, except his own.
      key: Random sum of each column.
      decision: What became of it.
      seen: The turn in which each column was met last.
      weight: Random weight of each row.
      row_count: Number of columns with each row.
      lists: Columns with each row, then watched columns of each class of random sums.
    """

    columns: list[Column]
    kind: Whole
    owner: Whole
    attacker: Whole
    key: NDArray[np.uint64]
    decision: NDArray[np.int8]
    seen: Whole
    weight: NDArray[np.uint64]
    row_count: Whole
    lists: list[list[int]]


@njit(cache=True)
def eliminate(
    start: Whole,
    entries: Column,
    kind: Whole,
    owner: Whole,
    attacker: Whole,
    weight: NDArray[np.uint64],
    order: Whole,
    n_must: int,
) -> tuple[NDArray[np.int8], int, int, Whole, Column]:
    """Accept candidates in the given order, each unless a primary would follow.

    Args:
      start: Where the entries of each column begin, and where the last one's end.
      entries: Rows and numbers of all columns.
      kind: What each column is for.
      owner: Who a primary column belongs to wholly.
      attacker: Who knows a lone column.
      weight: Random weight of each row.
      order: The candidates.
      n_must: How many of them must be accepted.

    Returns:
      What became of the columns; a primary that follows once a candidate is accepted that must be,
      and this candidate (both `NONE` where there is no such primary, the second where it follows
      from nothing); and what is left of all columns, as starts and entries.
    """
    s = _system(start, entries, kind.copy(), owner, attacker, weight)
    told, a = _first_told(s), NONE
    for turn in range(len(order) if told == NONE else 0):
        a = order[turn]
        if s.kind[a] == GONE:
            continue
        told = _accept(s, a, turn + 1)
        if told != NONE and turn < n_must:
            break
        if told != NONE:
            _decide(s, a, REJECTED)
            told = NONE
    ends, left = _joined(s.columns)
    return s.decision, told, a, ends, left


@njit(cache=True)
def _system(
    start: Whole,
    entries: Column,
    kind: Whole,
    owner: Whole,
    attacker: Whole,
    weight: NDArray[np.uint64],
) -> System:
    """Primitive columns, and their lists."""
    n, classes = len(kind), 16
    while classes < 2 * n:
        classes *= 2
    columns = [_primitive(entries[start[c] : start[c + 1]]) for c in range(n)]
    lists = [[0 for _ in range(0)] for _ in range(len(weight) + classes)]
    key, decision = np.zeros(n, np.uint64), np.full(n, UNDECIDED, np.int8)
    seen, row_count = np.zeros(n, np.int64), np.zeros(len(weight), np.int64)
    s = System(columns, kind, owner, attacker, key, decision, seen, weight, row_count, lists)
    for c in range(n):
        for r in columns[c][:, 0]:
            row_count[r] += 1
            lists[r].append(c)
        _put(s, c, columns[c])
        _list_watched(s, c)
        if not len(columns[c]) and kind[c] != PRIMARY:
            _decide(s, c, IMPLIED)
    return s


@njit(cache=True)
def _first_told(s: System) -> int:
    """A primary that is spanned, or known to somebody who must not know it."""
    for c in range(len(s.kind)):
        if s.kind[c] == PRIMARY and _told(s, c) != NONE:
            return c
    return NONE


@njit(cache=True)
def _accept(s: System, a: int, turn: int) -> int:
    """Take a column into the span and eliminate one of its rows from all others.

    Where that gives a primary away, nothing changes and the primary is returned.
    """
    r = _pivot(s, a)
    watched, candidates = _columns_with(s, r, a, turn)
    before = [s.columns[c] for c in watched]
    for i, c in enumerate(watched):
        _put(s, c, _combined(before[i], s.columns[a], r))
        _list_watched(s, c)
        told = _told(s, c)
        if told != NONE:
            for j in range(i + 1):
                _put(s, watched[j], before[j])
            return told
    for i, c in enumerate(watched):
        _recount(s, c, before[i], a)
    for c in candidates:
        old = s.columns[c]
        _put(s, c, _combined(old, s.columns[a], r))
        _recount(s, c, old, a)
    _decide(s, a, ACCEPTED)
    s.lists[r].clear()
    return NONE


@njit(cache=True)
def _pivot(s: System, a: int) -> int:
    """The row with the fewest other columns; numbers other than one count as if there were more."""
    best, least = NONE, 0
    for r, value in s.columns[a]:
        cost = s.row_count[r] + (_WORSE if abs(value) != 1 else 0)
        if best == NONE or cost < least:
            best, least = r, cost
    return int(best)


@njit(cache=True)
def _columns_with(s: System, r: int, a: int, turn: int) -> tuple[list[int], list[int]]:
    """Columns with row `r` other than `a`: primary and lone ones, and candidates."""
    watched, candidates = [0 for _ in range(0)], [0 for _ in range(0)]
    s.seen[a] = turn
    for c in s.lists[r]:
        if s.kind[c] != GONE and s.seen[c] != turn and _at(s.columns[c], r):
            s.seen[c] = turn
            if s.kind[c] == CANDIDATE:
                candidates.append(c)
            else:
                watched.append(c)
    return watched, candidates


@njit(cache=True)
def _told(s: System, c: int) -> int:
    """A primary that is spanned, or follows from a lone column for one who does not own it.

    Only what a primary or lone column `c` has to do with is looked at.
    """
    if not len(s.columns[c]):
        return c if s.kind[c] == PRIMARY else NONE
    for d in s.lists[_class(s, c)]:
        primary, lone = (c, d) if s.kind[c] == PRIMARY else (d, c)
        if s.key[c] != s.key[d] or s.kind[primary] != PRIMARY or s.kind[lone] != LONE:
            continue
        is_foreign = s.owner[primary] != s.attacker[lone]
        if is_foreign and np.array_equal(s.columns[c], s.columns[d]):
            return primary
    return NONE


@njit(cache=True)
def _combined(b: Column, a: Column, r: int) -> Column:
    """The combination of `b` with `a` that lacks row `r`."""
    p, q = _at(a, r), _at(b, r)
    g = math.gcd(p, q)
    p, q = p // g, q // g
    made = np.empty((len(a) + len(b), 2), np.int64)
    i = j = n = 0
    while i < len(b) or j < len(a):
        has_i = i < len(b) and (j == len(a) or b[i, 0] <= a[j, 0])
        has_j = j < len(a) and (i == len(b) or a[j, 0] <= b[i, 0])
        made[n, 0] = b[i, 0] if has_i else a[j, 0]
        made[n, 1] = (p * b[i, 1] if has_i else 0) - (q * a[j, 1] if has_j else 0)
        i, j, n = i + has_i, j + has_j, n + (made[n, 1] != 0)
    return _primitive(made[:n])


@njit(cache=True)
def _primitive(column: Column) -> Column:
    """The column divided by the common divisor of its numbers, the first one positive."""
    made, divisor = column.copy(), 0
    for value in made[:, 1]:
        divisor = math.gcd(divisor, value)
        if divisor == 1:
            break
    if len(made) and made[0, 1] < 0:
        divisor = -divisor
    for k in range(len(made)):
        if divisor != 1:
            made[k, 1] //= divisor
        if abs(made[k, 1]) > _LARGEST:
            raise OverflowError("a number is too large for exact elimination")
    return made


@njit(cache=True)
def _put(s: System, c: int, column: Column) -> None:
    """Replace a column."""
    total = np.uint64(0)
    for r, value in column:
        total += np.uint64(value) * s.weight[r]
    s.columns[c], s.key[c] = column, total


@njit(cache=True)
def _recount(s: System, c: int, before: Column, a: int) -> None:
    """Tell the rows of `a` which of them `c` has once combined with it; nothing left is implied."""
    for r in s.columns[a][:, 0]:
        had, has = _at(before, r) != 0, _at(s.columns[c], r) != 0
        s.row_count[r] += int(has) - int(had)
        if has and not had:
            s.lists[r].append(c)
    if not len(s.columns[c]):
        _decide(s, c, IMPLIED)


@njit(cache=True)
def _decide(s: System, c: int, decision: int) -> None:
    """Say what became of a column, and take it out of the system."""
    s.decision[c], s.kind[c] = decision, GONE
    for r in s.columns[c][:, 0]:
        s.row_count[r] -= 1
    s.columns[c] = np.empty((0, 2), np.int64)


@njit(cache=True)
def _at(column: Column, r: int) -> int:
    """The number in row `r` of a column."""
    low, high = 0, len(column)
    while low < high:
        middle = (low + high) // 2
        if column[middle, 0] < r:
            low = middle + 1
        else:
            high = middle
    return column[low, 1] if low < len(column) and column[low, 0] == r else 0


@njit(cache=True)
def _class(s: System, c: int) -> int:
    """The list of columns whose random sum is like that of `c`."""
    classes = len(s.lists) - len(s.weight)
    return len(s.weight) + int(s.key[c] & np.uint64(classes - 1))


@njit(cache=True)
def _list_watched(s: System, c: int) -> None:
    """List a primary or lone column by its random sum."""
    if s.kind[c] != CANDIDATE:
        s.lists[_class(s, c)].append(c)


@njit(cache=True)
def _joined(columns: list[Column]) -> tuple[Whole, Column]:
    """All columns one behind another: where each begins, and their entries."""
    start = np.zeros(len(columns) + 1, np.int64)
    for c, column in enumerate(columns):
        start[c + 1] = start[c] + len(column)
    entries = np.empty((start[-1], 2), np.int64)
    for c, column in enumerate(columns):
        entries[start[c] : start[c + 1]] = column
    return start, entries
