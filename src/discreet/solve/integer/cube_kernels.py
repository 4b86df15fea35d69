"""The compiled cube method: random moves that keep sums until cells are whole.

A window holds fractional inner cells whose sums are linearly independent. A cell that depends on
them can be moved together with them so that every held sum stays; one of the cells, or one more
sum, is then whole, and the window changes by one row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.solve.integer.kernels import Random, uniform

Index = NDArray[np.int64]
Real = NDArray[np.float64]
_EPS = 1e-9
_DEPENDENT = 1e-6
_ROOM = 6  # held sums in a window, for each of its cells


class Cube(NamedTuple):
    """Where all cells are on their way.

    Row `j` of the sparse matrix (`starts`, `cells`) lists the published cells of an inner cell.
    `part` are the fractions of the inner cells, `sums` what published cells are above the whole
    number below their target: kept in [0, 1], held once it is 0 or 1, free where `loose`.
    `size` is the number of inner cells of a published one.
    """

    starts: Index
    cells: Index
    part: Real
    sums: Real
    loose: NDArray[np.bool_]
    size: Index


class Window(NamedTuple):
    """Independent cells and what is known of them.

    `combined[b]` are weights of the cells in the window's slots, `reduced[b]` what they add up to
    in the held sums, which is 1 at `pivot[b]` and 0 at the pivots of earlier rows. `slots` are
    the inner cells (-1: none), `place` the column of each published cell (-1: none) and `touched`
    the reverse; `used` the numbers of rows and columns in use.
    """

    reduced: Real
    combined: Real
    pivot: Index
    slots: Index
    place: Index
    touched: Index
    used: Index


def window_of(width: int, n_published: int) -> Window:
    """An empty window for up to `width` independent cells."""
    return Window(
        np.zeros((width + 1, _ROOM * width + 64)),
        np.zeros((width + 1, width + 1)),
        np.zeros(width + 1, dtype=np.int64),
        np.full(width + 1, -1, dtype=np.int64),
        np.full(n_published, -1, dtype=np.int64),
        np.zeros(_ROOM * width + 64, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@njit(cache=True)
def fly(cube: Cube, window: Window, order: Index, random: Random) -> None:
    """Go through the fractional cells once; those left in a full window wait for another pass."""
    for j in order:
        if not _is_open(cube.part[j]):
            continue
        if _is_full(cube, window, j):
            _clear(window)
        _enter(cube, window, j, random)
    _clear(window)


@njit(cache=True)
def _is_open(value: float) -> Any:
    return _EPS < value < 1 - _EPS


@njit(cache=True)
def _is_held(cube: Cube, k: int) -> Any:
    return not cube.loose[k] and not _is_open(cube.sums[k])


@njit(cache=True)
def _is_full(cube: Cube, window: Window, j: int) -> Any:
    rows, columns = window.used
    width = cube.starts[j + 1] - cube.starts[j]
    return rows >= len(window.slots) - 1 or columns + 2 * width + 8 > len(window.touched)


@njit(cache=True)
def _clear(window: Window) -> None:
    rows, columns = window.used
    window.reduced[: rows + 1, :columns] = 0.0
    window.combined[:] = 0.0
    window.slots[:] = -1
    for q in range(columns):
        window.place[window.touched[q]] = -1
    window.used[:] = 0


@njit(cache=True)
def _column(window: Window, k: int) -> Any:
    """The column of a held sum; a new one is empty."""
    if window.place[k] < 0:
        window.place[k] = window.used[1]
        window.touched[window.used[1]] = k
        window.used[1] += 1
    return window.place[k]


@njit(cache=True)
def _enter(cube: Cube, window: Window, j: int, random: Random) -> None:
    """Add a cell to the window, moving cells for as long as it depends on the others."""
    rows = window.used[0]
    slot = 0
    while window.slots[slot] >= 0:
        slot += 1
    window.slots[slot] = j
    row, weights = window.reduced[rows], window.combined[rows]
    for e in range(cube.starts[j], cube.starts[j + 1]):
        if _is_held(cube, cube.cells[e]):
            row[_column(window, cube.cells[e])] = 1.0
    weights[slot] = 1.0
    columns = window.used[1]
    for b in range(rows):
        factor = row[window.pivot[b]]
        if factor != 0.0:
            row[:columns] -= factor * window.reduced[b, :columns]
            weights -= factor * window.combined[b]
    _place(cube, window, random)


@njit(cache=True)
def _place(cube: Cube, window: Window, random: Random) -> None:
    """Move cells along the row after the last one until it is independent, or used up."""
    while True:
        rows, columns = window.used
        row, weights = window.reduced[rows], window.combined[rows]
        weights[np.abs(weights) < _EPS] = 0.0
        largest = _largest(row, columns)
        if largest >= 0:
            _keep(window, largest)
            return
        row[:columns] = 0.0
        if not weights.any():
            return
        _move(cube, window, weights, random)
        if _settle(cube, window):
            return


@njit(cache=True)
def _largest(row: Real, columns: int) -> int:
    """The column of a row's largest entry, or -1 when all are zero."""
    best, where = _DEPENDENT, -1
    for q in range(columns):
        if abs(row[q]) > best:
            best, where = abs(row[q]), q
    return where


