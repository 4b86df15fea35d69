"""The compiled search: one inner cell, or a pair of them, at a time.

A step changes one row of the index array, so it costs as many look-ups as there are tables.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

_FAR = 30.0  # a rise of more than this many temperatures is never accepted
_NEAR = 32  # partners of a pair are drawn this near in the order of the cells, or anywhere


class Model(NamedTuple):
    """A problem in arrays. Published arrays have one entry more, for cells that are in no table.

    `value` are whole targets, needed where published values in 1..blocked-1 are forbidden.
    """

    members: NDArray[np.int32]
    widths: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    step: NDArray[np.int32]
    zero: NDArray[np.bool_]
    weights: NDArray[np.float32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    value: NDArray[np.int32]
    blocked: int
    powers: NDArray[np.float64]
    power: float
    excess: float
    plain: bool


class Chain(NamedTuple):
    """The state of one search: the point, its deviations, the best point, energies, generator."""

    y: NDArray[np.int32]
    best: NDArray[np.int32]
    deviation: NDArray[Any]
    energy: NDArray[np.float64]
    random: NDArray[np.uint64]


@njit(cache=True, inline="always")
def word(random: NDArray[np.uint64]) -> np.uint64:
    """The next 64 random bits (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, inline="always")
def below(random: NDArray[np.uint64], n: int) -> int:
    """A whole number from 0 to `n - 1`."""
    return np.int64(((word(random) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True, inline="always")
def uniform(random: NDArray[np.uint64]) -> float:
    """A number in [0, 1)."""
    return np.float64(word(random) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, inline="always")
def is_allowed(model: Model, j: int, value: int) -> bool:
    """Whether an inner cell may take a value."""
    if value == 0 and model.zero[j]:
        return True
    first = model.first[j]
    return first <= value <= model.last[j] and (value - first) % model.step[j] == 0


@njit(cache=True, inline="always")
def step_up(model: Model, j: int, value: int) -> int:
    """The distance to the next larger allowed value, or 0."""
    if value < model.first[j]:
        return model.first[j] - value if model.first[j] <= model.last[j] else 0
    return model.step[j] if np.int64(value) + model.step[j] <= model.last[j] else 0


@njit(cache=True, inline="always")
def step_down(model: Model, j: int, value: int) -> int:
    """The distance to the next smaller allowed value, as a negative number, or 0."""
    if value > model.first[j]:
        return -model.step[j]
    return -value if model.zero[j] else 0


@njit(cache=True, inline="always")
def over_limits(model: Model, k: int, deviation: float) -> float:
    """What it costs that one published cell breaks its limits or takes a forbidden value."""
    if model.excess == 0.0:
        return 0.0
    over = max(deviation - model.high[k], model.low[k] - deviation, 0.0)
    cost = model.excess * over * over
    if model.blocked > 0:
        value = deviation + model.value[k]
        if 0.0 < value < model.blocked:
            cost += model.excess * min(value, model.blocked - value)
    return cost


@njit(cache=True, inline="always")
def cell_loss(model: Model, k: int, deviation: float) -> float:
    """The loss of one published cell, with what its limits cost.

    Powers other than 1 and 2 are read from a table of whole deviations, with chords between and
    beyond them: raising to a power in this place would slow every other loss down as well.
    """
    size = abs(deviation)
    if model.power == 2.0:
        size *= size
    elif model.power != 1.0:
        left = min(np.int64(size), len(model.powers) - 2)
        slope = model.powers[left + 1] - model.powers[left]
        size = model.powers[left] + (size - left) * slope
    return model.weights[k] * size + over_limits(model, k, deviation)


@njit(cache=True, inline="always")
def change(model: Model, deviation: NDArray[Any], j: int, s: int) -> float:
    """The change of the loss when `s` is added to inner cell `j`."""
    tables = model.members.shape[1]
    if model.plain:
        total = deviation[0] - deviation[0]
        for t in range(tables):
            total += deviation[model.members[j, t]]
        return np.float64(s) * (2.0 * total + np.float64(model.widths[j]) * s)
    difference = 0.0
    for t in range(tables):
        k = model.members[j, t]
        before = np.float64(deviation[k])
        difference += cell_loss(model, k, before + s) - cell_loss(model, k, before)
    return difference


@njit(cache=True, inline="always")
def move(model: Model, chain: Chain, j: int, s: int) -> None:
    """Add `s` to inner cell `j` and carry it into the deviations."""
    chain.y[j] += s
    for t in range(model.members.shape[1]):
        chain.deviation[model.members[j, t]] += s
    chain.deviation[-1] = 0


@njit(cache=True, inline="always")
def accepts(rise: float, temperature: float, random: NDArray[np.uint64]) -> bool:
    """The rule of annealing: always downhill, uphill with probability exp(-rise/temperature)."""
    if rise <= 0.0:
        return True
    return rise < _FAR * temperature and uniform(random) < math.exp(-rise / temperature)


@njit(cache=True, inline="always")
def partner(random: NDArray[np.uint64], j: int, n: int) -> int:
    """Another inner cell: half the time a neighbour in the order of the cells."""
    bits = word(random)
    if bits & np.uint64(1):
        offset = np.int64((bits >> np.uint64(1)) % np.uint64(2 * _NEAR)) - _NEAR
        other = j + offset + (1 if offset >= 0 else 0)
        return other if 0 <= other < n else j
    return np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True)
def energy_of(model: Model, deviation: NDArray[Any]) -> float:
    """The loss of all deviations, with the excess over limits."""
    total = 0.0
    for k in range(len(deviation) - 1):
        total += cell_loss(model, k, np.float64(deviation[k]))
    return total


@njit(cache=True, nogil=True)
def sweep(model: Model, chain: Chain, temperatures: NDArray[np.float64], pairs: float) -> int:
    """Propose a step for every inner cell in turn, once for each temperature.

    With probability `pairs` a rejected step is tried again with the opposite step of a partner.
    The best point seen at the end of a sweep is kept.

    Returns:
      How many proposals were accepted.
    """
    n = len(chain.y)
    accepted = 0
    limit = np.uint64(pairs * 4294967295.0)
    for temperature in temperatures:
        for j in range(n):
            bits = word(chain.random)
            s = _proposal(model, j, chain.y[j], (bits >> np.uint64(63)) != 0)
            rise = change(model, chain.deviation, j, s)
            if accepts(rise, temperature, chain.random):
                move(model, chain, j, s)
                chain.energy[0] += rise
                accepted += 1
            elif (bits & np.uint64(0xFFFFFFFF)) < limit:
                accepted += _pair(model, chain, j, s, rise, temperature)
        if chain.energy[0] < chain.energy[1] - 1e-9:
            chain.energy[1] = chain.energy[0]
            chain.best[:] = chain.y
    return accepted


@njit(cache=True, inline="always")
def _proposal(model: Model, j: int, value: int, up: bool) -> int:
    """A step to a neighbouring allowed value, in the direction asked for if there is one."""
    if up:
        s = step_up(model, j, value)
        return s if s != 0 else step_down(model, j, value)
    s = step_down(model, j, value)
    return s if s != 0 else step_up(model, j, value)


@njit(cache=True)
def _pair(
    model: Model, chain: Chain, j: int, s: int, rise: float, temperature: float
) -> int:
    """Try a rejected step together with the opposite step of a partner."""
    i = partner(chain.random, j, len(chain.y))
    if i == j or not is_allowed(model, i, chain.y[i] - s):
        return 0
    move(model, chain, j, s)
    both = rise + change(model, chain.deviation, i, -s)
    if accepts(both, temperature, chain.random):
        move(model, chain, i, -s)
        chain.energy[0] += both
        return 1
    move(model, chain, j, -s)
    return 0
