"""The compiled cube method: random moves that keep sums until cells are whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.solve.integer.kernels import Random, uniform

Index = NDArray[np.int64]
Real = NDArray[np.float64]
_EPS = 1e-9
_DEPENDENT = 1e-7
_ROOM = 8  # sums that can be held in one move, for each cell of the window
_FEW = 3  # cells added to a move for each sum that must be held


@njit(cache=True)
def fly(
    starts: Index,
    cells: Index,
    column_starts: Index,
    rows: Index,
    part: Real,
    sums: Real,
    loose: NDArray[np.bool_],
    window: int,
    random: Random,
) -> int:
    """Move fractions to 0 or 1 at random so that no expectation changes.

    Row `j` of the sparse matrix (`starts`, `cells`) lists the published cells of an inner cell,
    column `k` (`column_starts`, `rows`) the inner cells of a published one. `part` are the
    fractions of the inner cells; `sums` what published cells are above the whole number below
    their target, kept in [0, 1] and held once it is 0 or 1. Where no move of up to `window` inner
    cells keeps all sums, an inner cell is rounded alone and its sums become `loose`.

    Returns:
      How many inner cells were rounded alone.
    """
    n, m = len(starts) - 1, len(sums)
    place = np.full(m, -1, dtype=np.int64)
    queued = np.full(n, -1, dtype=np.int64)
    cursor = column_starts.copy()
    reduced, mix = np.zeros((window, _ROOM * window)), np.zeros((window, window))
    alone = 0
    for first in range(n):
        while _EPS < part[first] < 1 - _EPS:
            chosen, weight = _direction(
                starts, cells, column_starts, rows, part, sums, loose, first, place, queued, cursor, reduced, mix
            )
            if len(chosen) == 0:
                alone += 1
                for e in range(starts[first], starts[first + 1]):
                    loose[cells[e]] = True
                continue
            _step(starts, cells, part, sums, loose, chosen, weight, place, random)
        part[first] = np.rint(part[first])
    return alone


@njit(cache=True)
def _is_held(sums: Real, loose: NDArray[np.bool_], k: int) -> bool:
    return not loose[k] and not _EPS < sums[k] < 1 - _EPS


@njit(cache=True)
def _direction(
    starts: Index,
    cells: Index,
    column_starts: Index,
    rows: Index,
    part: Real,
    sums: Real,
    loose: NDArray[np.bool_],
    first: int,
    place: Index,
    queued: Index,
    cursor: Index,
    reduced: Real,
    mix: Real,
) -> Any:
    """Inner cells around `first`, with weights under which every held sum stays as it is.

    Cells are added one by one, each reduced by those before it, until one is dependent on them.
    """
    window, room = reduced.shape
    order = np.empty(window, dtype=np.int64)
    touched = np.empty(room, dtype=np.int64)
    pivot = np.empty(window, dtype=np.int64)
    answer, weight = order[:0], mix[0, :0].copy()
    order[0] = first
    queued[first] = first
    at, length, known = 0, 1, 0
    while at < length and known + starts[order[at] + 1] - starts[order[at]] <= room:
        j = order[at]
        row = reduced[at]
        for e in range(starts[j], starts[j + 1]):
            k = cells[e]
            if _is_held(sums, loose, k):
                if place[k] < 0:
                    place[k] = known
                    touched[known] = k
                    known += 1
                row[place[k]] = 1.0
        mix[at, at] = 1.0
        for b in range(at):
            factor = row[pivot[b]]
            if factor != 0.0:
                row[:known] -= factor * reduced[b, :known]
                mix[at, : b + 1] -= factor * mix[b, : b + 1]
        largest = 0
        for q in range(1, known):
            if abs(row[q]) > abs(row[largest]):
                largest = q
        if abs(row[largest]) < _DEPENDENT:
            answer, weight = order[: at + 1].copy(), mix[at, : at + 1].copy()
            at += 1
            break
        scale = row[largest]
        row[:known] /= scale
        mix[at, : at + 1] /= scale
        pivot[at] = largest
        length = _enlarge(
            starts, cells, column_starts, rows, part, sums, loose, order, length, j, first, queued, cursor
        )
        at += 1
    reduced[:at, :known] = 0.0
    mix[:at, :at] = 0.0
    for q in range(known):
        place[touched[q]] = -1
    for q in range(length):
        queued[order[q]] = -1
    return answer, weight


@njit(cache=True)
def _enlarge(
    starts: Index,
    cells: Index,
    column_starts: Index,
    rows: Index,
    part: Real,
    sums: Real,
    loose: NDArray[np.bool_],
    order: Index,
    length: int,
    j: int,
    first: int,
    queued: Index,
    cursor: Index,
) -> int:
    """Queue a few fractional cells for each held sum of cell `j`, past those that are whole."""
    for e in range(starts[j], starts[j + 1]):
        k = cells[e]
        if not _is_held(sums, loose, k):
            continue
        c, end, taken = cursor[k], column_starts[k + 1], 0
        while c < end and not _EPS < part[rows[c]] < 1 - _EPS:
            c += 1
        cursor[k] = c
        while c < end and taken < _FEW and length < len(order):
            i = rows[c]
            if queued[i] != first and _EPS < part[i] < 1 - _EPS:
                queued[i] = first
                order[length] = i
                length += 1
                taken += 1
            c += 1
    return length


@njit(cache=True)
def _step(
    starts: Index,
    cells: Index,
    part: Real,
    sums: Real,
    loose: NDArray[np.bool_],
    chosen: Index,
    weight: Real,
    place: Index,
    random: Random,
) -> None:
    """Go one way or the other until a fraction or a sum is whole, each way as likely as is fair."""
    drift = np.zeros(len(chosen) * 64 + 64)
    touched = np.empty(len(drift), dtype=np.int64)
    known = 0
    up, down = np.inf, np.inf
    for c in range(len(chosen)):
        up, down = _room(up, down, part[chosen[c]], weight[c])
        for e in range(starts[chosen[c]], starts[chosen[c] + 1]):
            k = cells[e]
            if loose[k] or _is_held(sums, loose, k):
                continue
            if place[k] < 0 and known < len(drift):
                place[k] = known
                touched[known] = k
                known += 1
            drift[place[k]] += weight[c]
    for q in range(known):
        up, down = _room(up, down, sums[touched[q]], drift[q])
    length = up if uniform(random) * (up + down) < down else -down
    for c in range(len(chosen)):
        part[chosen[c]] = _snapped(part[chosen[c]] + length * weight[c])
    for q in range(known):
        sums[touched[q]] = _snapped(sums[touched[q]] + length * drift[q])
        place[touched[q]] = -1


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