@njit(cache=True)
def _keep(window: Window, column: int) -> None:
    """Make the row after the last one part of the window."""
    rows, columns = window.used
    scale = window.reduced[rows, column]
    window.reduced[rows, :columns] /= scale
    window.combined[rows] /= scale
    window.pivot[rows] = column
    window.used[0] += 1


@njit(cache=True)
def _move(cube: Cube, window: Window, weights: Real, random: Random) -> None:
    """Go one way or the other until a fraction or a sum is whole, each way as likely as is fair."""
    drift, moving = _drift(cube, window, weights)
    up, down = np.inf, np.inf
    for s in range(len(weights)):
        if weights[s] != 0.0:
            up, down = _room(up, down, cube.part[window.slots[s]], weights[s])
    for q in range(len(moving)):
        up, down = _room(up, down, cube.sums[moving[q]], drift[q])
    length = up if uniform(random) * (up + down) < down else -down
    for s in range(len(weights)):
        if weights[s] != 0.0:
            j = window.slots[s]
            cube.part[j] = _snapped(cube.part[j] + length * weights[s])
    for q in range(len(moving)):
        k = moving[q]
        cube.sums[k] = _snapped(cube.sums[k] + length * drift[q])
        if not _is_open(cube.sums[k]):
            _hold(cube, window, k)


@njit(cache=True)
def _drift(cube: Cube, window: Window, weights: Real) -> Any:
    """How sums that are not held change along the weights, and which sums these are."""
    most = 0
    for s in range(len(weights)):
        if weights[s] != 0.0:
            j = window.slots[s]
            most += cube.starts[j + 1] - cube.starts[j]
    found, amount, known = np.empty(most, dtype=np.int64), np.empty(most), 0
    for s in range(len(weights)):
        if weights[s] != 0.0:
            j = window.slots[s]
            for e in range(cube.starts[j], cube.starts[j + 1]):
                k = cube.cells[e]
                if not cube.loose[k] and _is_open(cube.sums[k]):
                    found[known], amount[known] = k, weights[s]
                    known += 1
    order = np.argsort(found[:known])
    kept = -1
    cells, drift = np.empty(known, dtype=np.int64), np.zeros(known)
    for o in order:
        if kept < 0 or cells[kept] != found[o]:
            kept += 1
            cells[kept] = found[o]
        drift[kept] += amount[o]
    return drift[: kept + 1], cells[: kept + 1]


@njit(cache=True)
def _hold(cube: Cube, window: Window, k: int) -> None:
    """Give a sum that has become whole its column, over all rows and the one after the last."""
    if window.used[1] == len(window.touched):
        cube.loose[k] = True
        return
    column = _column(window, k)
    for s in range(len(window.slots)):
        j = window.slots[s]
        if j < 0:
            continue
        for e in range(cube.starts[j], cube.starts[j + 1]):
            if cube.cells[e] == k:
                for b in range(window.used[0] + 1):
                    window.reduced[b, column] += window.combined[b, s]


@njit(cache=True)
def _settle(cube: Cube, window: Window) -> bool:
    """Take cells that have become whole out; true when that used up the row after the last one."""
    fresh, best = window.used[0], -1
    for s in range(len(window.slots)):
        j = window.slots[s]
        if j >= 0 and not _is_open(cube.part[j]):
            weights = window.combined[fresh]
            if best < 0 or abs(weights[s]) > abs(weights[best]):
                best = s
    if best < 0:
        return False
    _eliminate(window, best, fresh)
    window.reduced[fresh] = 0.0
    window.combined[fresh] = 0.0
    window.slots[best] = -1
    for s in range(len(window.slots)):
        j = window.slots[s]
        if j >= 0 and not _is_open(cube.part[j]):
            _leave(window, s)
            window.slots[s] = -1
    return True


@njit(cache=True)
def _eliminate(window: Window, slot: int, by: int) -> None:
    """Free the rows of a slot with a row that has it."""
    columns = window.used[1]
    for b in range(by):
        factor = window.combined[b, slot] / window.combined[by, slot]
        if factor != 0.0:
            window.combined[b] -= factor * window.combined[by]
            window.reduced[b, :columns] -= factor * window.reduced[by, :columns]
    window.combined[:by, slot] = 0.0


@njit(cache=True)
def _leave(window: Window, slot: int) -> None:
    """Take a cell out: the last row that has it frees the earlier ones and goes."""
    rows, columns = window.used
    last = -1
    for b in range(rows):
        if abs(window.combined[b, slot]) > _EPS:
            last = b
    window.combined[last + 1 : rows, slot] = 0.0
    if last < 0:
        return
    _eliminate(window, slot, last)
    for b in range(last, rows):
        window.combined[b] = window.combined[b + 1]
        window.reduced[b, :columns] = window.reduced[b + 1, :columns]
        window.pivot[b] = window.pivot[b + 1]
    window.combined[rows] = 0.0
    window.reduced[rows, :columns] = 0.0
    window.used[0] -= 1


@njit(cache=True)
def _room(up: float, down: float, value: float, slope: float) -> Any:
    """How far both ways can be gone before a value in [0, 1] reaches an end."""
    if slope > _EPS:
        return min(up, (1 - value) / slope), min(down, value / slope)
    if slope < -_EPS:
        return min(up, -value / slope), min(down, (value - 1) / slope)
    return up, down


@njit(cache=True)
def _snapped(value: float) -> float:
    if value < _EPS:
        return 0.0
    return 1.0 if value > 1 - _EPS else value
