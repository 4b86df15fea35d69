"""Compiled steps of the restarted primal-dual iteration."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from discreet.arrays import Real, Unsigned32, Whole32
from discreet.design.incidence import add_to_coarser, take_from_coarser

ABSOLUTE = 0
POISSON = 1

# Share of the largest step at which the iteration is stable.
_STEP = 0.998
# A restart pays in any case once the fixed-point error has fallen to a fifth, and at four fifths
# once it grows again; it is due after this share of all steps (Lu & Yang 2024 take 0.36 as well).
_ENOUGH, _SOME, _LATE = 0.2, 0.8, 0.36


@njit(cache=True)
def _primal_step(
    places: Unsigned32,
    v: Real,
    rows: Real,
    omega: float,
    ridge: float,
    mix: float,
    y: Real,
    anchor: Real,
    new: Real,
    sums: Real,
) -> float:
    """Step of the inner cells; the margins of the reflected point are added to `sums`."""
    moved = 0.0
    n_groups, varies = places.shape[1], len(rows) > 1
    # The ridge is taken implicitly, so that it bounds no step.
    step = _STEP / (omega * rows[0])
    slower = 1.0 / (1.0 + step * ridge)
    for i in range(places.shape[0]):
        # A view of the row would be counted as a reference: that doubles the time of a step.
        slope = 0.0
        for g in range(n_groups):
            slope += v[places[i, g]]
        old = y[i]
        if varies:
            step = _STEP / (omega * rows[i])
            slower = 1.0 / (1.0 + step * ridge)
        value = max((old + step * slope) * slower, 0.0)
        new[i] = value
        moved += (value - old) ** 2 * rows[i if varies else 0]
        # Most cells are zero and stay so: their margins need no visit.
        reflected = 2.0 * value - old
        if reflected != 0.0:
            for g in range(n_groups):
                sums[places[i, g]] += reflected
        y[i] = mix * reflected + (1.0 - mix) * anchor[i]
    return moved * omega / _STEP


@njit(cache=True)
def _primal_steps(
    head: Unsigned32,
    tail: Unsigned32,
    places: Unsigned32,
    v: Real,
    rows: Real,
    omega: float,
    ridge: float,
    mix: float,
    y: Real,
    anchor: Real,
    new: Real,
    sums: Real,
) -> float:
    """Steps of the inner cells head by head, whose published cells `places` lists meanwhile."""
    n, moved, none = len(tail), 0.0, np.uint32(len(v) - 1)
    sums[:] = 0.0
    for h in range(len(head)):
        if len(head) > 1:
            for i in range(tail.shape[0]):
                for g in range(tail.shape[1]):
                    places[i, g] = min(head[h, g] + tail[i, g], none)
        a, b = h * n, (h + 1) * n
        own = rows[a:b] if len(rows) > 1 else rows
        moved += _primal_step(
            places, v, own, omega, ridge, mix, y[a:b], anchor[a:b], new[a:b], sums
        )
    return moved


@njit(cache=True)
def _dual_step(
    loss: int,
    z: Real,
    weights: Real,
    columns: Real,
    steps: Real,
    omega: float,
    mix: float,
    sums: Real,
    u: Real,
    anchor: Real,
    new: Real,
) -> float:
    """Step of the published cells: the proximal map of the loss's conjugate.

    `steps` are the lengths of the steps, divided by the balance of both sides.
    """
    moved = 0.0
    for k in range(len(u) - 1):
        w, old = weights[k], u[k]
        step = omega * steps[k]
        if w == 0.0:
            value = 0.0
        elif loss == ABSOLUTE:
            value = min(max(old + step * (z[k] - sums[k]), -w), w)
        else:
            # The proximal map of the Poisson conjugate is the positive root of a quadratic.
            p = old - step * sums[k]
            value = 0.5 * (p - w + math.sqrt((p + w) ** 2 + 4.0 * step * w * z[k]))
        new[k] = value
        moved += (value - old) ** 2 * columns[k]
        u[k] = mix * (2.0 * value - old) + (1.0 - mix) * anchor[k]
    return moved / (_STEP * omega)


@njit(cache=True)
def advance(
    head: Unsigned32,
    tail: Unsigned32,
    edges: tuple[Whole32, Whole32],
    loss: int,
    z: Real,
    weights: Real,
    rows: Real,
    columns: Real,
    omega: float,
    ridge: float,
    primal: tuple[Real, Real, Real],
    dual: tuple[Real, Real, Real],
    since: tuple[int, float, float],
    total: int,
    limit: int,
) -> tuple[int, float, float, bool]:
    """Iterate until a restart is due or `limit` steps are done.

    `primal` and `dual` are the averaged point, that of the last restart and the latest one; `rows`
    has one entry where all are the same. `since` is what a call returns: the steps since the last
    restart, the first and the last fixed-point error since then; and whether a restart is due.
    """
    (fine, coarse), (age, first, last) = edges, since
    (y, y_anchor, y_new), (u, u_anchor, u_new) = primal, dual
    v = np.empty_like(u)
    sums = np.empty_like(u)
    steps = _STEP / columns
    places = tail if len(head) == 1 else np.empty_like(tail)
    for step in range(limit):
        v[:] = u
        take_from_coarser(fine, coarse, v)
        mix = (age + 1.0) / (age + 2.0)
        moved = _primal_steps(
            head, tail, places, v, rows, omega, ridge, mix, y, y_anchor, y_new, sums
        )
        add_to_coarser(fine, coarse, sums)
        moved += _dual_step(loss, z, weights, columns, steps, omega, mix, sums, u, u_anchor, u_new)
        error = math.sqrt(moved)
        if age == 0:
            first = error
        due = age > 0 and (
            error <= _ENOUGH * first
            or (error <= _SOME * first and error > last)
            or age >= _LATE * (total + step)
        )
        last = error
        age += 1
        if due or error == 0.0:
            return age, first, last, True
    return age, first, last, False


@njit(cache=True)
def add_margins(head: Unsigned32, tail: Unsigned32, y: Real, sums: Real) -> None:
    """Add the inner cells to the published cells of all groups.

    The lists are those of `advance`, inner cell by inner cell; others would double the memory.
    """
    i, none = 0, np.uint32(len(sums) - 1)
    for h in range(len(head)):
        for t in range(len(tail)):
            if y[i] != 0.0:
                for g in range(tail.shape[1]):
                    k = min(head[h, g] + tail[t, g], none)
                    sums[k] += y[i]
            i += 1


@njit(cache=True)
def repair(row: Whole32, lowest: Real, lowered: Real, slopes: Real, u: Real) -> None:
    """Lower dual values of one group until no slope of its cells is positive, or to `lowest`.

    `lowered` is zero on entry and on exit. The last position stands for no cell and stays.
    """
    none = len(u) - 1
    for i in range(len(row)):
        k = row[i]
        wanted = min(slopes[i], max(u[k] - lowest[k], 0.0))
        if k != none and wanted > lowered[k]:
            lowered[k] = wanted
    for i in range(len(row)):
        slopes[i] -= lowered[row[i]]
    for i in range(len(row)):
        u[row[i]] -= lowered[row[i]]
        lowered[row[i]] = 0.0
