"""Matrices with many rows and few columns: checks, and passes over blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError, ParameterError

Matrix = NDArray[np.float64]

BLOCK = 8192
"""Rows handled at a time: a block of thirty columns fits into the processor's cache."""


def as_matrix(values: Any, name: str) -> Matrix:
    """Values as a matrix of finite floats; one column may be given as a vector."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        msg = f"{name} has {matrix.ndim} dimensions, expected rows and columns."
        raise ParameterError(msg)
    for rows in row_blocks(len(matrix)):
        finite = np.isfinite(matrix[rows]).all(axis=0)
        if not finite.all():
            msg = (
                f"column {int(np.argmin(finite))} of {name} holds missing or infinite values. "
                "Leave such rows out, or fill them in first."
            )
            raise DataError(msg)
    return matrix


def same_rows(**matrices: Matrix) -> None:
    """Refuse matrices that differ in their number of rows."""
    lengths = {name: len(matrix) for name, matrix in matrices.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        msg = f"all matrices need the same rows, but {shown}."
        raise ParameterError(msg)


def row_blocks(n: int) -> Iterator[slice]:
    """Slices that cover `n` rows."""
    return (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


def binary_scales(A: Matrix) -> Matrix:
    """For each column the power of two next above its largest entry; dividing by it is exact."""
    top = np.zeros(A.shape[1])
    for rows in row_blocks(len(A)):
        np.maximum(top, np.abs(A[rows]).max(axis=0), out=top)
    return np.ldexp(1.0, np.frexp(np.where(top > 0, top, 0.5))[1])


def lengths(A: Matrix) -> Matrix:
    """Euclidean length of each column."""
    scales = binary_scales(A)
    squares = np.zeros(A.shape[1])
    for rows in row_blocks(len(A)):
        block = A[rows] / scales
        squares += np.einsum("ij,ij->j", block, block)
    return np.asarray(np.sqrt(squares) * scales)


def cross(A: Matrix, B: Matrix) -> Matrix:
    r"""The products of columns, :math:`A^\top B`, summed block by block."""
    total = np.zeros((A.shape[1], B.shape[1]))
    for rows in row_blocks(len(A)):
        total += A[rows].T @ B[rows]
    return total
