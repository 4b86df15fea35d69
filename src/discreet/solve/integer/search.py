"""The search over whole numbers: anneal, mend broken limits, lower maxima, polish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Mask, Real, Whole, Whole32
from discreet.errors import ParameterError
from discreet.progress import available_cores, report
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
from discreet.solve.integer.kernels import PARTNERS, TRIES, SearchChain, mend_cells
from discreet.solve.integer.problem import FoundTable, LatticeProblem, describe

Limits = tuple[Real, Real]

# Shares of the effort at which annealing and mending end. Limits break rarely and late, so they are
# looked at late; the loss that mending costs is then lowered within them, cooler than at first.
_ANNEALING, _MENDING = 0.7, 0.85
_POLISH_HEAT = (0.08, 0.01)
_POLISH_EXCESS = 1e3  # breaking a limit by one is never worth it while polishing
# Look-ups per sweep below which threads cost more than they save.
_SERIAL = 200_000
# Mending. A breach costs so many losses of one published cell that the loss only tells apart steps
# that mend alike; the temperature, in the same unit, lets a violation move to other cells.
_EXCESS, _HEAT = 1e5, 4e5
# Members of violated cells are listed anew after one step for each hundred inner cells: a list goes
# through all cells, and more of them would cost more than mending does.
_RELISTED = 100
_PATIENCE = 400  # rounds of mending without fewer violations before giving up


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
        limited = problem.is_limited
        with _workers(form, len(chains)) as each:
            stage = self._stage(form, 0.0, _ANNEALING if limited else 1.0)
            made = anneal(form, chains, stage, (self.hot, self.cold), self.pairs, each)
            if limited:
                made += sum(each(lambda chain: self._mend(form, chain), chains))
        report("search", 1.0)
        losses = tuple(problem.loss(chain.deviation[:-1]) for chain in chains)

        def rank(c: int) -> tuple[float, ...]:
            """Fewer breaches first, then smaller maxima, then less loss."""
            deviation = chains[c].deviation[:-1]
            broken = float(problem.violations(deviation).sum())
            return (broken, *problem.largest(deviation), losses[c])

        best = min(range(len(chains)), key=rank)
        return describe(
            problem,
            form.full(chains[best].y),
            proposals=made,
            chain_losses=losses,
            is_repeatable=self.seconds is None,
        )

    def _mend(self, form: CompiledProblem, chain: SearchChain) -> int:
        """Repair and polish a chain within its own limits; returns the proposals made."""
        limits, groups = form.problem.limits, form.problem.groups
        is_violated = form.problem.violations(chain.deviation[:-1]).any()
        if groups is None and not is_violated:
            return 0
        stage = self._stage(form, _ANNEALING, _MENDING)
        if is_violated:
            keep_limits(form, chain, limits, stage)
        limits = limits if groups is None else _lower_maxima(form, chain, stage)
        strict = form.with_limits(*limits, _POLISH_EXCESS)
        again = strict.chain(chain.y, chain.random[0])
        last = self._stage(form, _MENDING, 1.0)
        made = anneal(strict, [again], last, _POLISH_HEAT, self.pairs, in_turn)
        overwrite(chain, again)
        return stage.done + made

    def _stage(self, form: CompiledProblem, begin: float, end: float) -> SearchStage:
        share = end - begin
        seconds = None if self.seconds is None else share * self.seconds
        return SearchStage(len(form.model.members), share * self.proposals, seconds, (begin, end))


@contextmanager
def _workers(form: CompiledProblem, chains: int) -> Iterator[Each]:
    """Threads for the chains, when there are several and enough to do; the kernels hold no lock."""
    workers = min(chains, available_cores())
    if workers == 1 or form.model.members.size < _SERIAL:
        yield in_turn
        return
    with ThreadPoolExecutor(max_workers=workers) as pool:

        def each(work: Any, items: Sequence[Any]) -> list[Any]:
            """Threads that report progress to the caller's listener."""
            started = [pool.submit(copy_context().run, work, item) for item in items]
            return [one.result() for one in started]

        yield each


def keep_limits(
    form: CompiledProblem, chain: SearchChain, limits: Limits, stage: SearchStage, until: float = 1
) -> int:
    """Mend violated cells until none is left or patience runs out; the chain ends at the best.

    The effort is that of the stage, up to its fraction `until`. Returns the violations left.
    """
    strict = form.with_limits(*limits, _EXCESS)
    tabu = np.zeros(len(chain.y), dtype=np.int64)
    best, fewest, waited = chain.y.copy(), len(chain.deviation), 0
    while True:
        violated = np.append(form.problem.violations(chain.deviation[:-1], limits), False)
        left, waited = int(violated.sum()), waited + 1
        if left < fewest:
            best, fewest, waited = chain.y.copy(), left, 0
        lists = _members_of(violated, form.model.members)
        if not len(lists[0]) or waited > _PATIENCE or stage.fraction >= until:
            break
        # Four steps for each violated cell, so that most are tried before they are listed anew.
        steps = max(500, 4 * left, len(chain.y) // _RELISTED)
        mend_cells(strict.model, chain, *lists, tabu, steps, _HEAT * form.unit)
        stage.spend(TRIES * (1 + PARTNERS) * steps)
    restart(form, chain, best)
    return fewest


def _members_of(marked: Mask, members: Whole32) -> tuple[Whole32, Whole, Whole]:
    """The marked published cells that have members, where each one's list begins, and the lists."""
    j, t = np.nonzero(marked[members])
    k = members[j, t]
    order = np.argsort(k, kind="stable")
    cells, starts = np.unique(k[order], return_index=True)
    return cells, np.append(starts, len(order)), j[order]


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
            limits = _limits_of_groups(problem, largest)
            if keep_limits(form, chain, limits, stage, (group + 1) / count):
                restart(form, chain, before)
                break
    return _limits_of_groups(problem, np.array(problem.largest(chain.deviation[:-1])))


def _limits_of_groups(problem: LatticeProblem, largest: Real) -> Limits:
    """One limit for the cells of each group, and the limits that were given."""
    low, high = problem.limits
    own = np.append(largest, np.inf)[problem.groups]
    own = own if problem.allowance is None else own + problem.allowance
    return np.maximum(low, -own), np.minimum(high, own)
