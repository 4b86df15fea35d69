"""Compiled sums over the published cells of inner cells.

The sums of an `Incidence` come as heads and tails, which add up to the published cell of each group
and inner cell (beyond the last one where there is none), and as edges: published cells that are
summed into coarser ones, finest first.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.arrays import Real, Whole, Whole32

Sums = tuple[Whole32, Whole32, Whole32, Whole32]


@njit(cache=True)
def lift(fine: Whole32, coarse: Whole32, published: Real) -> None:
    """Sum published cells into the coarser ones, finest first."""
    for e in range(len(fine)):
        published[coarse[e]] += published[fine[e]]


@njit(cache=True)
def lower(fine: Whole32, coarse: Whole32, published: Real) -> None:
    """The adjoint of `lift`: published cells take on the values of the coarser ones."""
    for e in range(len(fine) - 1, -1, -1):
        published[fine[e]] += published[coarse[e]]


@njit(cache=True)
def sum_up(sums: Sums, inner: Real, published: Real) -> None:
    """Write the sums of inner cells to the published cells."""
    head, tail, fine, coarse = sums
    published[:] = 0.0
    n = tail.shape[1]
    for h in range(head.shape[1]):
        first, part = head[:, h].copy(), inner[h * n : (h + 1) * n]
        for i in range(n):
            for g in range(len(tail)):
                k = np.uint32(first[g] + tail[g, i])  # never negative: no check for that
                if k < len(published):
                    published[k] += part[i]
    lift(fine, coarse, published)


@njit(cache=True)
def hand_down(sums: Sums, published: Real, inner: Real) -> None:
    """Write to each inner cell the sum over its published cells, which are used up."""
    head, tail, fine, coarse = sums
    lower(fine, coarse, published)
    inner[:] = 0.0
    n = tail.shape[1]
    for h in range(head.shape[1]):
        part = inner[h * n : (h + 1) * n]
        for g in range(len(tail)):
            first, row = head[g, h], tail[g]
            for i in range(n):
                k = first + row[i]
                if k < len(published):
                    part[i] += published[k]


@njit(cache=True)
def pack_columns(indptr: Whole32, indices: Whole32, n_inner: int) -> Whole:
    """A group for every column, the first one none of whose columns shares an inner cell with it.

    Bit `g` of `taken[i]` says that inner cell `i` has a column in group `g`; groups beyond the
    63 that fit are opened 63 at a time for the columns left over.
    """
    m = len(indptr) - 1
    group = np.full(m, -1, dtype=np.int64)
    first = 0
    left = m
    while left > 0:
        taken = np.zeros(n_inner, dtype=np.int64)
        for k in range(m):
            if group[k] >= 0:
                continue
            used = np.int64(0)
            for j in range(indptr[k], indptr[k + 1]):
                used |= taken[indices[j]]
            g = 0
            while g < 62 and used >> g & 1:
                g += 1
            if g < 62:
                group[k] = first + g
                left -= 1
                for j in range(indptr[k], indptr[k + 1]):
                    taken[indices[j]] |= np.int64(1) << g
        first += 62
    return group
