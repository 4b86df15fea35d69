"""The compiled loops of microaggregation: groups are cut from the rows that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from discreet.synthesize.neighbour_tree import Index, Real, Tree, farthest, nearest, take


@njit(cache=True)
def cut_pairs(tree: Tree, size: Any, group: Any, stop: Any, labels: Index) -> tuple[int, int]:
    """MDAV: two groups at a time, round the row farthest from the centroid and its opposite.

    Stops when at most `stop` rows are left, or fewer than two groups and a rest can be made.
    Returns the number of the next group and how many rows are left.
    """
    left = tree.left.sum()
    near, apart = np.empty(size, dtype=np.int64), np.empty(size)
    while left >= 3 * size and left > stop:
        row = farthest(tree, tree.sums[0] / left)
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
    tree: Tree, centre: Real, size: Any, gain: Any, group: Any, stop: Any, labels: Index
) -> tuple[int, int]:
    """V-MDAV: groups round the row farthest from the centre, grown while neighbours are close.

    Stops when at most `stop` rows are left, or fewer than one group. Returns the number of the
    next group and how many rows are left.
    """
    left = tree.left.sum()
    members = np.empty(2 * size - 1, dtype=np.int64)
    apart = np.empty(size)
    while left >= size and left > stop:
        row = farthest(tree, centre)
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
