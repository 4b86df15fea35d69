r"""Fits, residuals, scores and loadings: the linear algebra that every method stands on.

.. math:: Y = \hat Y + \hat E = \hat Y + T W

:math:`\hat Y` is the projection of :math:`Y` on the columns of :math:`X`, :math:`T` has
orthonormal columns, and :math:`W` holds the loadings (Langsrud 2019a, equation 2, appendices 1
and 2). Every projection is made twice, so that residuals are orthogonal to :math:`X` on their
own scale, whatever the scales of the columns are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from discreet.arrays import Real
from discreet.errors import DataError, InfeasibleError, NotConvergedError, ParameterError
from discreet.synthesis.orthonormal import (
    as_matrix,
    cross,
    lengths,
    orthonormal,
    product,
    row_blocks,
    same_rows,
    triangle,
)

How = Literal["qr", "svd"]


# A column of X depends on those before it when less than this share of it is new: rounding alone,
# since a column that is left out is no longer preserved.
DEPENDENT_X = 1e-12


# The same for residuals. It is wider, since leaving out a share s changes products by s² alone.
DEPENDENT_RESIDUALS = 1e-7


# Residuals of at most this share of their variable are rounding and set to zero; scores have length
# one, so that rounding would become a component like any other.
ZERO = 1e-12


# Singular values and eigenvalues this near to a limit are at it, on a scale where they are one.
ROUNDING = 1e-12


# The largest multiplier of other residuals is made smaller by this share: at the limit itself what
# is left is singular, and its root is made of rounding.
MARGIN = 1e-7


@dataclass(frozen=True)
class Synthesis:
    """Synthetic values in the place of the confidential ones."""

    Y: Real  # n×k, rows and columns as in the original
    # Confidential: what the method found out on the way, such as `alpha`, `rank_X`.
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RegressionFit:
    r"""The regression of :math:`Y` on :math:`X`."""

    Y: Real  # the original values, n×k
    residuals: Real  # n×k; columns that are zero up to rounding are exactly zero
    basis: Real  # orthonormal basis of the columns of X, n×rank

    @property
    def rank(self) -> int:
        """Rank of :math:`X`."""
        return int(self.basis.shape[1])


@dataclass(frozen=True)
class ResidualScores:
    r"""Residuals as :math:`\hat E = T W`."""

    T: Real  # orthonormal scores, n×r
    W: Real  # loadings, r×k

    @property
    def rank(self) -> int:
        """Number of components."""
        return len(self.W)


def fit(Y: Any, X: Any) -> RegressionFit:
    """Regress the columns of `Y` on the columns of `X`.

    `X` holds the constant if there is to be one. Its columns may depend on each other.
    """
    Y, X = as_matrix(Y, "Y"), as_matrix(X, "X")
    same_rows(Y=Y, X=X)
    if not len(Y):
        raise DataError("there are no rows; at least one is expected.")
    basis, _ = orthonormal(X, DEPENDENT_X)
    return RegressionFit(Y, residuals_of(Y, basis), basis)


def residuals_of(Y: Real, basis: Real) -> Real:
    """What is left of `Y` off the basis; columns that are rounding alone become zero."""
    left = residuals_from(Y, basis)
    zero = lengths(left) <= ZERO * lengths(Y)
    if zero.any():
        left[:, zero] = 0.0
    return left


def residuals_from(Y: Real, *bases: Real, overwrite: bool = False) -> Real:
    """What is left of `Y` off the given orthonormal bases, which are orthogonal to each other."""
    left = Y if overwrite else np.array(Y, order="C")
    size = np.maximum(lengths(left), np.finfo(np.float64).tiny)
    coefficients = _take_off(left, bases)
    taken = np.vstack([np.zeros(len(size)), *coefficients]) / size
    # Where more than half of a column's square goes, the rounding of the part that went is no
    # longer small beside the part that is left; a second projection takes it off. Otherwise one
    # projection is as good as two, at half the cost.
    if (taken**2).sum(axis=0).max(initial=0.0) > 0.5:
        _take_off(left, bases)
    return left


def _take_off(left: Real, bases: tuple[Real, ...]) -> list[Real]:
    coefficients = [cross(basis, left) for basis in bases]
    for rows in row_blocks(len(left), *_largest(coefficients)):
        for basis, coefficient in zip(bases, coefficients, strict=True):
            left[rows] -= basis[rows] @ coefficient
    return coefficients


def _largest(matrices: list[Real]) -> tuple[int, int]:
    shapes = np.array([M.shape for M in matrices] or [(1, 1)])
    return int(shapes[:, 0].max()), int(shapes[:, 1].max())


def scores(E: Real, how: How = "qr") -> ResidualScores:
    r"""Decompose residuals into scores and loadings.

    `"qr"`: generalised QR, unique; the first score is the first column scaled to length one.
    `"svd"`: principal components, unique up to equal singular values; the entries of each row of
    :math:`V^\top` sum to a positive number.
    """
    T, W = orthonormal(E, DEPENDENT_RESIDUALS)
    if how == "qr":
        return ResidualScores(T, W)
    if how != "svd":
        raise ParameterError(f"how must be 'qr' or 'svd', got {how!r}.")
    U, _, V = np.linalg.svd(W, full_matrices=False)
    # The signs of singular vectors are the library's choice; this one makes results repeatable.
    U = np.asarray(U * np.where(V.sum(axis=1) < 0, -1.0, 1.0))
    return ResidualScores(product(T, U, out=T), U.T @ W)


def loadings(E: Real) -> Real:
    """The loadings of the QR decomposition alone, without the scores."""
    return triangle(E, DEPENDENT_RESIDUALS).R


def with_scores(model: RegressionFit, *parts: tuple[Real, Real]) -> Real:
    r"""Synthetic values :math:`\hat Y + \sum T W`, in the memory of the model's residuals."""
    out = model.residuals
    for rows in row_blocks(len(out), *_largest([W for _, W in parts])):
        np.subtract(model.Y[rows], out[rows], out=out[rows])
        for T, W in parts:
            out[rows] += T[rows] @ W
    return out


