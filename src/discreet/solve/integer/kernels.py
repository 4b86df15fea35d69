"""The compiled search: one inner cell, or a pair of them, at a time.

A step changes one row of the index array, so it costs as many look-ups as there are tables. The
functions take arrays, not the tuples that hold them: reading an array from a tuple counts
references, which would cost more than the work itself. (`Any` stands for a whole number whose
width the compiler chooses.)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from discreet.arrays import Array, Real, Real32, Unsigned64, Whole32
from discreet.solve.integer.schedule import SCHEDULE

FIRST, LAST, STEP, ZERO, WIDTH = range(5)  # columns of `Model.places`
WEIGHT, LOW, HIGH, VALUE = range(4)  # columns of `Model.cells`
_FAR, _NEAR = SCHEDULE.far, SCHEDULE.near


class LossRule(NamedTuple):
    """How deviations are judged.

    `plain` is the sum of squares without weights and limits. Breaking a limit by one, or being
    one away from an allowed value, costs `excess`; values in 1..blocked-1 are forbidden.
    """

    power: float
    excess: float
    blocked: int
    plain: bool


class LatticeModel(NamedTuple):
    """A problem in arrays.

    `members` lists the published cells of each inner cell. A row of `places` holds what belongs
    to an inner cell (its domain, and how many published cells it has), a row of `cells` what
    belongs to a published cell (its weight, its limits, and its target where values are
    forbidden). There is one published cell more, for tables in which an inner cell has none.
    """

    members: Whole32
    places: Whole32
    cells: Real32
    rule: LossRule


class SearchChain(NamedTuple):
    """The state of one search: the point, the best one, deviations, energies, generator."""

    y: Whole32
    best: Whole32
    deviation: Array
    energy: Real
    random: Unsigned64


@njit(cache=True, inline="always")
def word(random: Unsigned64) -> Any:
    """The next 64 random bits (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, inline="always")
