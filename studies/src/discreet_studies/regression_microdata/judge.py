"""Invented businesses, and plain computations that judge the methods without using them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet_studies.model import Finding

EXACT = 1e-10
"""Largest relative difference of what is said to be exact."""
DIFFERENT = 1e-2
"""Least relative difference of what is said not to be preserved."""
N = 360
CLASSES = 3
CLUSTER = 12
WIDE = (60, 40)
REGIONS = 4


class ReplayedDraws:
    """A generator that hands out given numbers as its standard normal draws."""

    def __init__(self, draws: Real) -> None:
        self.draws = draws

    def standard_normal(self, shape: tuple[int, int]) -> Real:
        """The first columns of the given numbers."""
        return self.draws[: shape[0], : shape[1]].copy()


def replay(draws: Real) -> Any:
    """The draws in the place of a generator."""
    return ReplayedDraws(draws)


def gap(a: Real, b: Real) -> float:
    """Largest difference, relative to the largest number."""
    return float(np.abs(a - b).max() / max(np.abs(b).max(), np.finfo(float).tiny))


def fitted_values(Y: Real, X: Real) -> Real:
    """Fitted values of a regression."""
    return np.asarray(X @ np.linalg.lstsq(X, Y, rcond=None)[0])


def coefficients(Y: Real, X: Real) -> Real:
    """Coefficients of a regression."""
    return np.asarray(np.linalg.lstsq(X, Y, rcond=None)[0])


def residuals(Y: Real, X: Real) -> Real:
    """Residuals of a regression."""
    return Y - fitted_values(Y, X)


def information_loss(Y: Real, X: Real, made: Real) -> float:
    """Largest relative difference of fits and second moments, columns scaled to length one."""
    x, y = np.linalg.norm(X, axis=0), np.linalg.norm(Y, axis=0)
    fits = np.abs((X / x).T @ ((made - Y) / y)).max()
    moments = np.abs((made / y).T @ (made / y) - (Y / y).T @ (Y / y)).max()
    return float(max(fits, moments))


def moment_gap(A: Real, B: Real) -> float:
    """Largest difference of products of columns, relative to the columns' lengths in `B`."""
    size = np.linalg.norm(B, axis=0)
    size = np.where(size > 0, size, 1.0)
    return float(np.abs((A / size).T @ (A / size) - (B / size).T @ (B / size)).max())


def correlations(A: Real, B: Real) -> Real:
    """Correlation of each column with its namesake; the columns have mean zero."""
    return np.asarray((A * B).sum(axis=0) / np.sqrt((A**2).sum(axis=0) * (B**2).sum(axis=0)))


def unit_scores(E: Real) -> tuple[Real, Real]:
    """QR decomposition with a positive diagonal."""
    Q, R = np.linalg.qr(E)
    sign = np.where(np.diag(R) < 0, -1.0, 1.0)
    return Q * sign, R * sign[:, None]


def complement(A: Real) -> Real:
    """Orthonormal basis of everything orthogonal to the columns."""
    Q = np.linalg.qr(A, mode="complete")[0]
    return np.asarray(Q[:, A.shape[1] :])


def by_label(labels: Whole) -> Iterable[Whole]:
    """The rows of each label."""
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def exactly(text: str, differences: dict[str, float]) -> Finding:
    """A sentence that holds if all relative differences are rounding."""
    shown = "; ".join(f"{what}: {value:.0e}" for what, value in differences.items())
    worst = max(differences.values())
    return Finding(text, bool(worst <= EXACT), f"Relative differences: {shown}.")


@dataclass(frozen=True, eq=False)
class Businesses:
    """Businesses with three confidential amounts.

    Attributes:
      Y: Expenses, taxes and investments.
      X: The constant, indicators of regions, and the number of employees in full-time years.
      size_class: Classes of the number of employees.
      clusters: Clusters of similar numbers of employees within a class.
    """

    Y: Real
    X: Real
    size_class: Whole
    clusters: Whole

    @property
    def constant(self) -> Real:
        """The constant alone."""
        return self.X[:, :1]

    @property
    def employees(self) -> Real:
        """The number of employees, as a matrix of one column."""
        return self.X[:, -1:]


def businesses(seed: int) -> Businesses:
    """Businesses in an order that says nothing; the smallest cluster hardly varies."""
    rng = np.random.default_rng([seed, 2019])
    employees = np.sort(np.exp(rng.uniform(np.log(5), np.log(500), N)))
    place = np.arange(N)
    region = np.eye(REGIONS)[rng.integers(0, REGIONS, N)][:, 1:]
    X = np.column_stack([np.ones(N), region, employees])
    groups = N // CLUSTER
    slopes = rng.uniform(0.8, 1.2, (groups, 1)) + 0.05 * rng.normal(size=(groups, 3))
    slopes = slopes[place // CLUSTER]
    noise = rng.normal(size=(N, 3)) @ np.array([[1.0, 0.9, 0.8], [0.0, 0.3, 0.2], [0.0, 0.0, 0.3]])
    noise *= np.where(place < CLUSTER, 0.05, 1.0)[:, None] * (20 + employees[:, None] / 10)
    slopes = slopes + region @ rng.normal(0, 0.05, (REGIONS - 1, 3))
    Y = employees[:, None] * slopes + noise
    order = rng.permutation(N)
    size_class = place * CLASSES // N
    return Businesses(Y[order], X[order], size_class[order], (place // CLUSTER)[order])


def many_amounts(rng: np.random.Generator) -> Real:
    """Few businesses with nearly as many amounts, so that components differ in rank."""
    return rng.standard_normal(WIDE)
