"""Matrices with many rows and few columns: checks, and passes over blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.arrays import Real
from discreet.errors import DataError, ParameterError
from discreet.synthesize.tolerances import ROWS, SINGLE_THREAD, SINGLE_THREAD_VECTOR


def as_matrix(values: Any, name: str) -> Real:
    """Values as a matrix of finite floats; one column may be given as a vector."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise ParameterError(f"{name} has {matrix.ndim} dimensions, expected rows and columns.")
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in row_blocks(len(matrix)):
            if np.isfinite(matrix[rows].sum()):  # so are all its terms
                continue
            finite = np.isfinite(matrix[rows]).all(axis=0)
            if not finite.all():
                raise DataError(
                    f"column {int(np.argmin(finite))} of {name} holds missing or infinite values. "
                    "Leave such rows out, or fill them in first."
                )
    return matrix


def same_rows(**matrices: Real) -> None:
    """Refuse matrices that differ in their number of rows."""
    lengths = {name: len(matrix) for name, matrix in matrices.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ParameterError(f"all matrices need the same rows, but {shown}.")


def row_blocks(n: int, a: int = 1, b: int = 1) -> Iterator[slice]:
    """Slices that cover `n` rows, of which each takes part in a product of a by b columns."""
    limit = SINGLE_THREAD if min(a, b) > 1 else SINGLE_THREAD_VECTOR
    size = min(ROWS, limit // max(a * b, 1))
    size = size if size >= ROWS // 16 else 8 * ROWS
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def binary_scales(A: Real) -> Real:
    """For each column the power of two next above its largest entry; dividing by it is exact."""
    top = np.zeros(A.shape[1])
    for rows in row_blocks(len(A)):
        np.maximum(top, np.abs(A[rows]).max(axis=0), out=top)
    return np.ldexp(1.0, np.frexp(np.where(top > 0, top, 0.5))[1])


def lengths(A: Real) -> Real:
    """Euclidean length of each column, also where squares leave the range of floats."""
    squares = _squares(A)
    if in_range(squares):
        return np.asarray(np.sqrt(squares))
    scales = binary_scales(A)
    return np.asarray(np.sqrt(_squares(A / scales)) * scales)


def in_range(squares: Real) -> bool:
    """Whether sums of squares are neither zero nor at the end of the range of floats."""
    return bool(((squares > 1e-280) & (squares < 1e280)).all())


def _squares(A: Real) -> Real:
    with np.errstate(over="ignore", under="ignore"):
        blocks = (A[rows] for rows in row_blocks(len(A)))
        squares = (np.einsum("ij,ij->j", block, block) for block in blocks)
        return sum(squares, np.zeros(A.shape[1]))


def cross(A: Real, B: Real) -> Real:
    r"""The products of columns, :math:`A^\top B`, summed block by block."""
    total = np.zeros((A.shape[1], B.shape[1]))
    for rows in row_blocks(len(A), *total.shape):
        total += A[rows].T @ B[rows]
    return total


def product(A: Real, B: Real, *, out: Real | None = None) -> Real:
    """A tall matrix times a small one, block by block; `out` may be the tall one itself."""
    out = np.empty((len(A), B.shape[1])) if out is None else out
    for rows in row_blocks(len(A), *B.shape):
        out[rows] = A[rows] @ B
    return out