def below(random: Unsigned64, n: int) -> Any:
    """A whole number from 0 to `n - 1`."""
    return np.int64(((word(random) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True, inline="always")
def uniform(random: Unsigned64) -> Any:
    """A number in [0, 1)."""
    return np.float64(word(random) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, inline="always")
def is_allowed(places: Whole32, j: int, value: int) -> Any:
    """Whether an inner cell may take a value."""
    if value == 0 and places[j, ZERO]:
        return True
    first = places[j, FIRST]
    return first <= value <= places[j, LAST] and (value - first) % places[j, STEP] == 0


@njit(cache=True, inline="always")
def step_up(places: Whole32, j: int, value: int) -> Any:
    """The distance to the next larger allowed value, or 0."""
    first, last = places[j, FIRST], places[j, LAST]
    step = places[j, STEP]
    if value < first:
        return first - value if first <= last else 0
    return step if np.int64(value) + step <= last else 0


@njit(cache=True, inline="always")
def step_down(places: Whole32, j: int, value: int) -> Any:
    """The distance to the next smaller allowed value, as a negative number, or 0."""
    if value > places[j, FIRST]:
        return -places[j, STEP]
    return -value if places[j, ZERO] else 0


@njit(cache=True, inline="always")
def power_of(size: float, power: float) -> float:
    """A size to the power of the loss."""
    if power == 2.0:
        return size * size
    return size if power == 1.0 else size**power


@njit(cache=True, inline="always")
def breach(cells: Real32, rule: LossRule, k: int, deviation: float) -> float:
    """How far one published cell breaks its limits, or lies from the nearest allowed value."""
    cost = 0.0
    if deviation > cells[k, HIGH]:
        cost = (deviation - cells[k, HIGH]) ** 2
    elif deviation < cells[k, LOW]:
        cost = (deviation - cells[k, LOW]) ** 2
    if rule.blocked > 0:
        value = deviation + cells[k, VALUE]
        if 0.0 < value < rule.blocked:
            cost += min(value, rule.blocked - value)
    return cost


@njit(cache=True, inline="always")
def may_breach(cells: Real32, rule: LossRule, k: int, low: float, high: float) -> Any:
    """Whether deviations between two others can break anything; most cannot, and `breach` costs."""
    if high > cells[k, HIGH] or low < cells[k, LOW]:
        return True
    return rule.blocked > 0 and low + cells[k, VALUE] < rule.blocked


@njit(cache=True, inline="always")
def change_of_squares(members: Whole32, places: Whole32, deviation: Array, j: int, s: int) -> Any:
    """The change of the sum of squares when `s` is added to inner cell `j`."""
    total = deviation[0] - deviation[0]
    for t in range(members.shape[1]):
        total += deviation[members[j, t]]
    return np.float64(s) * (2.0 * total + np.float64(places[j, WIDTH]) * s)


@njit(cache=True, inline="always")
def change(
    members: Whole32,
    places: Whole32,
    cells: Real32,
    rule: LossRule,
    deviation: Array,
    j: int,
    s: int,
) -> Any:
    """The change of the loss when `s` is added to inner cell `j`."""
    if rule.plain:
        return change_of_squares(members, places, deviation, j, s)
    loss, breaches = 0.0, 0.0
    for t in range(members.shape[1]):
        k = members[j, t]
        before = np.float64(deviation[k])
        after = before + s
        loss += cells[k, WEIGHT] * (
            power_of(abs(after), rule.power) - power_of(abs(before), rule.power)
        )
        if rule.excess > 0.0 and may_breach(cells, rule, k, min(before, after), max(before, after)):
            breaches += breach(cells, rule, k, after) - breach(cells, rule, k, before)
    return loss + rule.excess * breaches


@njit(cache=True, inline="always")
def move(members: Whole32, y: Whole32, deviation: Array, j: int, s: int) -> None:
    """Add `s` to inner cell `j` and carry it into the deviations."""
    y[j] += s
    for t in range(members.shape[1]):
        deviation[members[j, t]] += s
    deviation[-1] = 0


@njit(cache=True, inline="always")
def accepts(rise: float, temperature: float, random: Unsigned64) -> bool:
    """The rule of annealing: always downhill, uphill with probability exp(-rise/temperature)."""
    if rise <= 0.0:
        return True
    return rise < _FAR * temperature and uniform(random) < math.exp(-rise / temperature)


@njit(cache=True, inline="always")
def partner(random: Unsigned64, j: int, n: int) -> Any:
    """Another inner cell: half the time a neighbour in the order of the cells."""
    bits = word(random)
    if bits & np.uint64(1):
        offset = np.int64((bits >> np.uint64(1)) % np.uint64(2 * _NEAR)) - _NEAR
        other = j + offset + (1 if offset >= 0 else 0)
        return other if 0 <= other < n else j
    return np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True)
def energy_of(cells: Real32, rule: LossRule, deviation: Array) -> float:
    """The loss of all deviations, with what broken limits and forbidden values cost."""
    total = 0.0
    for k in range(len(deviation) - 1):
        d = np.float64(deviation[k])
        total += cells[k, WEIGHT] * power_of(abs(d), rule.power)
        if rule.excess > 0.0:
            total += rule.excess * breach(cells, rule, k, d)
    return total


@njit(cache=True, nogil=True)
def sweep(model: LatticeModel, chain: SearchChain, temperatures: Real, pairs: float) -> int:
    """Propose a step for every inner cell in turn, once for each temperature.

    With probability `pairs` a rejected step is tried again with the opposite step of a partner.
    The best point seen at the end of a sweep is kept.

    Returns:
      How many proposals were accepted.
    """
    members, places, cells, rule = model
    y, best, deviation, energy, random = chain
    n, accepted = len(y), 0
    limit = np.uint64(pairs * 4294967295.0)
    for temperature in temperatures:
        for j in range(n):
            bits = word(random)
            s = _proposal(places, j, y[j], (bits >> np.uint64(63)) != 0)
            rise = change(members, places, cells, rule, deviation, j, s)
            if accepts(rise, temperature, random):
                move(members, y, deviation, j, s)
                energy[0] += rise
                accepted += 1
                continue
            if (bits & np.uint64(0xFFFFFFFF)) >= limit:
                continue
            i = partner(random, j, n)
            if i == j or not is_allowed(places, i, y[i] - s):
                continue
            move(members, y, deviation, j, s)
            rise += change(members, places, cells, rule, deviation, i, -s)
            if accepts(rise, temperature, random):
                move(members, y, deviation, i, -s)
                energy[0] += rise
                accepted += 1
            else:
                move(members, y, deviation, j, -s)
        if energy[0] < energy[1] - 1e-9:
            energy[1] = energy[0]
            best[:] = y
    return accepted


@njit(cache=True, inline="always")
def _proposal(places: Whole32, j: int, value: int, up: bool) -> Any:
    """A step to a neighbouring allowed value, in the direction asked for if there is one."""
    if up:
        s = step_up(places, j, value)
        return s if s != 0 else step_down(places, j, value)
    s = step_down(places, j, value)
    return s if s != 0 else step_up(places, j, value)
