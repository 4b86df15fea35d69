"""Compiled passes over the published cells of inner cells."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Index = NDArray[np.int32]
Vector = NDArray[np.float64]


@njit(cache=True)
def pack_columns(indptr: Index, indices: Index, n_inner: int) -> NDArray[np.int64]:
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


@njit(cache=True)
def spread(head: Index, tail: Index, v: Vector, out: Vector) -> None:
    """`Xv`: for each inner cell the sum over its published cells; `v` has a zero at the end."""
    out[:] = 0.0
    none, n = len(v) - 1, tail.shape[1]
    for h in range(head.shape[1]):
        part = out[h * n : (h + 1) * n]
        for g in range(tail.shape[0]):
            first, row = head[g, h], tail[g]
            for i in range(n):
                part[i] += v[min(first + row[i], none)]


@njit(cache=True)
def lift(fine: Index, coarse: Index, sums: Vector) -> None:
    """Sum published cells into the coarser ones, finest first."""
    for e in range(len(fine)):
        sums[coarse[e]] += sums[fine[e]]


@njit(cache=True)
def lower(fine: Index, coarse: Index, v: Vector) -> None:
    """The adjoint of `lift`: published cells take on the values of the coarser ones."""
    for e in range(len(fine) - 1, -1, -1):
        v[fine[e]] += v[coarse[e]]


@njit(cache=True)
def add_sums(row: Index, y: Vector, sums: Vector) -> None:
    """Add the inner cells to the published cells of one group."""
    last = 0
    run = 0.0
    for i in range(len(row)):
        k = row[i]
        if k == last:
            run += y[i]
        else:
            sums[last] += run
            last = k
            run = y[i]
    sums[last] += run
