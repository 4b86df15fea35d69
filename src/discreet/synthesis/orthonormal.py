r"""Generalised QR decomposition of tall matrices, :math:`A = QR` (Langsrud 2019a, appendix 1).

The decomposition is Gram–Schmidt orthogonalisation in the given order of columns. A column that
depends on those before it gives no column of :math:`Q`; its coefficients still stand in
:math:`R`, whose leading entries are positive. This makes the decomposition unique.

Speed comes from products: :math:`R_1` is the Cholesky root of :math:`A^\top A` on scaled columns,
:math:`Q_1 = A R_1^{-1}`, and the same once more on :math:`Q_1`, whose columns are orthonormal up
to :math:`\mathrm{cond}(A)^2` times rounding, gives orthonormality up to rounding. Where columns
are near to dependence, :math:`R_1` comes from Householder reflections of blocks of rows instead,
and dependence is judged on the small :math:`R_1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Real
from discreet.errors import DataError, ParameterError

# Squared sine between a column and those before it from which the Cholesky route is trusted. The
# route loses the square of the condition number: about ten digits of R are left here, from which
# the second division restores the rest.
SAFE_PIVOT = 1e-6


# Deviation of products from the identity up to which the second division would change nothing.
ORTHONORMAL = 1e-13


# Rows handled at a time, so that a block of a few dozen columns stays in the processor's cache.
ROWS = 1024


# Multiplications up to which BLAS does not divide a product among threads. Products of few columns
# stay below it: dividing them costs more than the product itself, above all on a busy machine.
SINGLE_THREAD = 2**18
SINGLE_THREAD_VECTOR = 2**13  # the same for products with a vector


@dataclass(frozen=True)
class Triangle:
    r"""The small factor of :math:`A = QR`."""

    R: Real  # r×m, echelon form, leading entries positive
    kept: np.ndarray  # the r columns of A that do not depend on those before them
    is_safe: bool = False  # far enough from dependence to multiply by the inverse


def orthonormal(A: Real, tolerance: float, *, overwrite: bool = False) -> tuple[Real, Real]:
    r"""Generalised QR: :math:`Q` (n×r, orthonormal) and :math:`R` (r×m).

    A column is dependent when less than `tolerance` of its length is new. With `overwrite`,
    :math:`Q` takes the memory of `A` where possible.
    """
    first = triangle(A, tolerance)
    if len(first.kept) < A.shape[1]:
        A = A[:, first.kept]
    Q = A if overwrite and A.flags.c_contiguous else np.empty(A.shape)
    products = _divide(A, first.R[:, first.kept], first.is_safe, out=Q)
    if np.abs(products - np.eye(len(products))).max(initial=0.0) <= ORTHONORMAL:
        return Q, first.R
    root = np.asarray(np.linalg.cholesky(products).T, dtype=np.float64)
    _divide(Q, root, True, out=Q)
    return Q, root @ first.R


def triangle(A: Real, tolerance: float) -> Triangle:
    """The small factor alone."""
    gram = np.zeros((A.shape[1], A.shape[1]))
    # Products out of range become infinite or zero, which the Cholesky route below refuses.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for rows in row_blocks(len(A), *gram.shape):
            gram += A[rows].T @ A[rows]
    root = _cholesky(gram)
    if root is not None:
        return Triangle(root, np.arange(A.shape[1]), is_safe=True)
    return echelon(householder(A), tolerance)


def echelon(A: Real, tolerance: float) -> Triangle:
    """Gram–Schmidt with reorthogonalisation on a small matrix, column by column."""
    scales = binary_scales(A)
    A = A / scales
    Q = np.zeros((len(A), 0))
    kept = []
    for j in range(A.shape[1]):
        length = np.linalg.norm(A[:, j])
        new = A[:, j] - Q @ (Q.T @ A[:, j])
        new -= Q @ (Q.T @ new)  # twice is enough: a third time changes rounding alone
        rest = np.linalg.norm(new)
        if rest > tolerance * length:
            kept.append(j)
            Q = np.column_stack([Q, new / rest])
    R = Q.T @ A
    for i, j in enumerate(kept):
        R[i, :j] = 0.0  # rounding, and the echelon form is what makes R unique
    return Triangle(R * scales, np.array(kept, dtype=np.intp))


def _cholesky(gram: Real) -> Real | None:
    """The Cholesky root, or nothing when columns are too near to dependence for it."""
    if not in_range(np.diag(gram)):
        return None
    length = np.sqrt(np.diag(gram))
    try:
        root = np.linalg.cholesky(gram / length / length[:, None]).T
    except np.linalg.LinAlgError:
        return None
    is_safe = (np.diag(root) ** 2 >= SAFE_PIVOT).all()
    return np.asarray(root * length, dtype=np.float64) if is_safe else None


def householder(A: Real) -> Real:
    """The triangular factor by reflections: of blocks of rows, then of their factors."""
    scales = binary_scales(A)
    factors = [
        np.linalg.qr(A[rows] / scales, mode="r") for rows in row_blocks(len(A), 2 * A.shape[1])
    ]
    return np.asarray(np.linalg.qr(np.vstack(factors), mode="r")) * scales


def _divide(A: Real, R: Real, is_safe: bool, *, out: Real) -> Real:
    r"""Write :math:`A R^{-1}` and return the products of the new columns."""
    # Division by powers of two is exact, and the inverse has entries near one whatever the units
    # of the columns are.
    scales = binary_scales(R)
    inverse = np.linalg.inv(R / scales) / scales[:, None] if is_safe else None
    products = np.zeros(R.shape)
    for rows in row_blocks(len(A), len(R), len(R) if is_safe else 1):
        if inverse is None:
            out[rows] = _substitute(A[rows], R)
        else:
            np.matmul(A[rows], inverse, out=out[rows])
        products += out[rows].T @ out[rows]
    return products


def _substitute(block: Real, R: Real) -> Real:
    # Column by column each row is solved backward stably, however near R is to singular; the
    # inverse would lose as many digits as the condition of R has.
    Q = np.empty(block.shape)
    for j in range(len(R)):
        Q[:, j] = (block[:, j] - Q[:, :j] @ R[:j, j]) / R[j, j]
    return Q


def as_matrix(values: Any, name: str) -> Real:
    """Values as a matrix of finite floats; one column may be given as a vector."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise ParameterError(f"{name} has {matrix.ndim} dimensions, expected rows and columns.")
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in row_blocks(len(matrix)):
            # A finite sum has finite terms alone, and one sum a block is far cheaper than a mask.
            if np.isfinite(matrix[rows].sum()):
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
    # Wide products would need slivers of rows to stay below the limit; threads pay for them, and
    # then large blocks are best.
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
