"""Compiled sparse elimination in whole numbers, with the columns that must stay out of the span.

A column is a sorted list of rows with whole numbers. It is kept primitive (its numbers have no
common divisor, the first is positive), so two columns are proportional exactly when they are equal;
a random sum of each column finds equal ones quickly, and every find is compared number by number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

CANDIDATE, PRIMARY, LONE = 1, 2, 4
"""What a column is for: to be accepted if possible; never to be spanned; what one person knows."""

UNDECIDED, ACCEPTED, IMPLIED, REJECTED, ALIAS = 0, 1, 2, 3, 4
"""What became of a column; an alias shares the decision of another one."""

DONE, MEMORY, UNSAFE, OVERFLOW = 0, 1, 2, 3
"""Why the compiled part came back."""

NOBODY = -1
_LARGEST = 1 << 30  # products of two such numbers, and their differences, fit into 64 bits
_END, _NODES, _FREE, _STAMP = 0, 1, 2, 3
_NONE = -1


class System(NamedTuple):
    """Columns, where their rows are, and chains of columns by their random sum.

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
      same_as: The column an alias shares the decision of.
      head: First column of each chain.
      after: Next column of the chain.
      before: Previous column of the chain.
      row_head: First node of each row's list of columns.
      row_count: Number of columns with this row.
      node_column: Column of each node; the column may have lost the row meanwhile.
      node_after: Next node of the row.
      weight: Random weight of each row.
      seen: Stamp of the last visit to each column.
      old: Previous start, size and key of columns under change.
      meta: Ends of the used parts, the first free node, and the current stamp.
    """

    rows: NDArray[np.int32]
    values: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    kind: NDArray[np.uint8]
    owner: NDArray[np.int64]
    attacker: NDArray[np.int64]
    key: NDArray[np.uint64]
    decision: NDArray[np.int8]
    same_as: NDArray[np.int64]
    head: NDArray[np.int64]
    after: NDArray[np.int64]
    before: NDArray[np.int64]
    row_head: NDArray[np.int64]
    row_count: NDArray[np.int64]
    node_column: NDArray[np.int32]
    node_after: NDArray[np.int64]
    weight: NDArray[np.uint64]
    seen: NDArray[np.int64]
    old: NDArray[np.int64]
    meta: NDArray[np.int64]


@njit(cache=True)
def install(s: System) -> None:
    """Make every column primitive, enter it into its chain and its rows' lists."""
    for c in range(len(s.kind)):
        if s.kind[c] != 0:
            _normalise(s, c)
            _enter(s, c)
            for k in range(s.start[c], s.start[c] + s.size[c]):
                s.row_count[s.rows[k]] += 1
                _push(s, s.rows[k], c)
    for c in range(len(s.kind)):
        if s.kind[c] & CANDIDATE:
            _settle(s, c)


@njit(cache=True)
def advance(s: System, order: NDArray[np.int64], begin: int, strict: bool) -> tuple[int, int]:
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
            s.decision[c] = REJECTED
            _remove(s, c)
        elif status != DONE:
            return k, status
    return len(order), DONE


@njit(cache=True)
def conflicts(s: System) -> int:
    """A primary that is spanned, or known to somebody who must not know it; −1 if there is none."""
    for c in range(len(s.kind)):
        if s.kind[c] & PRIMARY and (s.size[c] == 0 or _conflict(s, c)):
            return c
    return -1


@njit(cache=True)
def _accept(s: System, a: int, hit: NDArray[np.int64]) -> int:
    """Take a column into the span and eliminate one of its rows from all others."""
    r = _pivot(s, a)
    n_watched, n, room = _columns_of(s, r, a, hit)
    watched, candidates = hit[:n_watched], hit[len(hit) - n :]
    if not _has_room(s, room, (n_watched + n) * s.size[a]):
        return MEMORY
    status = _try_watched(s, a, r, watched)
    if status != DONE:
        return status
    s.decision[a] = ACCEPTED
    _keep_watched(s, watched, candidates)
    status = _change_candidates(s, a, r, candidates)
    _remove(s, a)
    _free_row(s, r)
    return status


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
def _columns_of(s: System, r: int, a: int, hit: NDArray[np.int64]) -> tuple[int, int, int]:
    """Columns with row `r` other than `a`: watched ones in front, candidates at the end.

    Returns the numbers of both, and how much room they need once changed.
    """
    s.meta[_STAMP] += 1
    watched, candidates, room, node = 0, 0, 0, s.row_head[r]
    while node != _NONE:
        c = s.node_column[node]
        if s.kind[c] != 0 and c != a and s.seen[c] != s.meta[_STAMP] and _at(s, c, r) != 0:
            s.seen[c] = s.meta[_STAMP]
            room += s.size[c] + s.size[a]
            if s.kind[c] & CANDIDATE:
                candidates += 1
                hit[len(hit) - candidates] = c
            else:
                hit[watched] = c
                watched += 1
        node = s.node_after[node]
    return watched, candidates, room


