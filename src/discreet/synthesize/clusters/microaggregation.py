"""Clusters of similar rows by microaggregation: MDAV with fixed and variable group size.

The loops are those of Domingo-Ferrer and Torra (2005) and of Solanas and Martínez-Ballesté (2006).
What they look for is found exactly: the row farthest from the centroid among the outermost rows,
the row farthest from another and the nearest ones in a k-d tree of the rows that are left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import ParameterError
from discreet.synthesize.algebra.matrices import as_matrix
from discreet.synthesize.clusters.kernels import cut_fixed, cut_variable, shells
from discreet.synthesize.clusters.tree import plant


def mdav(values: Any, size: int, *, gain: float | None = None, standardise: bool = True) -> Whole:
    """Label each row with its cluster, numbered from 0 in the order in which they are made.

    Args:
      values: Rows to be clustered, n×d.
      size: Smallest number of rows in a cluster. Without `gain` every cluster has this size but
        the last, which has fewer than twice as many.
      gain: Makes the size variable (V-MDAV), up to `2 * size - 1`: a cluster takes in its nearest
        neighbour if that is nearer to it than `gain` times its distance from the other rows.
        0.2 suits scattered data, 1.1 data in clumps.
      standardise: Divide each column by its standard deviation first.
    """
    values = _checked(as_matrix(values, "values"), size, gain)
    if standardise:
        spread = values.std(axis=0)
        values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    labels = np.full(len(values), -1, dtype=np.int64)
    tree, around = plant(values), shells(values)
    if gain is None:
        rest: int | Whole = cut_fixed(tree, around, size, labels)
    else:
        groups = cut_variable(tree, around, size, gain, labels)
        rest = _nearest_clusters(values, labels, np.flatnonzero(labels < 0), groups)
    labels[labels < 0] = rest
    return labels


def _checked(values: Real, size: int, gain: float | None) -> Real:
    if not 1 <= size <= len(values):
        raise ParameterError(
            f"size must lie between 1 and the number of rows, {len(values)}, got {size}."
        )
    if gain is not None and gain < 0:
        raise ParameterError(f"gain must not be negative, got {gain}.")
    if not values.shape[1]:
        raise ParameterError("rows cannot be clustered without any column of values.")
    return values


def _nearest_clusters(values: Real, labels: Whole, rows: Whole, count: int) -> Whole:
    """For rows that are too few for a cluster, the cluster whose centroid is nearest."""
    done = labels >= 0
    members = np.bincount(labels[done], minlength=count)
    centroids = np.column_stack(
        [np.bincount(labels[done], column[done], minlength=count) / members for column in values.T]
    )
    apart = ((values[rows, None, :] - centroids) ** 2).sum(axis=2)
    return np.asarray(apart.argmin(axis=1), dtype=np.int64)
