"""Matrices with many rows and few columns: checks, and passes over blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError, ParameterError

Matrix = NDArray[np.float64]

ROWS = 1024
"""Rows handled at a time, so that a block of a few dozen columns stays in the processor's cache."""

SINGLE_THREAD = 2**18
"""Multiplications up to which BLAS does not divide a product among threads. Products of few columns
stay below it: dividing them costs more than the product itself, above all on a busy machine."""

SINGLE_THREAD_VECTOR = 2**13
"""The same for products with a vector."""


def as_matrix(values: Any, name: str) -> Matrix:
    """Values as a matrix of finite floats; one column may be given as a vector."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        msg = f"{name} has {matrix.ndim} dimensions, expected rows and columns."
        raise ParameterError(msg)
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = [rows for rows in row_blocks(len(matrix)) if not _finite_sum(matrix[rows])]
    for rows in suspicious:
        finite = np.isfinite(matrix[rows]).all(axis=0)
        if not finite.all():
            msg = (
                f"column {int(np.argmin(finite))} of {name} holds missing or infinite values. "
                "Leave such rows out, or fill them in first."
            )
            raise DataError(msg)
    return matrix


def _finite_sum(block: Matrix) -> bool:
    return bool(np.isfinite(block.sum()))


def same_rows(**matrices: Matrix) -> None:
    """Refuse matrices that differ in their number of rows."""
    lengths = {name: len(matrix) for name, matrix in matrices.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        msg = f"all matrices need the same rows, but {shown}."
        raise ParameterError(msg)


def row_blocks(n: int, a: int = 1, b: int = 1) -> Iterator[slice]:
    """Slices that cover `n` rows, of which each takes part in a product of a by b columns."""
    limit = SINGLE_THREAD if min(a, b) > 1 else SINGLE_THREAD_VECTOR
    size = min(ROWS, limit // max(a * b, 1))
    size = size if size >= ROWS // 16 else 8 * ROWS
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def binary_scales(A: Matrix) -> Matrix:
    """For each column the power of two next above its largest entry; dividing by it is exact."""
    top = np.zeros(A.shape[1])
    for rows in row_blocks(len(A)):
        np.maximum(top, np.abs(A[rows]).max(axis=0), out=top)
    return np.ldexp(1.0, np.frexp(np.where(top > 0, top, 0.5))[1])


def lengths(A: Matrix) -> Matrix:
    """Euclidean length of each column, also where squares leave the range of floats."""
    squares = _squares(A, np.ones(A.shape[1]))
    if in_range(squares):
        return np.asarray(np.sqrt(squares))
    scales = binary_scales(A)
    return np.asarray(np.sqrt(_squares(A, scales)) * scales)


def in_range(squares: Matrix) -> bool:
    """Whether sums of squares are neither zero nor at the end of the range of floats."""
    return bool(((squares > 1e-280) & (squares < 1e280)).all())


def _squares(A: Matrix, scales: Matrix) -> Matrix:
    total = np.zeros(A.shape[1])
    with np.errstate(over="ignore", under="ignore"):
        for rows in row_blocks(len(A)):
            block = A[rows] if (scales == 1).all() else A[rows] / scales
            total += np.einsum("ij,ij->j", block, block)
    return total


def cross(A: Matrix, B: Matrix) -> Matrix:
    r"""The products of columns, :math:`A^\top B`, summed block by block."""
    total = np.zeros((A.shape[1], B.shape[1]))
    for rows in row_blocks(len(A), *total.shape):
        total += A[rows].T @ B[rows]
    return total


def product(A: Matrix, B: Matrix) -> Matrix:
    """A tall matrix times a small one, block by block."""
    out = np.empty((len(A), B.shape[1]))
    for rows in row_blocks(len(A), *B.shape):
        np.matmul(A[rows], B, out=out[rows])
    return out
