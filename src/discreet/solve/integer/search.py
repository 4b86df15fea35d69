"""The search itself: anneal, repair the largest deviations, polish, and report honestly."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Whole
from discreet.errors import ParameterError
from discreet.progress import report
from discreet.solve.integer.anneal import Each, Stage, anneal, in_turn, overwrite
from discreet.solve.integer.chains import Compiled, compiled
from discreet.solve.integer.kernels import Chain
from discreet.solve.integer.limits import is_violated, mended
from discreet.solve.integer.problem import Found, Problem, describe
from discreet.solve.integer.schedule import SCHEDULE


@dataclass(frozen=True)
class Search:
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

    def __call__(self, problem: Problem, start: Whole, *, rng: np.random.Generator) -> Found:
        """Search from a feasible start."""
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
            chain_losses=losses,
            is_repeatable=self.seconds is None,
        )

    def _run(self, form: Compiled, chains: Sequence[Chain]) -> int:
        """All stages; returns the proposals made by all chains."""
        limited = form.problem.is_limited
        with _workers(form, len(chains)) as each:
            first = self._stage(form, 0.0, SCHEDULE.annealing if limited else 1.0)
            made = anneal(form, chains, first, (self.hot, self.cold), self.pairs, each)
            if limited:
                made += sum(each(lambda chain: self._mend(form, chain), chains))
        report("search", 1.0)
        return made

    def _mend(self, form: Compiled, chain: Chain) -> int:
        """Repair and polish a chain within its own limits; returns the proposals made."""
        if form.problem.groups is None and not is_violated(form.problem, chain):
            return 0
        stage = self._stage(form, SCHEDULE.annealing, SCHEDULE.mending)
        strict = form.with_limits(*mended(form, chain, stage), SCHEDULE.polish_excess)
        again = strict.chain(chain.y, chain.random[0])
        last = self._stage(form, SCHEDULE.mending, 1.0)
        made = anneal(strict, [again], last, SCHEDULE.polish_heat, self.pairs, in_turn)
        overwrite(chain, again)
        return stage.done + made

    def _stage(self, form: Compiled, begin: float, end: float) -> Stage:
        share = end - begin
        seconds = None if self.seconds is None else share * self.seconds
        return Stage(len(form.model.members), share * self.proposals, seconds, (begin, end))


def _rank(problem: Problem, chain: Chain, loss: float) -> tuple[float, ...]:
    """What makes one chain better than another: fewer breaches, smaller maxima, less loss."""
    deviation = chain.deviation[:-1]
    return (float(problem.violations(deviation).sum()), *problem.largest(deviation), loss)


@contextmanager
def _workers(form: Compiled, chains: int) -> Iterator[Each]:
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
