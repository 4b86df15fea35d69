"""Exact sparse elimination: which columns are linear combinations of which others.

The question of suppression is one of spans: a hidden cell is disclosed when its column of `X` is a
linear combination of the columns of published cells.

Columns are combined in whole numbers without division and made primitive after each step, so
nothing is rounded; a number that would leave 31 bits is an error, never a wrong answer.

In the compiled part a column has a line for each of its entries, a row and a whole number, by row.
It is kept primitive (its numbers have no common divisor, the first is positive), so that numbers
stay small. Lists say which columns have a row. A column that has lost the row stays in the list;
whoever reads a list looks at the column itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from discreet.arrays import Mask, Whole
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from scipy.sparse import csc_array


class EliminationError(DiscreetError):
    """Numbers became too large for exact elimination in machine words."""


def rank(columns: csc_array) -> int:
    """The rank of a sparse matrix of whole numbers, exactly."""
    return _take_all(columns, columns[:, :0])[0]


def find_spanned(columns: csc_array, targets: csc_array) -> Mask:
    """Which targets are linear combinations of the columns, exactly."""
    return np.equal(_take_all(columns, targets)[1], 0)


def _take_all(columns: csc_array, targets: csc_array) -> tuple[int, Whole]:
    """The rank of the columns, and how many rows are left of each target without them."""
    from scipy.sparse import csc_array, hstack

    both = csc_array(hstack([columns, targets], format="csc"))
    # Short columns come first: that keeps others short.
    order = np.argsort(np.diff(both.indptr)[: columns.shape[1]], kind="stable")
    both.sort_indices()
    entries = np.column_stack([both.indices, both.data]).astype(np.int64)
    try:
        found, left = eliminate(both.indptr.astype(np.int64), entries, both.shape[0], order)
    except OverflowError:
        raise EliminationError(
            "numbers beyond 31 bits arose in an exact elimination. Publish fewer tables at once, "
            "or fewer levels."
        ) from None
    return int(found), left[columns.shape[1] :]


_NONE = -1  # stands for no row
_LARGEST = 1 << 30  # products of two such numbers, and their differences, fit into 64 bits
_WORSE = 1 << 40  # beyond any number of columns


class System(NamedTuple):
    """Columns with the span taken out of them."""

    columns: list[Whole]  # rows and numbers of each column; none once it is in the span
    row_count: Whole  # number of columns with each row
    lists: list[list[int]]  # the columns with each row


@njit(cache=True)
def eliminate(start: Whole, entries: Whole, n_rows: int, order: Whole) -> tuple[int, Whole]:
    """Take columns into the span in the given order; the rank, and the length of what is left.

    The entries of column `c`, rows and numbers, are those from `start[c]` to `start[c + 1]`.
    """
    s, rank = _system(start, entries, n_rows), 0
    for a in order:
        if len(s.columns[a]):
            _take(s, a)
            rank += 1
            for r in s.columns[a][:, 0]:  # once taken, it has no more part in the system
                s.row_count[r] -= 1
            s.columns[a] = np.empty((0, 2), np.int64)
    left = np.zeros(len(s.columns), np.int64)
    for c, column in enumerate(s.columns):
        left[c] = len(column)
    return rank, left


@njit(cache=True)
def _system(start: Whole, entries: Whole, n_rows: int) -> System:
    """Primitive columns, and their lists."""
    columns = [_primitive(entries[start[c] : start[c + 1]]) for c in range(len(start) - 1)]
    lists, count = [[0 for _ in range(0)] for _ in range(n_rows)], np.zeros(n_rows, np.int64)
    for c, column in enumerate(columns):
        for r in column[:, 0]:
            count[r] += 1
            lists[r].append(c)
    return System(columns, count, lists)


@njit(cache=True)
def _take(s: System, a: int) -> None:
    """Eliminate a row of a column from all others.

    A column that comes up again in the list has lost the row.
    """
    r = _pivot(s, a)
    for c in s.lists[r]:
        if c != a and _at(s.columns[c], r):
            _replace(s, c, _combine(s.columns[c], s.columns[a], r), a)
    s.lists[r].clear()


@njit(cache=True)
def _pivot(s: System, a: int) -> int:
    """The row with the fewest other columns; numbers other than one count as if there were more."""
    best, least = _NONE, 0
    for r, value in s.columns[a]:
        # A pivot of one multiplies no column, so that numbers stay small.
        cost = s.row_count[r] + (_WORSE if abs(value) != 1 else 0)
        if best == _NONE or cost < least:
            best, least = r, cost
    return int(best)


@njit(cache=True)
def _combine(b: Whole, a: Whole, r: int) -> Whole:
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
def _primitive(column: Whole) -> Whole:
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
def _replace(s: System, c: int, column: Whole, a: int) -> None:
    """Replace a column by another that differs from it in rows of `a` only."""
    for r in s.columns[a][:, 0]:
        had, has = _at(s.columns[c], r) != 0, _at(column, r) != 0
        s.row_count[r] += int(has) - int(had)
        if has and not had:
            s.lists[r].append(c)
    s.columns[c] = column


@njit(cache=True)
def _at(column: Whole, r: int) -> int:
    """The number in row `r` of a column."""
    low, high = 0, len(column)
    while low < high:
        middle = (low + high) // 2
        if column[middle, 0] < r:
            low = middle + 1
        else:
            high = middle
    return column[low, 1] if low < len(column) and column[low, 0] == r else 0
