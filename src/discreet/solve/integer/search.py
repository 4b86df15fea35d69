"""The search itself: anneal, repair the largest deviations, polish, and report honestly."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass

import numpy as np

from discreet.errors import ParameterError
from discreet.progress import report
from discreet.solve.integer.anneal import Stage, anneal, overwrite
from discreet.solve.integer.chains import Compiled, compiled
from discreet.solve.integer.domain import Whole
from discreet.solve.integer.kernels import Chain
from discreet.solve.integer.limits import is_violated, mended
from discreet.solve.integer.problem import Found, Problem, describe
from discreet.solve.integer.schedule import SCHEDULE


@dataclass(frozen=True)
class Search:
    r"""Annealing over single cells and compensated pairs, with repair of the largest deviations.

    A step on one inner cell changes as many deviations as there are tables, whatever the size of
    the table. The temperature falls geometrically; then violated limits are mended one published
    cell at a time (the moved cells are left alone for a while), and the loss is lowered once
    more without breaking the limits.

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

    def __call__(self, problem: Problem, start: Whole, *, rng: np.random.Generator) -> Found:
        """Search from a feasible start."""
        begin = time.monotonic()
        problem.domain.require(start)
        if not len(problem.rows):
            return describe(problem, start, is_optimal=True)
        form = compiled(problem)
        seeds = rng.integers(2**63, size=self.chains).astype(np.uint64)
        first = start[problem.rows].astype(np.int32)
        chains = [form.chain(first, seed) for seed in seeds]
        made = self._run(form, chains)
        losses = tuple(problem.loss(chain.deviation[:-1]) for chain in chains)
        best = min(range(len(chains)), key=lambda c: _rank(problem, chains[c], losses[c]))
        return describe(
            problem,
            form.full(chains[best].y),
            proposals=made,
            seconds=time.monotonic() - begin,
            chain_losses=losses,
            is_repeatable=self.seconds is None,
        )

    def _run(self, form: Compiled, chains: Sequence[Chain]) -> int:
        """All stages of all chains; returns the proposals made by all of them."""
        cores = _cores()
        if min(len(chains), cores) == 1 or form.model.members.size < SCHEDULE.serial:
            made = [self._finish(form, chain, len(chains)) for chain in chains]
        else:
            with ThreadPoolExecutor(max_workers=min(len(chains), cores)) as pool:
                started = [
                    pool.submit(copy_context().run, self._finish, form, chain, 1)
                    for chain in chains
                ]
                made = [one.result() for one in started]
        report("search", 1.0)
        return sum(made)

    def _finish(self, form: Compiled, chain: Chain, in_turn: int) -> int:
        """All stages of one chain, of which so many take turns; the kernels hold no lock."""
        if not form.problem.is_limited:
            first = self._stage(form, 0.0, 1.0, in_turn)
            return anneal(form, chain, first, (self.hot, self.cold), self.pairs)
        first = self._stage(form, 0.0, SCHEDULE.annealing, in_turn)
        made = anneal(form, chain, first, (self.hot, self.cold), self.pairs)
        if form.problem.groups is None and not is_violated(form.problem, chain):
            return made
        second = self._stage(form, SCHEDULE.annealing, SCHEDULE.mending, in_turn)
        strict = form.with_limits(*mended(form, chain, second), SCHEDULE.polish_excess)
        last = self._stage(form, SCHEDULE.mending, 1.0, in_turn)
        again = strict.chain(chain.y, chain.random[0])
        made += second.done + anneal(strict, again, last, SCHEDULE.polish_heat, self.pairs)
        overwrite(chain, again)
        return made

    def _stage(self, form: Compiled, begin: float, end: float, in_turn: int) -> Stage:
        share = end - begin
        seconds = None if self.seconds is None else share * self.seconds / in_turn
        return Stage(len(form.model.members), share * self.proposals, seconds, (begin, end))


def _rank(problem: Problem, chain: Chain, loss: float) -> tuple[float, ...]:
    """What makes one chain better than another: fewer breaches, smaller maxima, less loss."""
    deviation = chain.deviation[:-1]
    return (float(problem.violations(deviation).sum()), *problem.largest(deviation), loss)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
