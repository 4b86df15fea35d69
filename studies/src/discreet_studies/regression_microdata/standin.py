"""Invented businesses, after the scenario of the paper's section 6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet_studies.regression_microdata.judge import Matrix

N = 360
CLASSES = 3
CLUSTER = 12
WIDE = (60, 40)
REGIONS = 4

Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Businesses:
    """Businesses with three confidential amounts.

    Attributes:
      Y: Expenses, taxes and investments.
      X: The constant, indicators of regions, and the number of employees in full-time years.
      size_class: Classes of the number of employees.
      clusters: Clusters of similar numbers of employees within a class.
    """

    Y: Matrix
    X: Matrix
    size_class: Labels
    clusters: Labels

    @property
    def constant(self) -> Matrix:
        """The constant alone."""
        return self.X[:, :1]

    @property
    def employees(self) -> Matrix:
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


def many_amounts(rng: np.random.Generator) -> Matrix:
    """Few businesses with nearly as many amounts, so that components differ in rank."""
    return rng.standard_normal(WIDE)
