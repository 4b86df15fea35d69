"""The compiled loops of microaggregation: groups are cut from the rows that are left."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from discreet.synthesize.clusters.tree import Index, Real, Tree, farthest, nearest, take

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
    rows: Index
    distances: Real


def shells(values: Real, centre: Real) -> Shells:
    """All rows, from the outside in."""
    distances = np.sqrt(((values - centre) ** 2).sum(axis=1))
    rows = np.argsort(-distances, kind="stable")
    return Shells(centre, rows, distances[rows])


@njit(cache=True)
def _outermost(
    tree: Tree, around: Shells, centre: Real, labels: Index, head: Any
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
def cut_pairs(
    tree: Tree, around: Shells, size: Any, group: Any, stop: Any, labels: Index
) -> tuple[int, int]:
    """MDAV: two groups at a time, round the row farthest from the centroid and its opposite.

    Stops when at most `stop` rows are left, or fewer than two groups and a rest can be made.
    Returns the number of the next group and how many rows are left.
    """
    left, head = tree.left.sum(), 0
    near, apart = np.empty(size, dtype=np.int64), np.empty(size)
    while left >= 3 * size and left > stop:
        row, head = _outermost(tree, around, tree.sums[0] / left, labels, head)
        point = tree.points[:, tree.place[row]].copy()
        nearest(tree, point, -1, near, apart)
        other = farthest(tree, point)
        opposite = tree.points[:, tree.place[other]].copy()
        _close(tree, near, group, labels)
        nearest(tree, opposite, -1, near, apart)
        _close(tree, near, group + 1, labels)
        group, left = group + 2, left - 2 * size
    return group, left


@njit(cache=True)
def cut_one(tree: Tree, size: Any, group: Any, labels: Index) -> None:
    """One group round the row farthest from the centroid."""
    row = farthest(tree, tree.sums[0] / tree.left.sum())
    near, apart = np.empty(size, dtype=np.int64), np.empty(size)
    nearest(tree, tree.points[:, tree.place[row]].copy(), -1, near, apart)
    _close(tree, near, group, labels)


@njit(cache=True)
def _close(tree: Tree, rows: Index, group: Any, labels: Index) -> None:
    for row in rows:
        labels[row] = group
        take(tree, row)


@njit(cache=True)
def cut_variable(
    tree: Tree, around: Shells, size: Any, gain: Any, group: Any, stop: Any, labels: Index
) -> tuple[int, int]:
    """V-MDAV: groups round the row farthest from the centre, grown while neighbours are close.

    Stops when at most `stop` rows are left, or fewer than one group. Returns the number of the
    next group and how many rows are left.
    """
    left, head = tree.left.sum(), 0
    members = np.empty(2 * size - 1, dtype=np.int64)
    apart = np.empty(size)
    while left >= size and left > stop:
        row, head = _outermost(tree, around, around.centre, labels, head)
        nearest(tree, tree.points[:, tree.place[row]].copy(), -1, members[:size], apart)
        _close(tree, members[:size], group, labels)
        count = _grow(tree, members, size, left - size, gain)
        _mark(members[size:count], group, labels)
        group, left = group + 1, left - count
    return group, left


@njit(cache=True)
def _mark(rows: Index, group: Any, labels: Index) -> None:
    for row in rows:
        labels[row] = group


@njit(cache=True)
def _grow(tree: Tree, members: Index, count: Any, left: Any, gain: Any) -> Any:
    """Take in neighbours nearer to the group than `gain` times to the rows outside it.

    Returns the number of members, at most as many as there is room for.
    """
    neighbour = np.full(len(members), -1, dtype=np.int64)
    gap = np.empty(len(members))
    one, distance = np.empty(1, dtype=np.int64), np.empty(1)
    while count < len(members) and left > 0:
        best = 0
        for i in range(count):
            if neighbour[i] < 0:
                point = tree.points[:, tree.place[members[i]]].copy()
                nearest(tree, point, -1, one, distance)
                neighbour[i], gap[i] = one[0], distance[0]
            closer = gap[i] == gap[best] and neighbour[i] < neighbour[best]
            if gap[i] < gap[best] or closer:
                best = i
        row = neighbour[best]
        found = nearest(tree, tree.points[:, tree.place[row]].copy(), row, one, distance)
        if found and gap[best] >= gain * gain * distance[0]:
            break
        take(tree, row)
        members[count] = row
        count, left = count + 1, left - 1
        for i in range(count):
            if neighbour[i] == row:
                neighbour[i] = -1
    return count
