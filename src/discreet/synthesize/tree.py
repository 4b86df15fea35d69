"""The compiled k-d tree of points that are taken away one by one.

Every node knows the box, the sum and the first row of the points that are left below it, so the
farthest point, the nearest points and the centroid of what is left are found exactly while most
points are never looked at. Ties go to the first row. The tree is complete: the children of node
`i` are `2i + 1` and `2i + 2`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from discreet.arrays import Real, Whole

_LEAF = 64  # most points in a leaf; coordinates of a leaf are measured together
_DEPTH = 64  # no tree is deeper than this


class Tree(NamedTuple):
    """Points in the order of the leaves.

    Attributes:
      points: Coordinates, d×n, leaf after leaf.
      rows: The row of each point in the data.
      place: For each row, where its point stands.
      starts: Where the points of each leaf begin.
      left: How many points of each leaf are left; they stand first.
      low: Lower corner of each node's box; infinite when nothing is left.
      high: Upper corner.
      sums: Sum of the points left below each node.
      first: The smallest row left below each node.
    """

    points: Real
    rows: Whole
    place: Whole
    starts: Whole
    left: Whole
    low: Real
    high: Real
    sums: Real
    first: Whole


def plant(values: Real) -> Tree:
    """The tree of all rows of `values`."""
    n, d = values.shape
    leaves = 1
    while leaves * _LEAF < n:
        leaves *= 2
    rows = _split(values, leaves)
    starts = np.arange(leaves + 1) * n // leaves
    place = np.empty(n, dtype=np.int64)
    place[rows] = np.arange(n)
    tree = Tree(
        np.ascontiguousarray(values[rows].T),
        rows,
        place,
        starts,
        np.diff(starts),
        np.empty((2 * leaves - 1, d)),
        np.empty((2 * leaves - 1, d)),
        np.empty((2 * leaves - 1, d)),
        np.empty(2 * leaves - 1, dtype=np.int64),
    )
    _summarise(tree, leaves)
    return tree


@njit(cache=True)
def _split(values: Real, leaves: int) -> Whole:
    """Rows in the order of the leaves: each node is halved along its longest side."""
    n, d = values.shape
    rows = np.arange(n)
    parts = 1
    while parts < leaves:
        for part in range(parts):
            start, end = part * n // parts, (part + 1) * n // parts
            widest, width = 0, -1.0
            for j in range(d):
                low, high = np.inf, -np.inf
                for i in range(start, end):
                    low = min(low, values[rows[i], j])
                    high = max(high, values[rows[i], j])
                if high - low > width:
                    widest, width = j, high - low
            along = np.empty(end - start)
            for i in range(start, end):
                along[i - start] = values[rows[i], widest]
            rows[start:end] = rows[start:end][np.argsort(along)]
        parts *= 2
    return rows


@njit(cache=True)
def _summarise(tree: Tree, leaves: int) -> None:
    for leaf in range(leaves):
        _look_at_leaf(tree, leaf, leaves - 1 + leaf)
    for node in range(leaves - 2, -1, -1):
        _join(tree, node)


@njit(cache=True)
def _look_at_leaf(tree: Tree, leaf: Any, node: Any) -> None:
    start = tree.starts[leaf]
    end = start + tree.left[leaf]
    tree.first[node] = np.iinfo(np.int64).max
    for i in range(start, end):
        tree.first[node] = min(tree.first[node], tree.rows[i])
    for j in range(len(tree.points)):
        low, high, total = np.inf, -np.inf, 0.0
        for i in range(start, end):
            value = tree.points[j, i]
            low, high = min(low, value), max(high, value)
            total += value
        tree.low[node, j], tree.high[node, j], tree.sums[node, j] = low, high, total


@njit(cache=True)
def _join(tree: Tree, node: Any) -> None:
    a, b = 2 * node + 1, 2 * node + 2
    tree.first[node] = min(tree.first[a], tree.first[b])
    for j in range(len(tree.points)):
        tree.low[node, j] = min(tree.low[a, j], tree.low[b, j])
        tree.high[node, j] = max(tree.high[a, j], tree.high[b, j])
        tree.sums[node, j] = tree.sums[a, j] + tree.sums[b, j]


@njit(cache=True)
def take(tree: Tree, row: Any) -> None:
    """Take one row away: it changes places with the last one left in its leaf."""
    place = tree.place[row]
    leaf = np.searchsorted(tree.starts, place, side="right") - 1
    tree.left[leaf] -= 1
    last = tree.starts[leaf] + tree.left[leaf]
    other = tree.rows[last]
    tree.rows[place], tree.rows[last] = other, row
    tree.place[other], tree.place[row] = place, last
    for j in range(len(tree.points)):
        value = tree.points[j, place]
        tree.points[j, place] = tree.points[j, last]
        tree.points[j, last] = value
    node = len(tree.left) - 1 + leaf
    _look_at_leaf(tree, leaf, node)
    while node > 0:
        node = (node - 1) // 2
        _join(tree, node)


@njit(cache=True)
def farthest(tree: Tree, point: Real) -> Any:
    """The row that is left farthest from the point; the first one of several."""
    rows, apart = np.empty(1, dtype=np.int64), np.empty(1)
    _search(tree, point, -1.0, -1, rows, apart)
    return rows[0]


@njit(cache=True)
def nearest(tree: Tree, point: Real, omit: Any, rows: Whole, apart: Real) -> Any:
    """Fill `rows` with the rows left nearest to the point, in order; return how many there are.

    `apart` receives their squared distances; the row `omit` is passed over.
    """
    return _search(tree, point, 1.0, omit, rows, apart)


@njit(cache=True)
def _search(tree: Tree, point: Real, sign: Any, omit: Any, rows: Whole, apart: Real) -> Any:
    """The rows with the smallest squared distances times a sign: -1 finds the farthest."""
    wanted, count, inner = len(rows), 0, len(tree.left) - 1
    nodes, bounds = np.empty(_DEPTH, dtype=np.int64), np.empty(_DEPTH)
    nodes[0], bounds[0], waiting = 0, _bound(tree, 0, point, sign), 1
    inside = np.empty(tree.points.shape[1] // len(tree.left) + 1)
    while waiting > 0:
        waiting -= 1
        node, bound = nodes[waiting], bounds[waiting]
        if count == wanted and _is_after(bound, tree.first[node], apart, rows, count):
            continue
        if node >= inner:
            _measure(tree, node - inner, point, sign, inside)
            count = _sift(tree, node - inner, omit, inside, rows, apart, count)
            continue
        near, far = 2 * node + 1, 2 * node + 2
        less, more = _bound(tree, near, point, sign), _bound(tree, far, point, sign)
        if less > more:
            near, far, less, more = far, near, more, less
        for child, limit in ((far, more), (near, less)):
            if limit < np.inf:
                nodes[waiting], bounds[waiting] = child, limit
                waiting += 1
    return count


@njit(cache=True)
def _bound(tree: Tree, node: Any, point: Real, sign: Any) -> Any:
    """No signed squared distance of a point left below the node is smaller than this."""
    if tree.low[node, 0] == np.inf:
        return np.inf
    total = 0.0
    for j in range(len(point)):
        below, above = tree.low[node, j] - point[j], point[j] - tree.high[node, j]
        apart = max(below, above, 0.0) if sign > 0 else min(below, above)
        total += apart * apart
    return sign * total


@njit(cache=True)
def _measure(tree: Tree, leaf: Any, point: Real, sign: Any, apart: Real) -> None:
    """Signed squared distances of the points left in a leaf, one coordinate after another."""
    start, count = tree.starts[leaf], tree.left[leaf]
    apart[:count] = 0.0
    for j in range(len(point)):
        value, column = point[j], tree.points[j, start : start + count]
        for i in range(count):
            apart[i] += sign * (column[i] - value) ** 2


@njit(cache=True)
def _sift(
    tree: Tree, leaf: Any, omit: Any, inside: Real, rows: Whole, apart: Real, count: int
) -> int:
    """Put the points of a leaf among the nearest rows found so far; return how many there are."""
    for i in range(tree.left[leaf]):
        row = tree.rows[tree.starts[leaf] + i]
        if row == omit:
            continue
        if count < len(rows):
            count += 1
        elif _is_after(inside[i], row, apart, rows, count):
            continue
        _insert(inside[i], row, apart, rows, count)
    return count


@njit(cache=True)
def _is_after(distance: Any, row: Any, apart: Real, rows: Whole, count: Any) -> bool:
    """Whether a row at this distance comes after all that were found."""
    last = apart[count - 1]
    return bool(distance > last or (distance == last and row > rows[count - 1]))


@njit(cache=True)
def _insert(distance: Any, row: Any, apart: Real, rows: Whole, count: Any) -> None:
    """Put a row in its order among the first `count`; the last one falls out."""
    i = count - 1
    while i > 0 and (apart[i - 1] > distance or (apart[i - 1] == distance and rows[i - 1] > row)):
        apart[i], rows[i] = apart[i - 1], rows[i - 1]
        i -= 1
    apart[i], rows[i] = distance, row
