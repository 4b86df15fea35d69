"""Clusters of similar rows by microaggregation (MDAV, V-MDAV), and outlying rows apart.

The loops are those of Domingo-Ferrer and Torra (2005) and of Solanas and Martínez-Ballesté (2006).
What they look for is found exactly: the row farthest from the centroid among the outermost rows,
the row farthest from another and the nearest ones in a k-d tree of the rows that are left.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy import stats

from discreet.arrays import Mask, Real, Whole
from discreet.errors import ParameterError
from discreet.synthesis.orthonormal import as_matrix
from discreet.synthesis.tree import PointTree, farthest, plant, search, take


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
    values = as_matrix(values, "values")
    if not 1 <= size <= len(values):
        raise ParameterError(
            f"size must lie between 1 and the number of rows, {len(values)}, got {size}."
        )
    if gain is not None and gain < 0:
        raise ParameterError(f"gain must not be negative, got {gain}.")
    if not values.shape[1]:
        raise ParameterError("rows cannot be clustered without any column of values.")
    if standardise:
        spread = values.std(axis=0)
        values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    labels = np.full(len(values), -1, dtype=np.int64)
    centre = values.mean(axis=0)
    distances = np.sqrt(((values - centre) ** 2).sum(axis=1))
    from_outside = np.argsort(-distances, kind="stable")
    tree, around = plant(values), Shells(centre, from_outside, distances[from_outside])
    if gain is None:
        rest: int | Whole = cut_fixed(tree, around, size, labels)
    else:
        groups = cut_variable(tree, around, size, gain, labels)
        # Rows that are too few for a cluster go to the one whose centroid is nearest.
        done, few = labels >= 0, np.flatnonzero(labels < 0)
        members = np.bincount(labels[done], minlength=groups)
        sums = [np.bincount(labels[done], column[done], minlength=groups) for column in values.T]
        centroids = np.column_stack([each / members for each in sums])
        apart = ((values[few, None, :] - centroids) ** 2).sum(axis=2)
        rest = np.asarray(apart.argmin(axis=1), dtype=np.int64)
    labels[labels < 0] = rest
    return labels


# Bounds of distances are wider than rounding can make them; a bound that is too narrow would miss
# the farthest row, one that is too wide looks at a few rows more.
_SLACK = 1 + 1e-9


class Shells(NamedTuple):
    """Rows from the outside in, as seen from a centre.

    The centroid of the rows that are left moves slowly, so the row farthest from it is among the
    first of these, while all boxes at the rim of the data look alike to the tree.
    """

    centre: Real
    rows: Whole  # rows in order of their distance from it, the farthest first
    distances: Real


@njit(cache=True)
def _outermost(
    tree: PointTree, around: Shells, centre: Real, labels: Whole, head: Any
) -> tuple[int, int]:
    """The row without a label farthest from the centre, and where such rows begin."""
    # Distances from the first centre bound those from this one by how far the centre has moved.
    drift = 0.0
    for j in range(len(centre)):
        drift += (centre[j] - around.centre[j]) ** 2
    drift = math.sqrt(drift)
    while labels[around.rows[head]] >= 0:
        head += 1
    best, found = -1.0, -1
    for i in range(head, len(around.rows)):
        row, limit = around.rows[i], (around.distances[i] + drift) * _SLACK
        if limit * limit < best:
            break
        if labels[row] >= 0:
            continue
        apart = 0.0
        for j in range(len(centre)):
            apart += (tree.points[j, tree.place[row]] - centre[j]) ** 2
        if apart > best or (apart == best and row < found):
            best, found = apart, row
    return found, head


@njit(cache=True)
def cut_fixed(tree: PointTree, around: Shells, size: Any, labels: Whole) -> int:
    """MDAV: groups round the row farthest from the centroid and its opposite; how many."""
    left, head, group = len(labels), 0, 0
    while left >= 2 * size:
        row, head = _outermost(tree, around, tree.sums[0] / left, labels, head)
        # Both points are found before a group is cut: the opposite one may be taken by the first.
        point = _point(tree, row)
        opposite = _point(tree, farthest(tree, point))
        _cut_group(tree, point, size, group, labels)
        if left < 3 * size:
            return group + 1
        _cut_group(tree, opposite, size, group + 1, labels)
        group, left = group + 2, left - 2 * size
    return group


@njit(cache=True)
def _cut_group(tree: PointTree, point: Real, size: Any, group: Any, labels: Whole) -> Whole:
    rows, apart = np.empty(size, dtype=np.int64), np.empty(size)
    search(tree, point, 1.0, -1, rows, apart)
    for row in rows:
        labels[row] = group
        take(tree, row)
    return rows


@njit(cache=True)
def _point(tree: PointTree, row: Any) -> Real:
    return tree.points[:, tree.place[row]].copy()


@njit(cache=True)
def cut_variable(tree: PointTree, around: Shells, size: Any, gain: Any, labels: Whole) -> int:
    """V-MDAV: groups round the row farthest from the centre, grown; how many there are."""
    left, head, group = len(labels), 0, 0
    members = np.empty(2 * size - 1, dtype=np.int64)
    while left >= size:
        row, head = _outermost(tree, around, around.centre, labels, head)
        members[:size] = _cut_group(tree, _point(tree, row), size, group, labels)
        left -= _grow(tree, members, size, left, gain, labels)
        group += 1
    return group


@njit(cache=True)
def _grow(tree: PointTree, members: Whole, size: Any, left: Any, gain: Any, labels: Whole) -> Any:
    """Take in neighbours nearer to the group than `gain` times to the rows outside; its size."""
    neighbour = np.full(len(members), -1, dtype=np.int64)
    gap = np.empty(len(members))
    one, distance = np.empty(1, dtype=np.int64), np.empty(1)
    count = size
    while count < min(len(members), left):
        best = 0
        for i in range(count):
            if neighbour[i] < 0:
                search(tree, _point(tree, members[i]), 1.0, -1, one, distance)
                neighbour[i], gap[i] = one[0], distance[0]
            closer = gap[i] == gap[best] and neighbour[i] < neighbour[best]
            if gap[i] < gap[best] or closer:
                best = i
        row = neighbour[best]
        found = search(tree, _point(tree, row), 1.0, row, one, distance)
        if found and gap[best] >= gain * gain * distance[0]:
            break
        labels[row] = labels[members[0]]
        take(tree, row)
        members[count] = row
        count += 1
        # Only members whose nearest neighbour has gone need another search.
        for i in range(count):
            if neighbour[i] == row:
                neighbour[i] = -1
    return count


_NORMAL = float(1 / stats.norm.ppf(0.75))  # a normal variable's sd to its median deviation


def outlying(values: Any, *, quantile: float = 0.999) -> Mask:
    """For each row (of n×d values), whether it lies farther out than this share of normal ones."""
    if not 0 < quantile < 1:
        raise ParameterError(f"quantile must lie between 0 and 1, got {quantile}.")
    values = _standardise(as_matrix(values, "values"))
    # Correlations by robust spreads of sums and differences (Gnanadesikan and Kettenring 1972):
    # outlying rows would pull ordinary covariances towards themselves and hide behind them.
    products = np.eye(values.shape[1])
    for i in range(len(products)):
        for j in range(i):
            sums, differences = values[:, i] + values[:, j], values[:, i] - values[:, j]
            products[i, j] = products[j, i] = (_spread(sums) ** 2 - _spread(differences) ** 2) / 4
    scores = _standardise(values @ np.linalg.eigh(products)[1])
    apart = (scores**2).sum(axis=1)
    law = stats.chi2(max(scores.shape[1], 1))
    # The median takes the place of the law's own scale, so that most rows of data with heavy tails
    # are not called outlying.
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


def _standardise(values: Real) -> Real:
    """Columns less their median, divided by their spread; those that do not vary are left out."""
    values = values - np.median(values, axis=0)
    spread = np.array([_spread(column) for column in values.T])
    varies = spread > 1e-9 * np.abs(values).max(axis=0, initial=0.0)
    return np.asarray(values[:, varies] / spread[varies])


def _spread(column: Real) -> float:
    # Where more than half of the values are equal their median deviation is zero.
    deviation = float(np.median(np.abs(column - np.median(column)))) * _NORMAL
    return deviation if deviation > 0 else float(column.std())
