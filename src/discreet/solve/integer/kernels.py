"""The compiled search: one inner cell, or a pair of them, at a time; and moves of the cube method.

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

from discreet.arrays import Array, Real, Real32, Unsigned64, Whole, Whole32

FIRST, LAST, STEP, ZERO, WIDTH = range(5)  # columns of `LatticeModel.places`
WEIGHT, LOW, HIGH, VALUE = range(4)  # columns of `LatticeModel.cells`
# A rise of more than thirty temperatures is accepted once in 10¹³ times: it need not be drawn.
_FAR = 30.0
# Half of the partners of a pair are drawn this near in the order of the cells: near cells share
# more published ones, which the pair leaves as they are. The others are drawn anywhere.
_NEAR = 32
# Member cells tried for each violated cell, and compensating cells tried for each of them.
TRIES, PARTNERS = 8, 10
_TENURE = 50  # steps for which a moved cell is left alone, lest it be moved straight back
_EPS = 1e-9  # what a fraction may be off zero and one through rounding errors of the cube's moves


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


@njit(cache=True)
def word(random: Unsigned64) -> Any:
    """The next 64 random bits (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True)
def below(random: Unsigned64, n: int) -> Any:
    """A whole number from 0 to `n - 1`."""
    return np.int64(((word(random) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True)
def uniform(random: Unsigned64) -> Any:
    """A number in [0, 1)."""
    return np.float64(word(random) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def is_allowed(places: Whole32, j: int, value: int) -> Any:
    """Whether an inner cell may take a value."""
    if value == 0 and places[j, ZERO]:
        return True
    first = places[j, FIRST]
    return first <= value <= places[j, LAST] and (value - first) % places[j, STEP] == 0


@njit(cache=True)
def step_up(places: Whole32, j: int, value: int) -> Any:
    """The distance to the next larger allowed value, or 0."""
    first, last = places[j, FIRST], places[j, LAST]
    step = places[j, STEP]
    if value < first:
        return first - value if first <= last else 0
    return step if np.int64(value) + step <= last else 0


@njit(cache=True)
def step_down(places: Whole32, j: int, value: int) -> Any:
    """The distance to the next smaller allowed value, as a negative number, or 0."""
    if value > places[j, FIRST]:
        return -places[j, STEP]
    return -value if places[j, ZERO] else 0


@njit(cache=True)
def power_of(size: float, power: float) -> float:
    """A size to the power of the loss."""
    if power == 2.0:
        return size * size
    return size if power == 1.0 else size**power


@njit(cache=True)
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


@njit(cache=True)
def may_breach(cells: Real32, rule: LossRule, k: int, low: float, high: float) -> Any:
    """Whether deviations between two others can break anything; most cannot, and `breach` costs."""
    if high > cells[k, HIGH] or low < cells[k, LOW]:
        return True
    return rule.blocked > 0 and low + cells[k, VALUE] < rule.blocked


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
        # Of squares the sum of the deviations is enough. It is added up in their own type.
        total = deviation[0] - deviation[0]
        for t in range(members.shape[1]):
            total += deviation[members[j, t]]
        return np.float64(s) * (2.0 * total + np.float64(places[j, WIDTH]) * s)
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


@njit(cache=True)
def move(members: Whole32, y: Whole32, deviation: Array, j: int, s: int) -> None:
    """Add `s` to inner cell `j` and carry it into the deviations."""
    y[j] += s
    for t in range(members.shape[1]):
        deviation[members[j, t]] += s
    deviation[-1] = 0  # the spare cell stands for "no published cell" and never deviates


@njit(cache=True)
def accepts(rise: float, temperature: float, random: Unsigned64) -> bool:
    """The rule of annealing: always downhill, uphill with probability exp(-rise/temperature)."""
    if rise <= 0.0:
        return True
    return rise < _FAR * temperature and uniform(random) < math.exp(-rise / temperature)


@njit(cache=True)
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
def sweep(model: LatticeModel, chain: SearchChain, temperatures: Real, pairs: float) -> None:
    """Propose a step for every inner cell in turn, once for each temperature.

    With probability `pairs` a rejected step is tried again with the opposite step of a partner.
    The best point seen at the end of a sweep is kept.
    """
    members, places, cells, rule = model
    y, best, deviation, energy, random = chain
    n = len(y)
    limit = np.uint64(pairs * 4294967295.0)
    for temperature in temperatures:
        for j in range(n):
            bits = word(random)
            # A step to a neighbouring allowed value, in the direction drawn if there is one.
            if (bits >> np.uint64(63)) != 0:
                s = step_up(places, j, y[j])
                s = s if s != 0 else step_down(places, j, y[j])
            else:
                s = step_down(places, j, y[j])
                s = s if s != 0 else step_up(places, j, y[j])
            rise = change(members, places, cells, rule, deviation, j, s)
            if accepts(rise, temperature, random):
                move(members, y, deviation, j, s)
                energy[0] += rise
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
            else:
                move(members, y, deviation, j, -s)
        if energy[0] < energy[1] - 1e-9:
            energy[1] = energy[0]
            best[:] = y


@njit(cache=True, nogil=True)
def mend_cells(
    model: LatticeModel,
    chain: SearchChain,
    violated: Whole32,
    starts: Whole,
    lists: Whole,
    tabu: Whole,
    steps: int,
    temperature: float,
) -> None:
    """Take violated cells at random and make the best of many steps that help them.

    The best one may break other limits: at this temperature violations move about until they meet
    and vanish. Cells that were just moved are left alone: `tabu` says until which step.
    """
    members, places, cells, rule = model
    y, _, deviation, _, random = chain
    tabu -= steps  # steps are counted from zero in every round
    for now in range(steps):
        q = below(random, len(violated))
        k = violated[q]
        if breach(cells, rule, k, deviation[k]) == 0.0:
            continue
        # A forbidden value within the limits may be left either way; chance decides.
        is_forbidden = cells[k, LOW] <= deviation[k] <= cells[k, HIGH]
        up = below(random, 2) == 1 if is_forbidden else deviation[k] < cells[k, LOW]
        rise, j, s, i, r = _best_step(model, chain, lists[starts[q] : starts[q + 1]], up, tabu, now)
        if accepts(rise, temperature, random):
            move(members, y, deviation, j, s)
            tabu[j] = now + _TENURE
            if i >= 0:
                move(members, y, deviation, i, r)
                tabu[i] = now + _TENURE


@njit(cache=True)
def _best_step(
    model: LatticeModel, chain: SearchChain, candidates: Whole, up: bool, tabu: Whole, now: int
) -> Any:
    """The best of many steps up or down, each alone and with steps of partners the other way.

    Returns the change of the loss, cell and step, and partner (-1: none) and its step.
    """
    members, places, cells, rule = model
    y, _, deviation, _, random = chain
    best, best_j, best_s, best_i, best_r = np.inf, -1, 0, -1, 0
    for _ in range(TRIES):
        j = candidates[below(random, len(candidates))]
        s = _toward(places, j, y[j], up, random)
        if s == 0 or tabu[j] > now:
            continue
        alone = change(members, places, cells, rule, deviation, j, s)
        if alone < best:
            best, best_j, best_s, best_i, best_r = alone, j, s, -1, 0
        move(members, y, deviation, j, s)
        for _ in range(PARTNERS):
            i = partner(random, j, len(y))
            r = -s if is_allowed(places, i, y[i] - s) else _toward(places, i, y[i], not up, random)
            if i != j and r != 0 and tabu[i] <= now:
                both = alone + change(members, places, cells, rule, deviation, i, r)
                if both < best:
                    best, best_j, best_s, best_i, best_r = both, j, s, i, r
        move(members, y, deviation, j, -s)
    return best, best_j, best_s, best_i, best_r


@njit(cache=True)
def _toward(places: Whole32, j: int, value: int, up: bool, random: Unsigned64) -> Any:
    """A step up or down: mostly the shortest, now and then as wide as the gap above zero."""
    first = places[j, FIRST]
    if up:
        if value > 0 and places[j, ZERO] and below(random, 4) == 0:
            return first if is_allowed(places, j, value + first) else 0
        return step_up(places, j, value)
    if value > first and places[j, ZERO] and below(random, 4) == 0:
        wide = value if value < 2 * first else first
        return -wide if is_allowed(places, j, value - wide) else 0
    return step_down(places, j, value)


@njit(cache=True)
def diffuse(members: Whole32, fraction: Real, up: Whole, error: Real, passes: int) -> None:
    """Send each cell up or down, whichever leaves its sums nearer to theirs in squares.

    `error` is what sums are off by the cells decided so far: nothing before the first pass, in
    which every cell is taken to be as it is. In later ones a cell is decided once more.
    """
    n, width = members.shape
    for now in range(passes):
        is_done = now > 0
        for j in range(n):
            own = up[j] - fraction[j] if now > 0 else 0.0
            slope, tables = 0.0, 0
            for t in range(width):
                k = members[j, t]
                if k < len(error) - 1:  # the last one stands for tables without this cell
                    slope, tables = slope + error[k] - own, tables + 1
            # (e + 1 - f)² - (e - f)², summed over the sums.
            new = 1 if 2.0 * slope + tables * (1.0 - 2.0 * fraction[j]) < 0.0 else 0
            step = new - fraction[j] - own
            is_done = is_done and new == up[j]
            up[j] = new
            for t in range(width):
                error[members[j, t]] += step
        if is_done:
            return


@njit(cache=True)
def fly(values: Real, ways: Real, random: Unsigned64) -> None:
    """Move values in [0, 1] at random until no way is left along which those that are whole stay.

    Values are fractions of inner cells, and what sums are above the whole number below them; the
    basis of the ways to move is changed as well.
    """
    # Values that are whole from the start are held first: what cannot move leaves the basis, and
    # the columns of such values need not be carried along.
    left, is_open = len(ways), (values > _EPS) & (values < 1 - _EPS)
    for k in range(len(values)):
        if not is_open[k]:
            left = _hold(ways, left, k)
    moving, ways = values[is_open], ways[:left][:, is_open]
    while left > 0:
        way = ways[left - 1] / np.abs(ways[left - 1]).max()
        length = _length(moving, way, random)
        for k in range(len(moving)):
            if abs(way[k]) > _EPS:
                value = moving[k] + length * way[k]
                moving[k] = 0.0 if value < _EPS else 1.0 if value > 1 - _EPS else value
                if moving[k] in (0.0, 1.0):
                    left = _hold(ways, left, k)
    values[is_open] = moving


@njit(cache=True)
def _hold(ways: Real, left: int, k: int) -> int:
    """Make the first ways a basis of those along which value `k` stays; how many are left."""
    # The largest entry as pivot keeps shares at one or below, so that rounding errors do not grow.
    change = ways[:left, k].copy()
    pivot = np.argmax(np.abs(change)) if left else 0
    if left == 0 or abs(change[pivot]) < _EPS:
        return left
    for b in range(left):
        if b != pivot and change[b] != 0.0:
            share = change[b] / change[pivot]
            for c in range(ways.shape[1]):
                ways[b, c] -= share * ways[pivot, c]
    ways[pivot] = ways[left - 1]
    return left - 1


@njit(cache=True)
def _length(values: Real, way: Real, random: Unsigned64) -> float:
    """How far to go one way or the other until something is whole, each as likely as is fair."""
    up, down = np.inf, np.inf
    for k in range(len(values)):
        value, slope = values[k], way[k]
        if slope > _EPS:
            up, down = min(up, (1 - value) / slope), min(down, value / slope)
        elif slope < -_EPS:
            up, down = min(up, -value / slope), min(down, (value - 1) / slope)
    # Up with probability down/(up + down): the expected move is zero, so no cell is biased.
    return up if uniform(random) * (up + down) < down else -down
