r"""Generalised QR decomposition of tall matrices, :math:`A = QR` (Langsrud 2019, appendix 1).

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

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from discreet.synthesize.matrices import Matrix, binary_scales, row_blocks

SAFE_PIVOT = 1e-6
"""Squared sine between a column and those before it from which the Cholesky route is trusted."""


@dataclass(frozen=True)
class Triangle:
    r"""The small factor of :math:`A = QR`.

    Attributes:
      R: r×m, echelon form, leading entries positive.
      kept: The r columns of A that do not depend on those before them.
    """

    R: Matrix
    kept: np.ndarray


def orthonormal(A: Matrix, tolerance: float, *, overwrite: bool = False) -> tuple[Matrix, Matrix]:
    r"""Generalised QR: :math:`Q` (n×r, orthonormal) and :math:`R` (r×m).

    Args:
      A: The matrix, n×m.
      tolerance: A column is dependent when less than this share of its length is new.
      overwrite: Use the memory of `A` for :math:`Q` where possible.
    """
    scales = binary_scales(A)
    first = triangle(A, scales, tolerance)
    complete = len(first.kept) == A.shape[1]
    if not (overwrite and complete and A.flags.c_contiguous and A.flags.writeable):
        A = np.array(A if complete else A[:, first.kept], order="C")
    second = _divide(A, first.R[:, first.kept], scales[first.kept])
    root = np.asarray(np.linalg.cholesky(second).T, dtype=np.float64)
    _divide(A, root, None)
    return A, root @ first.R * scales


def triangle(A: Matrix, scales: Matrix, tolerance: float) -> Triangle:
    r"""The factor :math:`R` of the columns of `A` divided by `scales`."""
    gram = np.zeros((A.shape[1], A.shape[1]))
    for rows in row_blocks(len(A)):
        block = A[rows] / scales
        gram += block.T @ block
    fast = _cholesky(gram)
    if fast is not None:
        return Triangle(fast, np.arange(A.shape[1]))
    return echelon(_householder(A, scales), tolerance)


def echelon(A: Matrix, tolerance: float) -> Triangle:
    """Gram–Schmidt with reorthogonalisation on a small matrix, column by column."""
    scales = binary_scales(A)
    A = A / scales
    Q = np.zeros((len(A), 0))
    kept = []
    for j in range(A.shape[1]):
        length = np.linalg.norm(A[:, j])
        new = A[:, j] - Q @ (Q.T @ A[:, j])
        new -= Q @ (Q.T @ new)
        rest = np.linalg.norm(new)
        if rest > tolerance * length:
            kept.append(j)
            Q = np.column_stack([Q, new / rest])
    R = Q.T @ A
    for i, j in enumerate(kept):
        R[i, :j] = 0.0
    return Triangle(R * scales, np.array(kept, dtype=np.intp))


def _cholesky(gram: Matrix) -> Matrix | None:
    """The Cholesky root, or nothing when columns are too near to dependence for it."""
    length = np.sqrt(np.diag(gram))
    if not (length > 0).all():
        return None
    try:
        root = np.linalg.cholesky(gram / np.outer(length, length)).T
    except np.linalg.LinAlgError:
        return None
    return None if (np.diag(root) ** 2 < SAFE_PIVOT).any() else root * length


def _householder(A: Matrix, scales: Matrix) -> Matrix:
    """The triangular factor by reflections, one block of rows after another."""
    R = np.zeros((0, A.shape[1]))
    for rows in row_blocks(len(A)):
        R = np.asarray(np.linalg.qr(np.vstack([R, A[rows] / scales]), mode="r"))
    return R


def _divide(A: Matrix, R: Matrix, scales: Matrix | None) -> Matrix:
    r"""Replace `A` by :math:`A R^{-1}` and return the products of the new columns."""
    products = np.zeros((len(R), len(R)))
    if not len(R):
        return products
    for rows in row_blocks(len(A)):
        block = A[rows]
        if scales is not None:
            block /= scales
        blas.dtrsm(1.0, R, block.T, trans_a=1, overwrite_b=1)
        products += block.T @ block
    return products