@njit(cache=True)
def _try_watched(s: System, a: int, r: int, watched: NDArray[np.int64]) -> int:
    """Change primary and lone columns, or leave all as they are when that gives one away."""
    end = s.meta[_END]
    for c in watched:
        _leave(s, c)
    for i, c in enumerate(watched):
        if not _combine(s, c, a, r):
            return OVERFLOW
        if (s.size[c] == 0 and s.kind[c] & PRIMARY) or _conflict(s, c):
            _restore(s, watched, i)
            s.meta[_END] = end
            return UNSAFE
        _enter(s, c)
    return DONE


@njit(cache=True)
def _restore(s: System, watched: NDArray[np.int64], last: int) -> None:
    """Undo changes of watched columns up to the last changed one, which is in no chain yet."""
    for i in range(last + 1):
        c = watched[i]
        if i < last:
            _leave(s, c)
        s.start[c], s.size[c], s.key[c] = s.old[c, 0], s.old[c, 1], np.uint64(s.old[c, 2])
    for c in watched:
        _enter(s, c)


@njit(cache=True)
def _keep_watched(s: System, watched: NDArray[np.int64], candidates: NDArray[np.int64]) -> None:
    """Make the changes of watched columns known, and reject what would give a primary away."""
    for c in candidates:
        _leave(s, c)
    for c in watched:
        _recount(s, c)
        if s.size[c] == 0:
            s.decision[c] = IMPLIED
            _remove(s, c)
        elif s.kind[c] & PRIMARY:
            _reject_equal(s, c)


@njit(cache=True)
def _change_candidates(s: System, a: int, r: int, candidates: NDArray[np.int64]) -> int:
    for c in candidates:
        if not _combine(s, c, a, r):
            return OVERFLOW
        _recount(s, c)
        _enter(s, c)
        _settle(s, c)
    return DONE


@njit(cache=True)
def _settle(s: System, c: int) -> None:
    """Decide a candidate that is implied, that would give a primary away, or that is another's."""
    if s.size[c] == 0:
        s.decision[c] = IMPLIED
        _remove(s, c)
        return
    d = s.head[s.key[c] & np.uint64(len(s.head) - 1)]
    while d != _NONE:
        following = s.after[d]
        if d != c and s.key[d] == s.key[c] and _equal(s, c, d):
            if s.kind[d] & PRIMARY:
                s.decision[c] = REJECTED
                _remove(s, c)
                return
            if s.kind[d] & CANDIDATE:
                late, early = max(c, d), min(c, d)
                s.decision[late], s.same_as[late] = ALIAS, early
                _remove(s, late)
                if late == c:
                    return
        d = following


@njit(cache=True)
def _reject_equal(s: System, c: int) -> None:
    """Reject the candidates that are proportional to a primary column."""
    d = s.head[s.key[c] & np.uint64(len(s.head) - 1)]
    while d != _NONE:
        following = s.after[d]
        if s.kind[d] & CANDIDATE and s.key[d] == s.key[c] and _equal(s, c, d):
            s.decision[d] = REJECTED
            _remove(s, d)
        d = following


@njit(cache=True)
def _conflict(s: System, c: int) -> bool:
    """Whether a primary column follows from a lone one for somebody it does not belong to."""
    d = s.head[s.key[c] & np.uint64(len(s.head) - 1)]
    while d != _NONE:
        if d != c and s.key[d] == s.key[c] and s.size[c] > 0:
            told = s.kind[c] & PRIMARY and s.kind[d] & LONE and s.owner[c] != s.attacker[d]
            tells = s.kind[c] & LONE and s.kind[d] & PRIMARY and s.owner[d] != s.attacker[c]
            if (told or tells) and _equal(s, c, d):
                return True
        d = s.after[d]
    return False


