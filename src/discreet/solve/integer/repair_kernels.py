"""The compiled repair: bring the published cells that break their limits back, one at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.solve.integer.kernels import (
    FIRST,
    HIGH,
    LOW,
    VALUE,
    ZERO,
    Cells,
    Chain,
    Members,
    Model,
    Places,
    Random,
    Rule,
    below,
    change,
    is_allowed,
    move,
    partner,
    step_down,
    step_up,
    uniform,
    word,
)
from discreet.solve.integer.schedule import SCHEDULE

_TRIES, _PARTNERS = SCHEDULE.tries, SCHEDULE.partners
EVALUATIONS = _TRIES * (1 + _PARTNERS)


@njit(cache=True, inline="always")
def is_violated(cells: Cells, rule: Rule, deviation: NDArray[Any], k: int) -> Any:
    """Whether a published cell breaks its limits or takes a forbidden value."""
    if deviation[k] > cells[k, HIGH] or deviation[k] < cells[k, LOW]:
        return True
    return 0 < deviation[k] + cells[k, VALUE] < rule.blocked


@njit(cache=True)
def violated_cells(cells: Cells, rule: Rule, deviation: NDArray[Any]) -> NDArray[np.int64]:
    """The published cells that break their limits or take a forbidden value."""
    found = np.empty(len(deviation), dtype=np.int64)
    count = 0
    for k in range(len(deviation) - 1):
        if is_violated(cells, rule, deviation, k):
            found[count] = k
            count += 1
    return found[:count].copy()


@njit(cache=True, nogil=True)
def collect(
    members: Members,
    slot: NDArray[np.int32],
    lists: NDArray[np.int32],
    counts: NDArray[np.int64],
    random: Random,
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
    members, places, cells, rule = model
    y, _, deviation, _, random = chain
    for now in range(clock, clock + iterations):
        q = _next_violated(cells, rule, deviation, violated, random)
        if q < 0:
            return now
        sign = _direction(cells, deviation, violated[q], random)
        rise, j, s, i, r = _best_step(
            members, places, cells, rule, y, deviation, lists[q], counts[q], sign, tabu, now, random
        )
        if j < 0 or (rise > 0.0 and uniform(random) >= math.exp(-rise / temperature)):
            continue
        move(members, y, deviation, j, s)
        tabu[j] = now + tenure
        if i >= 0:
            move(members, y, deviation, i, r)
            tabu[i] = now + tenure
    return clock + iterations


@njit(cache=True, inline="always")
def _best_step(
    members: Members,
    places: Places,
    cells: Cells,
    rule: Rule,
    y: NDArray[np.int32],
    deviation: NDArray[Any],
    candidates: NDArray[np.int32],
    count: int,
    sign: int,
    tabu: NDArray[np.int64],
    now: int,
    random: Random,
) -> Any:
    """The best of many steps in one direction, each alone and with a compensating one.

    Returns:
      The change of the loss, cell and step, and partner (-1: none) and its step.
    """
    best, best_j, best_s, best_i, best_r = np.inf, -1, 0, -1, 0
    for _ in range(_TRIES):
        j = candidates[below(random, min(count, len(candidates)))]
        s = _toward(places, j, y[j], sign, random)
        if s == 0 or tabu[j] > now:
            continue
        alone = change(members, places, cells, rule, deviation, j, s)
        if alone < best:
            best, best_j, best_s, best_i, best_r = alone, j, s, -1, 0
        move(members, y, deviation, j, s)
        for _ in range(_PARTNERS):
            i = partner(random, j, len(y))
            if i == j or tabu[i] > now:
                continue
            r = -s if is_allowed(places, i, y[i] - s) else _toward(places, i, y[i], -sign, random)
            if r == 0:
                continue
            both = alone + change(members, places, cells, rule, deviation, i, r)
            if both < best:
                best, best_j, best_s, best_i, best_r = both, j, s, i, r
        move(members, y, deviation, j, -s)
    return best, best_j, best_s, best_i, best_r


@njit(cache=True, inline="always")
def _next_violated(
    cells: Cells, rule: Rule, deviation: NDArray[Any], violated: NDArray[np.int64], random: Random
) -> Any:
    """A random place in the list whose cell still breaks its limits, or -1."""
    n = len(violated)
    q = below(random, n)
    for _ in range(n):
        if is_violated(cells, rule, deviation, violated[q]):
            return q
        q = q + 1 if q + 1 < n else 0
    return -1


@njit(cache=True, inline="always")
def _direction(cells: Cells, deviation: NDArray[Any], k: int, random: Random) -> int:
    """Where a violated cell should go: back to its limits, or either way from a forbidden value."""
    if deviation[k] > cells[k, HIGH]:
        return -1
    if deviation[k] < cells[k, LOW]:
        return 1
    return 1 if word(random) & np.uint64(1) else -1


@njit(cache=True, inline="always")
def _toward(places: Places, j: int, value: int, sign: int, random: Random) -> Any:
    """A step of the wanted sign: mostly the shortest, now and then across the gap above zero."""
    first = places[j, FIRST]
    if sign > 0:
        if value > 0 and places[j, ZERO] and below(random, 4) == 0:
            return first if is_allowed(places, j, value + first) else 0
        return step_up(places, j, value)
    if value > first and places[j, ZERO] and below(random, 4) == 0:
        wide = value if value < 2 * first else first
        return -wide if is_allowed(places, j, value - wide) else 0
    return step_down(places, j, value)
