"""Limits of published cells: mend what breaks them, and lower them step by step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.solve.integer.anneal import Stage, restart
from discreet.solve.integer.chains import Compiled
from discreet.solve.integer.kernels import Chain
from discreet.solve.integer.problem import Problem, Real
from discreet.solve.integer.repair_kernels import EVALUATIONS, collect, repair, violated_cells
from discreet.solve.integer.schedule import SCHEDULE

Limits = tuple[Real, Real]


def mended(form: Compiled, chain: Chain, stage: Stage) -> Limits:
    """Lower and upper limits of the deviations that a chain keeps, or nearly, after repair."""
    problem = form.problem
    if problem.groups is None or is_violated(problem, chain):
        keep_limits(form, chain, problem.limits, stage)
    return problem.limits if problem.groups is None else _lowered(form, chain, stage)


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
    best, fewest, waited, clock = chain.y.copy(), -1, 0, 0
    while stage.fraction < until or fewest < 0:
        violated = violated_cells(strict.model.cells, strict.model.rule, chain.deviation)
        waited += 1
        if fewest < 0 or len(violated) < fewest:
            best, fewest, waited = chain.y.copy(), len(violated), 0
        if fewest == 0 or waited > SCHEDULE.patience:
            break
        clock = _round(strict, chain, violated[: SCHEDULE.slots], tabu, clock, stage)
    restart(form, chain, best)
    return max(fewest, 0)


def _round(
    form: Compiled,
    chain: Chain,
    violated: NDArray[np.int64],
    tabu: NDArray[np.int64],
    clock: int,
    stage: Stage,
) -> int:
    """List the members of the violated cells and mend for a while."""
    slot = np.full(len(chain.deviation), -1, dtype=np.int32)
    slot[violated] = np.arange(len(violated), dtype=np.int32)
    lists = np.empty((len(violated), SCHEDULE.room), dtype=np.int32)
    counts = np.zeros(len(violated), dtype=np.int64)
    collect(form.model.members, slot, lists, counts, chain.random)
    reachable = counts > 0
    if not reachable.any():
        stage.spend(stage.sweeps * stage.cells)
        return clock
    iterations = max(500, 4 * len(violated))
    after = repair(
        form.model,
        chain,
        violated[reachable],
        lists[reachable],
        counts[reachable],
        tabu,
        clock,
        iterations,
        SCHEDULE.heat * form.unit,
        SCHEDULE.tenure,
    )
    stage.spend(EVALUATIONS * iterations)
    return after


def _lowered(form: Compiled, chain: Chain, stage: Stage) -> Limits:
    """Lower the largest deviation of each group in turn, as far as the repair can follow.

    While one group is lowered those after it may grow by one; their turn comes. Limits that the
    problem gives are kept throughout.
    """
    problem = form.problem
    count = len(problem.largest(chain.deviation[:-1]))
    for group in range(count):
        until = (group + 1) / count
        while stage.fraction < until:
            largest = np.array(problem.largest(chain.deviation[:-1]))
            if largest[group] - 1 < problem.goal(group):
                break
            largest[group] -= 1
            largest[group + 1 :] += 1
            if not _reaches(form, chain, _limits(problem, largest), stage, until):
                break
    return _limits(problem, np.array(problem.largest(chain.deviation[:-1])))


def _reaches(form: Compiled, chain: Chain, goal: Limits, stage: Stage, until: float) -> bool:
    """Try to keep the limits; on failure the chain stays where it was."""
    before = chain.y.copy()
    if keep_limits(form, chain, goal, stage, until) == 0:
        return True
    restart(form, chain, before)
    return False


def _limits(problem: Problem, largest: Real) -> Limits:
    """One limit for the cells of each group, and the limits that were given."""
    low, high = problem.limits
    own = np.append(largest, np.inf)[problem.groups]
    return np.maximum(low, -own), np.minimum(high, own)


def is_violated(problem: Problem, chain: Chain) -> bool:
    """Whether a chain breaks limits, or takes forbidden values."""
    return bool(problem.violations(chain.deviation[:-1]).any())
