"""Clusters of similar rows by microaggregation: MDAV with fixed and variable group size.

The loops are those of Domingo-Ferrer and Torra (2005) and of Solanas and Martínez-Ballesté (2006).
What they look for is found exactly: the row farthest from the centroid among the outermost rows,
the row farthest from another and the nearest ones in a k-d tree of the rows that are left.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from discreet.arrays import Real, Whole
from discreet.errors import ParameterError
from discreet.synthesize.orthonormal import as_matrix
from discreet.synthesize.tree import Tree, farthest, nearest, plant, take


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


_SLACK = 1 + 1e-9  # bounds of distances are this much wider than rounding can make them


class Shells(NamedTuple):
    """Rows from the outside in, as seen from a centre.

    The centroid of the rows that are left moves slowly, so the row farthest from it is among the
    first of these, while all boxes at the rim of the data look alike to the tree.

    Attributes:
      centre: The centre.
      rows: Rows in order of their distance from it, the farthest first.
      distances: These distances.
    """

    centre: Real
    rows: Whole
    distances: Real


def shells(values: Real) -> Shells:
    """All rows from the outside in, round their centroid."""
    centre = values.mean(axis=0)
    distances = np.sqrt(((values - centre) ** 2).sum(axis=1))
    rows = np.argsort(-distances, kind="stable")
    return Shells(centre, rows, distances[rows])


@njit(cache=True)
def _outermost(
    tree: Tree, around: Shells, centre: Real, labels: Whole, head: Any
) -> tuple[int, int]:
    """The row without a label farthest from the centre, and where such rows begin."""
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
def cut_fixed(tree: Tree, around: Shells, size: Any, labels: Whole) -> int:
    """MDAV: two groups at a time, round the row farthest from the centroid and its opposite.

    One more group is cut where two times its size is left. Returns the number of groups.
    """
    left, head, group = len(labels), 0, 0
    while left >= 2 * size:
        row, head = _outermost(tree, around, tree.sums[0] / left, labels, head)
        point = _point(tree, row)
        opposite = _point(tree, farthest(tree, point))
        _cut(tree, point, size, group, labels)
        if left < 3 * size:
            return group + 1
        _cut(tree, opposite, size, group + 1, labels)
        group, left = group + 2, left - 2 * size
    return group


@njit(cache=True)
def _cut(tree: Tree, point: Real, size: Any, group: Any, labels: Whole) -> Whole:
    """Make a group of the rows nearest to a point."""
    rows, apart = np.empty(size, dtype=np.int64), np.empty(size)
    nearest(tree, point, -1, rows, apart)
    for row in rows:
        _put(tree, row, group, labels)
    return rows


@njit(cache=True)
def _point(tree: Tree, row: Any) -> Real:
    return tree.points[:, tree.place[row]].copy()


@njit(cache=True)
def _put(tree: Tree, row: Any, group: Any, labels: Whole) -> None:
    """Move a row from the tree into a group."""
    labels[row] = group
    take(tree, row)


@njit(cache=True)
def cut_variable(tree: Tree, around: Shells, size: Any, gain: Any, labels: Whole) -> int:
    """V-MDAV: groups round the row farthest from the centre, grown while neighbours are close.

    Returns the number of groups; fewer rows than make a group are left.
    """
    left, head, group = len(labels), 0, 0
    members = np.empty(2 * size - 1, dtype=np.int64)
    while left >= size:
        row, head = _outermost(tree, around, around.centre, labels, head)
        members[:size] = _cut(tree, _point(tree, row), size, group, labels)
        left -= _grow(tree, members, size, left, gain, labels)
        group += 1
    return group


@njit(cache=True)
def _grow(tree: Tree, members: Whole, size: Any, left: Any, gain: Any, labels: Whole) -> Any:
    """Take in neighbours nearer to the group than `gain` times to the rows outside it.

    Returns the number of members, at most as many as there is room for.
    """
    neighbour = np.full(len(members), -1, dtype=np.int64)
    gap = np.empty(len(members))
    one, distance = np.empty(1, dtype=np.int64), np.empty(1)
    count = size
    while count < min(len(members), left):
        best = 0
        for i in range(count):
            if neighbour[i] < 0:
                nearest(tree, _point(tree, members[i]), -1, one, distance)
                neighbour[i], gap[i] = one[0], distance[0]
            closer = gap[i] == gap[best] and neighbour[i] < neighbour[best]
            if gap[i] < gap[best] or closer:
                best = i
        row = neighbour[best]
        found = nearest(tree, _point(tree, row), row, one, distance)
        if found and gap[best] >= gain * gain * distance[0]:
            break
        _put(tree, row, labels[members[0]], labels)
        members[count] = row
        count += 1
        for i in range(count):
            if neighbour[i] == row:
                neighbour[i] = -1
    return count
