"""The compiled repair: bring the published cells that break their limits back, one at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.solve.integer.kernels import (
    Chain,
    Model,
    below,
    change,
    is_allowed,
    move,
    partner,
    step_down,
    step_up,
    uniform,
)

_TRIES = 8  # member cells tried for each violated cell
_PARTNERS = 10  # compensating cells tried for each of them
EVALUATIONS = _TRIES * (1 + _PARTNERS)


@njit(cache=True, inline="always")
def is_violated(model: Model, deviation: NDArray[Any], k: int) -> bool:
    """Whether a published cell breaks its limits."""
    return deviation[k] > model.high[k] or deviation[k] < model.low[k]


@njit(cache=True)
def violated_cells(model: Model, deviation: NDArray[Any]) -> NDArray[np.int64]:
    """The published cells that break their limits."""
    found = np.empty(len(deviation), dtype=np.int64)
    count = 0
    for k in range(len(deviation) - 1):
        if is_violated(model, deviation, k):
            found[count] = k
            count += 1
    return found[:count].copy()


@njit(cache=True, nogil=True)
def collect(
    members: NDArray[np.int32],
    slot: NDArray[np.int32],
    lists: NDArray[np.int32],
    counts: NDArray[np.int64],
    random: NDArray[np.uint64],
) -> None:
    """List the inner cells of the published cells that have a slot, a random sample of long ones.

    One pass over the index array replaces an inverted index as large as itself.
    """
    room = lists.shape[1]
    for j in range(members.shape[0]):
        for t in range(members.shape[1]):
            q = slot[members[j, t]]
            if q < 0:
                continue
            place = counts[q]
            counts[q] += 1
            if place >= room:
                place = below(random, place + 1)
            if place < room:
                lists[q, place] = j


@njit(cache=True, nogil=True)
def repair(
    model: Model,
    chain: Chain,
    violated: NDArray[np.int64],
    lists: NDArray[np.int32],
    counts: NDArray[np.int64],
    tabu: NDArray[np.int64],
    clock: int,
    iterations: int,
    temperature: float,
    tenure: int,
) -> int:
    """Take violated cells at random and make the best step, or pair of steps, that helps them.

    Cells that were just moved are left alone for `tenure` iterations.

    Returns:
      The clock after the last iteration.
    """
    for now in range(clock, clock + iterations):
        q = _next_violated(model, chain, violated)
        if q < 0:
            return now
        j, s, i, r, rise = _best_step(model, chain, violated[q], lists[q], counts[q], tabu, now)
        if j < 0:
            continue
        if rise <= 0.0 or uniform(chain.random) < math.exp(-rise / temperature):
            move(model, chain, j, s)
            tabu[j] = now + tenure
            if i >= 0:
                move(model, chain, i, r)
                tabu[i] = now + tenure
    return clock + iterations


@njit(cache=True)
def _next_violated(model: Model, chain: Chain, violated: NDArray[np.int64]) -> int:
    """A random place in the list whose cell still breaks its limits, or -1."""
    n = len(violated)
    q = below(chain.random, n)
    for _ in range(n):
        if is_violated(model, chain.deviation, violated[q]):
            return q
        q = q + 1 if q + 1 < n else 0
    return -1


@njit(cache=True, inline="always")
def _toward(model: Model, j: int, value: int, sign: int, random: NDArray[np.uint64]) -> int:
    """A step of the wanted sign: mostly the shortest, now and then across the gap above zero."""
    first = model.first[j]
    if sign > 0:
        if value > 0 and model.zero[j] and below(random, 4) == 0:
            return first if is_allowed(model, j, value + first) else 0
        return step_up(model, j, value)
    if value > first and model.zero[j] and below(random, 4) == 0:
        wide = value if value < 2 * first else first
        return -wide if is_allowed(model, j, value - wide) else 0
    return step_down(model, j, value)


@njit(cache=True)
def _best_step(
    model: Model,
    chain: Chain,
    k: int,
    cells: NDArray[np.int32],
    count: int,
    tabu: NDArray[np.int64],
    now: int,
) -> tuple[int, int, int, int, float]:
    """The best of many steps and pairs of steps that move published cell `k` toward its limits."""
    random, y, n = chain.random, chain.y, len(chain.y)
    sign = -1 if chain.deviation[k] > model.high[k] else 1
    best, best_j, best_s, best_i, best_r = np.inf, -1, 0, -1, 0
    for _ in range(_TRIES):
        j = cells[below(random, min(count, len(cells)))]
        s = _toward(model, j, y[j], sign, random)
        if s == 0 or tabu[j] > now:
            continue
        alone = change(model, chain.deviation, j, s)
        if alone < best:
            best, best_j, best_s, best_i, best_r = alone, j, s, -1, 0
        move(model, chain, j, s)
        for _ in range(_PARTNERS):
            i = partner(random, j, n)
            if i == j or tabu[i] > now:
                continue
            r = -s if is_allowed(model, i, y[i] - s) else _toward(model, i, y[i], -sign, random)
            if r == 0:
                continue
            both = alone + change(model, chain.deviation, i, r)
            if both < best:
                best, best_j, best_s, best_i, best_r = both, j, s, i, r
        move(model, chain, j, -s)
    return best_j, best_s, best_i, best_r, best