@njit(cache=True)
def _combine(s: System, b: int, a: int, r: int) -> bool:
    """Replace `b` by its combination with `a` that lacks row `r`; false when numbers get large."""
    p, q = _at(s, a, r), _at(s, b, r)
    g = _gcd(p, q)
    p, q = p // g, q // g
    i, i_end = s.start[b], s.start[b] + s.size[b]
    j, j_end = s.start[a], s.start[a] + s.size[a]
    begin = out = s.meta[_END]
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and s.rows[i] < s.rows[j]):
            row, value = s.rows[i], p * s.values[i]
            i += 1
        elif i == i_end or s.rows[j] < s.rows[i]:
            row, value = s.rows[j], -q * s.values[j]
            j += 1
        else:
            row, value = s.rows[i], p * s.values[i] - q * s.values[j]
            i += 1
            j += 1
        if value != 0:
            s.rows[out], s.values[out] = row, value
            out += 1
    s.old[b, 0], s.old[b, 1], s.old[b, 2] = s.start[b], s.size[b], np.int64(s.key[b])
    s.start[b], s.size[b] = begin, out - begin
    s.meta[_END] = out
    return _normalise(s, b) <= _LARGEST


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
def _recount(s: System, c: int) -> None:
    """Tell the rows which of them a changed column has now."""
    i, i_end = s.old[c, 0], s.old[c, 0] + s.old[c, 1]
    j, j_end = s.start[c], s.start[c] + s.size[c]
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and s.rows[i] < s.rows[j]):
            s.row_count[s.rows[i]] -= 1
            i += 1
        elif i == i_end or s.rows[j] < s.rows[i]:
            s.row_count[s.rows[j]] += 1
            _push(s, s.rows[j], c)
            j += 1
        else:
            i += 1
            j += 1


@njit(cache=True)
def _remove(s: System, c: int) -> None:
    """Take a column out of the system."""
    for k in range(s.start[c], s.start[c] + s.size[c]):
        s.row_count[s.rows[k]] -= 1
    _leave(s, c)
    s.kind[c] = 0


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
def _at(s: System, c: int, r: int) -> int:
    """The number of column `c` in row `r`."""
    low, high = s.start[c], s.start[c] + s.size[c]
    while low < high:
        middle = (low + high) // 2
        if s.rows[middle] < r:
            low = middle + 1
        else:
            high = middle
    if low < s.start[c] + s.size[c] and s.rows[low] == r:
        return int(s.values[low])
    return 0


@njit(cache=True)
def _gcd(a: int, b: int) -> int:
    a, b = abs(a), abs(b)
    while b:
        a, b = b, a % b
    return a


@njit(cache=True)
def _enter(s: System, c: int) -> None:
    place = s.key[c] & np.uint64(len(s.head) - 1)
    first = s.head[place]
    s.after[c], s.before[c] = first, _NONE
    if first != _NONE:
        s.before[first] = c
    s.head[place] = c


@njit(cache=True)
def _leave(s: System, c: int) -> None:
    """Take a column out of its chain; nothing happens when it is in none."""
    place = s.key[c] & np.uint64(len(s.head) - 1)
    if s.before[c] == _NONE and s.head[place] != c:
        return
    if s.before[c] == _NONE:
        s.head[place] = s.after[c]
    else:
        s.after[s.before[c]] = s.after[c]
    if s.after[c] != _NONE:
        s.before[s.after[c]] = s.before[c]
    s.before[c] = s.after[c] = _NONE


@njit(cache=True)
def _push(s: System, r: int, c: int) -> None:
    node = s.meta[_FREE]
    if node != _NONE:
        s.meta[_FREE] = s.node_after[node]
    else:
        node = s.meta[_NODES]
        s.meta[_NODES] += 1
    s.node_column[node], s.node_after[node] = c, s.row_head[r]
    s.row_head[r] = node


@njit(cache=True)
def _free_row(s: System, r: int) -> None:
    node = s.row_head[r]
    while node != _NONE:
        following = s.node_after[node]
        s.node_after[node] = s.meta[_FREE]
        s.meta[_FREE] = node
        node = following
    s.row_head[r] = _NONE


@njit(cache=True)
def _has_room(s: System, entries: int, nodes: int) -> bool:
    if s.meta[_NODES] + nodes > len(s.node_column):
        return False
    if s.meta[_END] + entries > len(s.rows):
        _compact(s)
    return bool(s.meta[_END] + entries <= len(s.rows))


@njit(cache=True)
def _compact(s: System) -> None:
    """Close the gaps between columns."""
    order = np.argsort(s.start)
    end = 0
    for c in order:
        if s.kind[c] == 0 or s.size[c] == 0:
            s.size[c] = 0
            continue
        begin, size = s.start[c], s.size[c]
        for k in range(size):
            s.rows[end + k], s.values[end + k] = s.rows[begin + k], s.values[begin + k]
        s.start[c] = end
        end += size
    s.meta[_END] = end


def empty_meta(entries: int) -> NDArray[Any]:
    """The bookkeeping of a system whose columns fill this many entries."""
    return np.array([entries, 0, _NONE, 0], dtype=np.int64)
