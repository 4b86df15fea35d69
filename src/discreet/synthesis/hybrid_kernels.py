"""The compiled regressions and decompositions within blocks of rows.

Columns of data are rows of the arrays here, so that the values of a column within a block lie
side by side; block `b` covers places `starts[b]` to `starts[b + 1]`. Each block is copied into
memory of its own, worked on, and written back. Orthogonalisation is Gram–Schmidt in the order of
columns, made twice; it drops columns that depend on those before them and packs the others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from discreet.arrays import Real, Whole


@njit(cache=True)
def gather(A: Real, order: Whole, factors: Real, out: Real) -> None:
    """Write the columns of a matrix, multiplied by factors, as rows in a given order."""
    for place in range(len(order)):
        for j in range(A.shape[1]):
            out[j, place] = A[order[place], j] * factors[j]


@njit(cache=True)
def scatter(columns: Real, order: Whole, factors: Real, A: Real) -> None:
    """The way back from `gather`, with factors of its own."""
    for place in range(len(order)):
        for j in range(A.shape[1]):
            A[order[place], j] = columns[j, place] * factors[j]


# Sums in any order let the compiler add several products at a time; nothing else is relaxed, so
# that infinite values stay what they are.
@njit(cache=True, fastmath={"reassoc", "contract"})
def _dot(a: Real, b: Real) -> Any:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True)
def _subtract(a: Real, factor: Any, b: Real) -> None:
    for i in range(len(a)):
        a[i] -= factor * b[i]


@njit(cache=True)
def _orthonormal(A: Real, lengths: Real, tolerance: Any, R: Real) -> Any:
    """Replace A by an orthonormal basis, packed first; R receives A in terms of it.

    A column is dependent when what is new in it is at most `tolerance` of its entry in `lengths`.
    """
    rank = 0
    R[:] = 0.0
    for j in range(len(A)):
        # A second round takes off what rounding of the first left along the basis.
        for _ in range(2):
            for i in range(rank):
                part = _dot(A[i], A[j])
                R[i, j] += part
                _subtract(A[j], part, A[i])
        rest = math.sqrt(_dot(A[j], A[j]))
        if rest > tolerance * lengths[j]:
            R[rank, j] = rest
            A[rank] = A[j] / rest
            rank += 1
    return rank


@njit(cache=True)
def lengths_within(starts: Whole, A: Real) -> Real:
    """Length of each column within each block, blocks × columns."""
    out = np.empty((len(starts) - 1, len(A)))
    for b in range(len(out)):
        for j in range(len(A)):
            column = A[j, starts[b] : starts[b + 1]]
            out[b, j] = math.sqrt(_dot(column, column))
    return out


@njit(cache=True)
def orthonormal_within(starts: Whole, A: Real, lengths: Real, tolerance: Any) -> Whole:
    """Replace A within each block by an orthonormal basis, packed first and zeros after.

    A column is dependent when what is new in it is at most `tolerance` of its length as given,
    blocks × columns. Returns how many columns the bases have.
    """
    ranks = np.zeros(len(starts) - 1, dtype=np.int64)
    R = np.empty((len(A), len(A)))
    for b in range(len(ranks)):
        block = A[:, starts[b] : starts[b + 1]].copy()
        ranks[b] = _orthonormal(block, lengths[b], tolerance, R)
        block[ranks[b] :] = 0.0
        A[:, starts[b] : starts[b + 1]] = block
    return ranks


@njit(cache=True)
def subtract_within(starts: Whole, Q: Real, ranks: Whole, A: Real) -> None:
    """Replace A by its residuals on the orthonormal bases of each block, projected twice."""
    for b in range(len(ranks)):
        if ranks[b] == 0:
            continue
        basis = Q[: ranks[b], starts[b] : starts[b + 1]].copy()
        block = A[:, starts[b] : starts[b + 1]].copy()
        for _ in range(2):
            block -= np.dot(np.dot(block, basis.T), basis)
        A[:, starts[b] : starts[b + 1]] = block


@njit(cache=True)
def clear_rounding(starts: Whole, A: Real, lengths: Real, share: Any) -> None:
    """Set columns to zero within blocks where they are at most a share of the given lengths."""
    for b in range(len(starts) - 1):
        for j in range(len(A)):
            column = A[j, starts[b] : starts[b + 1]]
            if math.sqrt(_dot(column, column)) <= share * lengths[b, j]:
                column[:] = 0.0


@njit(cache=True)
def replace_within(starts: Whole, E: Real, tolerance: Any, T: Real) -> Whole:
    """Replace the scores T of each block by T W, with the loadings W of E = (scores) W.

    Returns how many scores E has within each block.
    """
    ranks = np.zeros(len(starts) - 1, dtype=np.int64)
    W, lengths = np.empty((len(E), len(E))), lengths_within(starts, E)
    for b in range(len(ranks)):
        block = E[:, starts[b] : starts[b + 1]].copy()
        ranks[b] = _orthonormal(block, lengths[b], tolerance, W)
        scores = T[:, starts[b] : starts[b + 1]].copy()
        T[:, starts[b] : starts[b + 1]] = np.dot(W.T, scores)
    return ranks


@njit(cache=True)
def products_within(starts: Whole, A: Real) -> Real:
    """Sums of products of the columns within each block, blocks × columns × columns."""
    out = np.empty((len(starts) - 1, len(A), len(A)))
    for b in range(len(out)):
        block = A[:, starts[b] : starts[b + 1]].copy()
        out[b] = np.dot(block, block.T)
    return out


@njit(cache=True)
def spread_within(starts: Whole, T: Real, C: Real) -> None:
    """Replace the scores T of each block by T C, with C of that block."""
    for b in range(len(C)):
        scores = T[:, starts[b] : starts[b + 1]].copy()
        T[:, starts[b] : starts[b + 1]] = np.dot(C[b].T, scores)


@njit(cache=True)
def triangular_roots(G: Real, tolerance: Any) -> Whole:
    """Replace each G by an echelon C with CᵀC = G, its rows packed first; return their numbers.

    Cholesky in the order of columns; a column whose pivot is at most `tolerance` adds no row.
    """
    ranks = np.zeros(len(G), dtype=np.int64)
    k = G.shape[1]
    for b in range(len(G)):
        left, C = G[b].copy(), G[b]
        C[:] = 0.0
        for j in range(k):
            # The matrix is semidefinite: with a pivot of zero the rest of its row is rounding.
            if left[j, j] <= tolerance:
                continue
            row = left[j] / math.sqrt(left[j, j])
            row[:j] = 0.0
            for i in range(k):
                _subtract(left[i], row[i], row)
            C[ranks[b]] = row
            ranks[b] += 1
    return ranks
