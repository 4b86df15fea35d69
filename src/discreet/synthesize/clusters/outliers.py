"""Outlying rows, split off before data are synthesized (Langsrud 2019, section 8).

Distances are those of Maronna and Zamar (2002): covariances from medians of pairs of columns, made
orthogonal by their eigenvectors, so that outlying rows do not hide themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from discreet.arrays import Mask, Real, Whole
from discreet.errors import ParameterError
from discreet.synthesize.algebra.matrices import as_matrix

_NORMAL = float(1 / stats.norm.ppf(0.75))  # median deviation of a normal variable to its sd


def outlying(values: Any, *, quantile: float = 0.999) -> Mask:
    """For each row (of n×d values), whether it lies farther out than this share of normal ones."""
    if not 0 < quantile < 1:
        raise ParameterError(f"quantile must lie between 0 and 1, got {quantile}.")
    scores = _robust_scores(as_matrix(values, "values"))
    apart = (scores**2).sum(axis=1)
    law = stats.chi2(max(scores.shape[1], 1))
    return np.asarray(apart > law.ppf(quantile) * np.median(apart) / law.median())


def split_off(clusters: Any, outlying: Mask) -> tuple[Whole, Whole]:
    """Labels of clusters and of groups when outlying rows have clusters of their own.

    Every cluster is parted into its outlying rows and the others. Group 1 holds all clusters of
    outlying rows, group 0 the others: give both to `hybrid`.
    """
    groups = np.asarray(outlying, dtype=np.int64)
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    _, parted = np.unique(2 * codes + groups, return_inverse=True)
    return parted.astype(np.int64, copy=False), groups


def _robust_scores(values: Real) -> Real:
    """Uncorrelated scores with median zero and spread one, of rows that are not outlying."""
    values = _standardised(values)
    d = values.shape[1]
    products = np.eye(d)
    for i in range(d):
        for j in range(i):
            sums, differences = values[:, i] + values[:, j], values[:, i] - values[:, j]
            products[i, j] = products[j, i] = (_spread(sums) ** 2 - _spread(differences) ** 2) / 4
    return _standardised(values @ np.linalg.eigh(products)[1])


def _standardised(values: Real) -> Real:
    """Columns less their median, divided by their spread; those that do not vary are left out."""
    values = values - np.median(values, axis=0)
    spread = np.array([_spread(column) for column in values.T])
    varies = spread > 1e-9 * np.abs(values).max(axis=0, initial=0.0)
    return np.asarray(values[:, varies] / spread[varies])


def _spread(column: Real) -> float:
    """The median absolute deviation; the standard deviation where most values are equal."""
    deviation = float(np.median(np.abs(column - np.median(column)))) * _NORMAL
    return deviation if deviation > 0 else float(column.std())
