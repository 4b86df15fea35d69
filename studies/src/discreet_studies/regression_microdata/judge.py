"""Plain computations that judge the methods; none of them is used by the methods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet_studies.model import Finding

Matrix = NDArray[np.float64]

EXACT = 1e-10
"""Largest relative difference of what is said to be exact."""
DIFFERENT = 1e-2
"""Least relative difference of what is said not to be preserved."""


class Given:
    """A generator that hands out given numbers as its standard normal draws."""

    def __init__(self, draws: Matrix) -> None:
        self.draws = draws

    def standard_normal(self, shape: tuple[int, int]) -> Matrix:
        """The first columns of the given numbers."""
        return self.draws[: shape[0], : shape[1]].copy()


def given(draws: Matrix) -> Any:
    """The draws in the place of a generator."""
    return Given(draws)


def gap(a: Matrix, b: Matrix) -> float:
    """Largest difference, relative to the largest number."""
    return float(np.abs(a - b).max() / max(np.abs(b).max(), np.finfo(float).tiny))


def fitted(Y: Matrix, X: Matrix) -> Matrix:
    """Fitted values of a regression."""
    return np.asarray(X @ np.linalg.lstsq(X, Y, rcond=None)[0])


def coefficients(Y: Matrix, X: Matrix) -> Matrix:
    """Coefficients of a regression."""
    return np.asarray(np.linalg.lstsq(X, Y, rcond=None)[0])


def residuals(Y: Matrix, X: Matrix) -> Matrix:
    """Residuals of a regression."""
    return Y - fitted(Y, X)


def lost(Y: Matrix, X: Matrix, made: Matrix) -> float:
    """Largest relative difference of fits and second moments, columns scaled to length one."""
    x, y = np.linalg.norm(X, axis=0), np.linalg.norm(Y, axis=0)
    fits = np.abs((X / x).T @ ((made - Y) / y)).max()
    moments = np.abs((made / y).T @ (made / y) - (Y / y).T @ (Y / y)).max()
    return float(max(fits, moments))


def moment_gap(A: Matrix, B: Matrix) -> float:
    """Largest difference of products of columns, relative to the columns' lengths in `B`."""
    size = np.linalg.norm(B, axis=0)
    size = np.where(size > 0, size, 1.0)
    return float(np.abs((A / size).T @ (A / size) - (B / size).T @ (B / size)).max())


def correlations(A: Matrix, B: Matrix) -> Matrix:
    """Correlation of each column with its namesake; the columns have mean zero."""
    return np.asarray((A * B).sum(axis=0) / np.sqrt((A**2).sum(axis=0) * (B**2).sum(axis=0)))


def unit_scores(E: Matrix) -> tuple[Matrix, Matrix]:
    """QR decomposition with a positive diagonal."""
    Q, R = np.linalg.qr(E)
    sign = np.where(np.diag(R) < 0, -1.0, 1.0)
    return Q * sign, R * sign[:, None]


def complement(A: Matrix) -> Matrix:
    """Orthonormal basis of everything orthogonal to the columns."""
    Q = np.linalg.qr(A, mode="complete")[0]
    return np.asarray(Q[:, A.shape[1] :])


def by_label(labels: NDArray[np.int64]) -> Iterable[NDArray[np.intp]]:
    """The rows of each label."""
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def exactly(text: str, differences: dict[str, float]) -> Finding:
    """A sentence that holds if all relative differences are rounding."""
    shown = "; ".join(f"{what}: {value:.0e}" for what, value in differences.items())
    worst = max(differences.values())
    return Finding(text, bool(worst <= EXACT), f"Relative differences: {shown}.")
