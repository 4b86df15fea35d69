"""Limits of published cells: mend what breaks them, and lower them step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from discreet.arrays import Mask, Real, Unsigned64, Whole, Whole32
from discreet.solve.integer.anneal import Stage, restart
from discreet.solve.integer.chains import Compiled
from discreet.solve.integer.kernels import (
    FIRST,
    HIGH,
    LOW,
    ZERO,
    Chain,
    Model,
    accepts,
    below,
    breach,
    change,
    is_allowed,
    move,
    partner,
    step_down,
    step_up,
)
from discreet.solve.integer.problem import Problem
from discreet.solve.integer.schedule import SCHEDULE

Limits = tuple[Real, Real]
_TRIES, _PARTNERS, _TENURE = SCHEDULE.tries, SCHEDULE.partners, SCHEDULE.tenure


def mended(form: Compiled, chain: Chain, stage: Stage) -> Limits:
    """Lower and upper limits of the deviations that a chain keeps, or nearly, after repair."""
    problem = form.problem
    if problem.groups is None or is_violated(problem, chain):
        keep_limits(form, chain, problem.limits, stage)
    return problem.limits if problem.groups is None else _lowered(form, chain, stage)


def is_violated(problem: Problem, chain: Chain) -> bool:
    """Whether a chain breaks limits, or takes forbidden values."""
    return bool(problem.violations(chain.deviation[:-1]).any())


def keep_limits(
    form: Compiled, chain: Chain, limits: Limits, stage: Stage, until: float = 1.0
) -> int:
    """Mend violated cells until none is left or patience runs out; the chain ends at the best.

    Args:
      form: The compiled problem.
      chain: The chain to mend.
      limits: What its deviations should keep.
      stage: The effort that may be spent.
      until: The fraction of the stage at which to stop.

    Returns:
      How many violations are left.
    """
    strict = form.with_limits(*limits, SCHEDULE.excess)
    tabu = np.zeros(len(chain.y), dtype=np.int64)
    best, fewest, waited = chain.y.copy(), len(chain.deviation), 0
    while True:
        violated = np.append(form.problem.violations(chain.deviation[:-1], limits), False)
        left, waited = int(violated.sum()), waited + 1
        if left < fewest:
            best, fewest, waited = chain.y.copy(), left, 0
        lists = _members_of(violated, form.model.members)
        if not len(lists[0]) or waited > SCHEDULE.patience or stage.fraction >= until:
            break
        steps = max(500, 4 * left, len(chain.y) // SCHEDULE.relisted)
        _mend(strict.model, chain, *lists, tabu, steps, SCHEDULE.heat * form.unit)
        stage.spend(_TRIES * (1 + _PARTNERS) * steps)
    restart(form, chain, best)
    return fewest


def _members_of(marked: Mask, members: Whole32) -> tuple[Whole32, Whole, Whole]:
    """The marked published cells that have members, where each one's list begins, and the lists."""
    j, t = np.nonzero(marked[members])
    k = members[j, t]
    order = np.argsort(k, kind="stable")
    cells, starts = np.unique(k[order], return_index=True)
    return cells, np.append(starts, len(order)), j[order]


@njit(cache=True, nogil=True)
def _mend(
    model: Model,
    chain: Chain,
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
    tabu -= steps
    for now in range(steps):
        q = below(random, len(violated))
        k = violated[q]
        if breach(cells, rule, k, deviation[k]) == 0.0:
            continue
        is_forbidden = cells[k, LOW] <= deviation[k] <= cells[k, HIGH]
        up = below(random, 2) == 1 if is_forbidden else deviation[k] < cells[k, LOW]
        rise, j, s, i, r = _best_step(model, chain, lists[starts[q] : starts[q + 1]], up, tabu, now)
        if accepts(rise, temperature, random):
            move(members, y, deviation, j, s)
            tabu[j] = now + _TENURE
            if i >= 0:
                move(members, y, deviation, i, r)
                tabu[i] = now + _TENURE


@njit(cache=True, inline="always")
def _best_step(
    model: Model,
    chain: Chain,
    candidates: Whole,
    up: bool,
    tabu: Whole,
    now: int,
) -> Any:
    """The best of many steps up or down, each alone and with steps of partners the other way.

    Returns:
      The change of the loss, cell and step, and partner (-1: none) and its step.
    """
    members, places, cells, rule = model
    y, _, deviation, _, random = chain
    best, best_j, best_s, best_i, best_r = np.inf, -1, 0, -1, 0
    for _ in range(_TRIES):
        j = candidates[below(random, len(candidates))]
        s = _toward(places, j, y[j], up, random)
        if s == 0 or tabu[j] > now:
            continue
        alone = change(members, places, cells, rule, deviation, j, s)
        if alone < best:
            best, best_j, best_s, best_i, best_r = alone, j, s, -1, 0
        move(members, y, deviation, j, s)
        for _ in range(_PARTNERS):
            i = partner(random, j, len(y))
            r = -s if is_allowed(places, i, y[i] - s) else _toward(places, i, y[i], not up, random)
            if i != j and r != 0 and tabu[i] <= now:
                both = alone + change(members, places, cells, rule, deviation, i, r)
                if both < best:
                    best, best_j, best_s, best_i, best_r = both, j, s, i, r
        move(members, y, deviation, j, -s)
    return best, best_j, best_s, best_i, best_r


@njit(cache=True, inline="always")
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


def _lowered(form: Compiled, chain: Chain, stage: Stage) -> Limits:
    """Lower the largest deviation of each group in turn, as far as the repair can follow.

    While one group is lowered those after it may grow by one; their turn comes. Limits that the
    problem gives are kept throughout.
    """
    problem = form.problem
    count = len(problem.largest(chain.deviation[:-1]))
    for group in range(count):
        while True:
            largest, before = np.array(problem.largest(chain.deviation[:-1])), chain.y.copy()
            if largest[group] - 1 < problem.goal(group):
                break
            largest[group] -= 1
            largest[group + 1 :] += 1
            if keep_limits(form, chain, _limits(problem, largest), stage, (group + 1) / count):
                restart(form, chain, before)
                break
    return _limits(problem, np.array(problem.largest(chain.deviation[:-1])))


def _limits(problem: Problem, largest: Real) -> Limits:
    """One limit for the cells of each group, and the limits that were given."""
    low, high = problem.limits
    own = np.append(largest, np.inf)[problem.groups]
    return np.maximum(low, -own), np.minimum(high, own)
