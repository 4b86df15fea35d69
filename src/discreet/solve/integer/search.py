"""The search over whole numbers: anneal, mend broken limits, lower maxima, polish."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from discreet.arrays import Mask, Real, Unsigned64, Whole, Whole32
from discreet.errors import ParameterError
from discreet.progress import report
from discreet.solve.integer.annealing import (
    CompiledProblem,
    Each,
    SearchStage,
    anneal,
    compile_problem,
    in_turn,
    overwrite,
    restart,
)
from discreet.solve.integer.kernels import (
    FIRST,
    HIGH,
    LOW,
    ZERO,
    LatticeModel,
    SearchChain,
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
from discreet.solve.integer.problem import FoundTable, LatticeProblem, describe
from discreet.solve.integer.schedule import SCHEDULE


@dataclass(frozen=True)
class LatticeSearch:
    r"""Annealing over single cells and compensated pairs, with repair of the largest deviations.

    A step on one inner cell changes as many deviations as there are tables, whatever the size of
    the table. The temperature falls geometrically; then violated limits are mended one published
    cell at a time, and the loss is lowered once more without breaking the limits.

    Promise: the result lies in the domain; its deviations are recomputed from the inner cells;
    the same seed gives the same result wherever the effort is counted in proposals.
    Cost: proposals × tables look-ups; memory 4 bytes × inner cells × tables.

    Args:
      proposals: Effort of each chain. At least 10, at most 4,000 sweeps over the cells are made.
      seconds: Search for this long instead; the result then depends on the machine.
      chains: Independent searches; the best is kept.
      hot: First temperature, in losses of a typical smallest step.
      cold: Last temperature.
      pairs: Share of rejected steps that are tried again together with an opposite step.
    """

    proposals: float = 2e8
    seconds: float | None = None
    chains: int = 2
    hot: float = 1.5
    cold: float = 0.02
    pairs: float = 0.1

    def __post_init__(self) -> None:
        if self.proposals < 1 or self.chains < 1:
            raise ParameterError("a search needs at least one proposal and one chain.")
        if self.seconds is not None and not self.seconds > 0:
            raise ParameterError(f"seconds must be positive, got {self.seconds}.")
        if not 0 < self.cold <= self.hot:
            raise ParameterError(f"0 < cold <= hot is needed, got {self.cold} and {self.hot}.")
        if not 0 <= self.pairs <= 1:
            raise ParameterError(f"pairs must lie in [0, 1], got {self.pairs}.")

    def __call__(
        self, problem: LatticeProblem, start: Whole, *, rng: np.random.Generator
    ) -> FoundTable:
        """Search from a feasible start."""
        problem.domain.require(start)
        if not len(problem.rows):
            return describe(problem, start, is_optimal=True)
        form = compile_problem(problem)
        seeds = rng.integers(2**63, size=self.chains).astype(np.uint64)
        first = start[problem.rows].astype(np.int32)
        chains = [form.chain(first, seed) for seed in seeds]
        made = self._run(form, chains)
        losses = tuple(problem.loss(chain.deviation[:-1]) for chain in chains)
        best = min(range(len(chains)), key=lambda c: _rank_of_chain(problem, chains[c], losses[c]))
        return describe(
            problem,
            form.full(chains[best].y),
            proposals=made,
            chain_losses=losses,
            is_repeatable=self.seconds is None,
        )

    def _run(self, form: CompiledProblem, chains: Sequence[SearchChain]) -> int:
        """All stages; returns the proposals made by all chains."""
        limited = form.problem.is_limited
        with _workers(form, len(chains)) as each:
            first = self._stage(form, 0.0, SCHEDULE.annealing if limited else 1.0)
            made = anneal(form, chains, first, (self.hot, self.cold), self.pairs, each)
            if limited:
                made += sum(each(lambda chain: self._mend(form, chain), chains))
        report("search", 1.0)
        return made

    def _mend(self, form: CompiledProblem, chain: SearchChain) -> int:
        """Repair and polish a chain within its own limits; returns the proposals made."""
        if form.problem.groups is None and not is_violated(form.problem, chain):
            return 0
        stage = self._stage(form, SCHEDULE.annealing, SCHEDULE.mending)
        strict = form.with_limits(*mend_limits(form, chain, stage), SCHEDULE.polish_excess)
        again = strict.chain(chain.y, chain.random[0])
        last = self._stage(form, SCHEDULE.mending, 1.0)
        made = anneal(strict, [again], last, SCHEDULE.polish_heat, self.pairs, in_turn)
        overwrite(chain, again)
        return stage.done + made

    def _stage(self, form: CompiledProblem, begin: float, end: float) -> SearchStage:
        share = end - begin
        seconds = None if self.seconds is None else share * self.seconds
        return SearchStage(len(form.model.members), share * self.proposals, seconds, (begin, end))


def _rank_of_chain(problem: LatticeProblem, chain: SearchChain, loss: float) -> tuple[float, ...]:
    """What makes one chain better than another: fewer breaches, smaller maxima, less loss."""
    deviation = chain.deviation[:-1]
    return (float(problem.violations(deviation).sum()), *problem.largest(deviation), loss)


@contextmanager
def _workers(form: CompiledProblem, chains: int) -> Iterator[Each]:
    """Threads for the chains, when there are several and enough to do; the kernels hold no lock."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if min(chains, cores) == 1 or form.model.members.size < SCHEDULE.serial:
        yield in_turn
        return
    with ThreadPoolExecutor(max_workers=min(chains, cores)) as pool:

        def each(work: Any, items: Sequence[Any]) -> list[Any]:
            """Threads that report progress to the caller's listener."""
            started = [pool.submit(copy_context().run, work, item) for item in items]
            return [one.result() for one in started]

        yield each


Limits = tuple[Real, Real]
_TRIES, _PARTNERS, _TENURE = SCHEDULE.tries, SCHEDULE.partners, SCHEDULE.tenure


def mend_limits(form: CompiledProblem, chain: SearchChain, stage: SearchStage) -> Limits:
    """Lower and upper limits of the deviations that a chain keeps, or nearly, after repair."""
    problem = form.problem
    if problem.groups is None or is_violated(problem, chain):
        keep_limits(form, chain, problem.limits, stage)
    return problem.limits if problem.groups is None else _lower_maxima(form, chain, stage)


def is_violated(problem: LatticeProblem, chain: SearchChain) -> bool:
    """Whether a chain breaks limits, or takes forbidden values."""
    return bool(problem.violations(chain.deviation[:-1]).any())


def keep_limits(
    form: CompiledProblem,
    chain: SearchChain,
    limits: Limits,
    stage: SearchStage,
    until: float = 1.0,
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
        _mend_cells(strict.model, chain, *lists, tabu, steps, SCHEDULE.heat * form.unit)
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
def _mend_cells(
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
    model: LatticeModel,
    chain: SearchChain,
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


def _lower_maxima(form: CompiledProblem, chain: SearchChain, stage: SearchStage) -> Limits:
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
            if keep_limits(
                form, chain, _limits_of_groups(problem, largest), stage, (group + 1) / count
            ):
                restart(form, chain, before)
                break
    return _limits_of_groups(problem, np.array(problem.largest(chain.deviation[:-1])))


def _limits_of_groups(problem: LatticeProblem, largest: Real) -> Limits:
    """One limit for the cells of each group, and the limits that were given."""
    low, high = problem.limits
    own = np.append(largest, np.inf)[problem.groups]
    return np.maximum(low, -own), np.minimum(high, own)