def random_scores(
    rng: np.random.Generator, n: int, r: int, *orthogonal_to: Real, what: str = "X"
) -> Real:
    """Orthonormal scores (n×r) of standard normal draws, orthogonal to some orthonormal bases."""
    check_room(n, r, sum(basis.shape[1] for basis in orthogonal_to), what)
    draws = residuals_from(rng.standard_normal((n, r)), *orthogonal_to, overwrite=True)
    # With tolerance 0 no column is dropped: normal draws depend on each other with probability 0.
    return orthonormal(draws, 0.0, overwrite=True)[0]


def check_room(n: int, r: int, taken: int, what: str) -> None:
    """Refuse `r` new columns where `taken` dimensions of `n` are those of `what`."""
    if n - taken < r:
        raise InfeasibleError(
            f"{r} new score columns need n ≥ rank of {what} + {r} = {taken + r} rows, but there "
            f"are n = {n} rows and the rank of {what} is {taken}. Use fewer columns in X, fewer "
            "variables in Y, or more rows."
        )


def rotate(old: ResidualScores, rotation: Any) -> ResidualScores:
    r"""The same residuals in other components: :math:`TW = (TU)(U^\top W)` with U orthogonal.

    The rotation is an r×r matrix, or `"varimax"`.
    """
    if isinstance(rotation, str) and rotation != "varimax":
        raise ParameterError(
            f"rotation must be 'varimax' or an orthogonal matrix, got {rotation!r}."
        )
    U = varimax(old.W.T) if isinstance(rotation, str) else as_matrix(rotation, "the rotation")
    r = old.rank
    # A matrix that was written with eight digits passes, and is made orthogonal to rounding below.
    if U.shape != (r, r) or np.abs(U.T @ U - np.eye(r)).max(initial=0.0) > 1e-8:
        raise ParameterError(
            f"the rotation must be an orthogonal matrix with {r} rows and columns, since there "
            f"are {r} components; got {U.shape[0]} rows and {U.shape[1]} columns."
        )
    U = _nearest_orthogonal(U)  # covariances are preserved as exactly as U is orthogonal
    return ResidualScores(old.T @ U, U.T @ old.W)


# Turns of varimax after which it gives up, and its gain below which it has settled.
_TURNS, _SETTLED = 10_000, 1e-12


def varimax(L: Real) -> Real:
    r"""The rotation U that makes the squared loadings :math:`LU` most unequal (Kaiser 1958).

    Variables count alike whatever their scale: each row of L is divided by its length first.
    """
    U = np.eye(L.shape[1])
    size = lengths(L.T)
    L = L[size > 0] / size[size > 0, None]
    if not len(L):
        return U
    reached = 0.0
    for _ in range(_TURNS):
        A = L @ U
        gradient = L.T @ (A**3 - A * (A**2).mean(axis=0))
        U = _nearest_orthogonal(gradient)
        before, reached = reached, float(np.linalg.norm(gradient, "nuc"))
        if reached - before <= _SETTLED * reached:
            return U
    raise NotConvergedError(
        f"varimax did not settle in {_TURNS:,} steps. Give a rotation matrix instead."
    )


def _nearest_orthogonal(A: Real) -> Real:
    left, _, right = np.linalg.svd(A)
    return np.asarray(left @ right)
