"""Limits of published cells: mend what breaks them, and lower them step by step."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.solve.integer.anneal import Stage, restart
from discreet.solve.integer.chains import Compiled
from discreet.solve.integer.kernels import (
    HIGH,
    LOW,
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
    word,
)
from discreet.solve.integer.problem import Problem, Real
from discreet.solve.integer.schedule import SCHEDULE

Limits = tuple[Real, Real]
_TRIES = SCHEDULE.tries


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
        _mend(strict.model, chain, *lists, steps, SCHEDULE.excess * form.unit)
        stage.spend(2 * _TRIES * steps)
    restart(form, chain, best)
    return fewest


def _members_of(
    marked: NDArray[np.bool_], members: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
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
    violated: NDArray[np.int32],
    starts: NDArray[np.int64],
    lists: NDArray[np.int64],
    steps: int,
    temperature: float,
) -> None:
    """Take violated cells at random and make the best of many steps that help them.

    A step of a member is tried alone and with the opposite step of a partner. The best one may
    break other limits: at this temperature violations move about until they meet and vanish.
    """
    members, places, cells, rule = model
    y, _, deviation, _, random = chain
    for _ in range(steps):
        q = below(random, len(violated))
        k = violated[q]
        if breach(cells, rule, k, deviation[k]) == 0.0:
            continue
        is_forbidden = cells[k, LOW] <= deviation[k] <= cells[k, HIGH]
        up = word(random) & np.uint64(1) if is_forbidden else deviation[k] < cells[k, LOW]
        best, one, other, step = np.inf, -1, -1, 0
        for _ in range(_TRIES):
            j = lists[starts[q] + below(random, starts[q + 1] - starts[q])]
            s = step_up(places, j, y[j]) if up else step_down(places, j, y[j])
            if s == 0:
                continue
            rise = change(members, places, cells, rule, deviation, j, s)
            if rise < best:
                best, one, other, step = rise, j, -1, s
            i = partner(random, j, len(y))
            if i == j or not is_allowed(places, i, y[i] - s):
                continue
            move(members, y, deviation, j, s)
            rise += change(members, places, cells, rule, deviation, i, -s)
            move(members, y, deviation, j, -s)
            if rise < best:
                best, one, other, step = rise, j, i, s
        if accepts(best, temperature, random):
            move(members, y, deviation, one, step)
            if other >= 0:
                move(members, y, deviation, other, -step)


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
