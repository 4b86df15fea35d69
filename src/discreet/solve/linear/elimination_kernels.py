"""Compiled sparse elimination in whole numbers, with the columns that must stay out of the span.

A column is a sorted list of rows with whole numbers. It is kept primitive (its numbers have no
common divisor, the first is positive), so two columns are proportional exactly when they are equal;
a random sum of each column finds equal ones quickly, and every find is compared number by number.

Lists say which columns have a row, and which of those to be watched have a random sum of some
class. A column that has lost the row, or changed, stays in the list; whoever reads a list looks at
the column itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Whole = NDArray[np.int64]

CANDIDATE, PRIMARY, LONE = 1, 2, 4
"""What a column is for: to be accepted if possible; never to be spanned; what one person knows."""

UNDECIDED, ACCEPTED, IMPLIED, REJECTED = 0, 1, 2, 3
"""What became of a column."""

DONE, MEMORY, UNSAFE, OVERFLOW = 0, 1, 2, 3
"""Why the compiled part came back."""

_LARGEST = 1 << 30  # products of two such numbers, and their differences, fit into 64 bits
_END, _NODES, _FREE, _STAMP = 0, 1, 2, 3
_NONE = -1


class System(NamedTuple):
    """Columns, and lists of those with each row and of those with equal random sums.

    Attributes:
      rows: Rows of all columns, one column after another, with gaps.
      values: The numbers that belong to them.
      start: Where each column begins.
      size: How many rows it has.
      kind: What it is for; 0 when it is gone.
      owner: Who a primary column belongs to wholly; nobody's by default.
      attacker: Who knows a lone column.
      key: Random sum of each column.
      decision: What became of it.
      weight: Random weight of each row.
      row_count: Number of columns with each row.
      head: First node of the list of each row, then of each class of random sums.
      node_column: Column of each node.
      node_after: Next node of the list.
      seen: Stamp of the last visit to each column.
      old: Previous start, size and key of columns under change.
      meta: Ends of the used parts, the first free node, and the current stamp.
    """

    rows: NDArray[np.int32]
    values: Whole
    start: Whole
    size: Whole
    kind: NDArray[np.uint8]
    owner: Whole
    attacker: Whole
    key: NDArray[np.uint64]
    decision: NDArray[np.int8]
    weight: NDArray[np.uint64]
    row_count: Whole
    head: Whole
    node_column: NDArray[np.int32]
    node_after: Whole
    seen: Whole
    old: Whole
    meta: Whole


def empty_meta(entries: int) -> NDArray[Any]:
    """The bookkeeping of a system whose columns fill this many entries."""
    return np.array([entries, 0, _NONE, 0], dtype=np.int64)


@njit(cache=True)
def install(s: System) -> None:
    """Make every column primitive and list it."""
    for c in range(len(s.kind)):
        _normalise(s, c)
        for k in range(s.start[c], s.start[c] + s.size[c]):
            s.row_count[s.rows[k]] += 1
            _push(s, s.rows[k], c)
        _list_watched(s, c)
        if s.kind[c] & CANDIDATE and s.size[c] == 0:
            _decide(s, c, IMPLIED)


@njit(cache=True)
def advance(s: System, order: Whole, begin: int, strict: bool) -> tuple[int, int]:
    """Accept columns in the given order; returns where it stopped, and why.

    Args:
      s: The columns.
      order: Candidate columns.
      begin: Position in the order to begin at.
      strict: Whether a column that cannot be accepted ends the run; otherwise it is rejected.
    """
    hit = np.empty(len(s.kind), dtype=np.int64)
    for k in range(begin, len(order)):
        c = order[k]
        if s.kind[c] == 0:
            if strict and s.decision[c] == REJECTED:
                return k, UNSAFE
            continue
        status = _accept(s, c, hit)
        if status == UNSAFE and not strict:
            _decide(s, c, REJECTED)
        elif status != DONE:
            return k, status
    return len(order), DONE


@njit(cache=True)
def conflicts(s: System) -> int:
    """A primary that is spanned, or known to somebody who must not know it; −1 if there is none."""
    for c in range(len(s.kind)):
        if s.kind[c] & PRIMARY and _is_told(s, c):
            return c
    return -1


@njit(cache=True)
def _accept(s: System, a: int, hit: Whole) -> int:
    """Take a column into the span and eliminate one of its rows from all others."""
    r = _pivot(s, a)
    watched, candidates = _columns_with(s, r, a, hit)
    if not _has_room(s, a, watched, candidates):
        return MEMORY
    status = _change_watched(s, a, r, watched)
    if status != DONE:
        return status
    for c in candidates:
        if not _combine(s, c, a, r):
            return OVERFLOW
        _recount(s, c, a)
    _decide(s, a, ACCEPTED)
    _free_row(s, r)
    return DONE


@njit(cache=True)
def _pivot(s: System, a: int) -> int:
    """The row with the fewest other columns; numbers other than one count as if there were more."""
    best, least = -1, 0
    for k in range(s.start[a], s.start[a] + s.size[a]):
        cost = s.row_count[s.rows[k]]
        if abs(s.values[k]) != 1:
            cost += 1 << 40
        if best < 0 or cost < least:
            best, least = s.rows[k], cost
    return int(best)


@njit(cache=True)
def _columns_with(s: System, r: int, a: int, hit: Whole) -> tuple[Whole, Whole]:
    """Columns with row `r` other than `a`: primary and lone ones, and candidates."""
    s.meta[_STAMP] += 1
    s.seen[a] = s.meta[_STAMP]
    watched, candidates, node = 0, len(hit), s.head[r]
    while node != _NONE:
        c = s.node_column[node]
        if s.kind[c] != 0 and s.seen[c] != s.meta[_STAMP] and _at(s, s.start[c], s.size[c], r):
            s.seen[c] = s.meta[_STAMP]
            if s.kind[c] & CANDIDATE:
                candidates -= 1
                hit[candidates] = c
            else:
                hit[watched] = c
                watched += 1
        node = s.node_after[node]
    return hit[:watched], hit[candidates:]


@njit(cache=True)
def _change_watched(s: System, a: int, r: int, watched: Whole) -> int:
    """Change primary and lone columns, or leave all as they are when that gives one away."""
    end = s.meta[_END]
    for i, c in enumerate(watched):
        if not _combine(s, c, a, r):
            return OVERFLOW
        if _is_told(s, c):
            for d in watched[: i + 1]:
                s.start[d], s.size[d], s.key[d] = s.old[d, 0], s.old[d, 1], np.uint64(s.old[d, 2])
            s.meta[_END] = end
            return UNSAFE
    for c in watched:
        _recount(s, c, a)
    return DONE


@njit(cache=True)
def _is_told(s: System, c: int) -> bool:
    """Whether a primary is spanned, or follows from a lone column for one who does not own it."""
    if s.size[c] == 0:
        return bool(s.kind[c] & PRIMARY)
    node = s.head[_class(s, c)]
    while node != _NONE:
        d = s.node_column[node]
        if s.key[d] == s.key[c]:
            told = s.kind[c] & PRIMARY and s.kind[d] & LONE and s.owner[c] != s.attacker[d]
            tells = s.kind[c] & LONE and s.kind[d] & PRIMARY and s.owner[d] != s.attacker[c]
            if (told or tells) and _equal(s, c, d):
                return True
        node = s.node_after[node]
    return False


@njit(cache=True)
def _combine(s: System, b: int, a: int, r: int) -> bool:
    """Replace `b` by its combination with `a` that lacks row `r`; false when numbers get large."""
    p, q = _at(s, s.start[a], s.size[a], r), _at(s, s.start[b], s.size[b], r)
    g = _gcd(p, q)
    p, q = p // g, q // g
    i, i_end = s.start[b], s.start[b] + s.size[b]
    j, j_end = s.start[a], s.start[a] + s.size[a]
    begin = out = s.meta[_END]
    while i < i_end or j < j_end:
        has_i = i < i_end and (j == j_end or s.rows[i] <= s.rows[j])
        has_j = j < j_end and (i == i_end or s.rows[j] <= s.rows[i])
        s.rows[out] = s.rows[i] if has_i else s.rows[j]
        s.values[out] = (p * s.values[i] if has_i else 0) - (q * s.values[j] if has_j else 0)
        i, j = i + has_i, j + has_j
        out += s.values[out] != 0
    s.old[b, 0], s.old[b, 1], s.old[b, 2] = s.start[b], s.size[b], np.int64(s.key[b])
    s.start[b], s.size[b] = begin, out - begin
    s.meta[_END] = out
    is_small = _normalise(s, b) <= _LARGEST
    _list_watched(s, b)
    return is_small


@njit(cache=True)
def _normalise(s: System, c: int) -> int:
    """Divide by the common divisor, make the first number positive; returns the largest number."""
    begin, end = s.start[c], s.start[c] + s.size[c]
    divisor = 0
    for k in range(begin, end):
        divisor = _gcd(divisor, s.values[k])
        if divisor == 1:
            break
    if end > begin and s.values[begin] < 0:
        divisor = -divisor
    total, worst = np.uint64(0), 0
    for k in range(begin, end):
        if divisor != 1:
            s.values[k] //= divisor
        worst = max(worst, abs(s.values[k]))
        total += np.uint64(s.values[k]) * s.weight[s.rows[k]]
    s.key[c] = total
    return worst


@njit(cache=True)
def _recount(s: System, c: int, a: int) -> None:
    """Tell the rows of `a` which of them `c` has once combined with it; nothing left is implied."""
    for k in range(s.start[a], s.start[a] + s.size[a]):
        r = s.rows[k]
        had = _at(s, s.old[c, 0], s.old[c, 1], r) != 0
        has = _at(s, s.start[c], s.size[c], r) != 0
        s.row_count[r] += int(has) - int(had)
        if has and not had:
            _push(s, r, c)
    if s.size[c] == 0:
        _decide(s, c, IMPLIED)


@njit(cache=True)
def _decide(s: System, c: int, decision: int) -> None:
    """Say what became of a column, and take it out of the system."""
    s.decision[c] = decision
    s.kind[c] = 0
    for k in range(s.start[c], s.start[c] + s.size[c]):
        s.row_count[s.rows[k]] -= 1


@njit(cache=True)
def _equal(s: System, c: int, d: int) -> bool:
    if s.size[c] != s.size[d]:
        return False
    shift = s.start[d] - s.start[c]
    for k in range(s.start[c], s.start[c] + s.size[c]):
        if s.rows[k] != s.rows[k + shift] or s.values[k] != s.values[k + shift]:
            return False
    return True


@njit(cache=True)
def _at(s: System, start: int, size: int, r: int) -> int:
    """The number in row `r` of the column with a place and a size."""
    low, high = start, start + size
    while low < high:
        middle = (low + high) // 2
        if s.rows[middle] < r:
            low = middle + 1
        else:
            high = middle
    return int(s.values[low]) if low < start + size and s.rows[low] == r else 0


@njit(cache=True)
def _gcd(a: int, b: int) -> int:
    a, b = abs(a), abs(b)
    while b:
        a, b = b, a % b
    return a


@njit(cache=True)
def _class(s: System, c: int) -> int:
    """The list of columns whose random sum is like that of `c`."""
    classes = len(s.head) - len(s.weight)
    return len(s.weight) + int(s.key[c] & np.uint64(classes - 1))


@njit(cache=True)
def _list_watched(s: System, c: int) -> None:
    """List a primary or lone column by its random sum."""
    if not s.kind[c] & CANDIDATE:
        _push(s, _class(s, c), c)


@njit(cache=True)
def _push(s: System, place: int, c: int) -> None:
    node = s.meta[_FREE]
    if node != _NONE:
        s.meta[_FREE] = s.node_after[node]
    else:
        node = s.meta[_NODES]
        s.meta[_NODES] += 1
    s.node_column[node], s.node_after[node] = c, s.head[place]
    s.head[place] = node


@njit(cache=True)
def _free_row(s: System, r: int) -> None:
    node = s.head[r]
    while node != _NONE:
        following = s.node_after[node]
        s.node_after[node] = s.meta[_FREE]
        s.meta[_FREE] = node
        node = following
    s.head[r] = _NONE


@njit(cache=True)
def _has_room(s: System, a: int, watched: Whole, candidates: Whole) -> bool:
    """Whether columns can be changed by `a` and listed anew; makes room where that is enough."""
    n = len(watched) + len(candidates)
    entries = n * s.size[a] + s.size[watched].sum() + s.size[candidates].sum()
    if s.meta[_NODES] + n * (s.size[a] + 1) > len(s.node_column):
        return False
    if s.meta[_END] + entries > len(s.rows):
        _compact(s)
    return bool(s.meta[_END] + entries <= len(s.rows))


@njit(cache=True)
def _compact(s: System) -> None:
    """Close the gaps between columns."""
    end = 0
    for c in np.argsort(s.start):
        if s.kind[c] == 0:
            s.size[c] = 0
        for k in range(s.size[c]):
            s.rows[end + k] = s.rows[s.start[c] + k]
            s.values[end + k] = s.values[s.start[c] + k]
        s.start[c] = end
        end += s.size[c]
    s.meta[_END] = end
