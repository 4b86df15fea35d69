"""The search itself: anneal, repair the largest deviations, polish, and report honestly."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import ParameterError
from discreet.progress import report
from discreet.solve.integer.anneal import anneal, overwrite
from discreet.solve.integer.bound import lower_bound
from discreet.solve.integer.chains import Compiled, compiled
from discreet.solve.integer.domain import Whole
from discreet.solve.integer.effort import Stage
from discreet.solve.integer.found import Found, describe
from discreet.solve.integer.kernels import Chain
from discreet.solve.integer.problem import Problem
from discreet.solve.integer.tighten import Limits, keep_limits, lower_limits

_POLISH_HEAT = (0.08, 0.01)
_POLISH_EXCESS = 1e3
_SERIAL = 200_000  # below this many look-ups per sweep, threads cost more than they save


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
      bounded: Whether to compute a lower bound on the loss.
    """

    proposals: float = 2e8
    seconds: float | None = None
    chains: int = 2
    hot: float = 1.5
    cold: float = 0.02
    pairs: float = 0.1
    bounded: bool = True

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
        bound = lower_bound(problem, start) if self.bounded else 0.0
        if not len(problem.rows):
            return describe(problem, start, bound, is_optimal=True)
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
            bound,
            proposals=made,
            seconds=time.monotonic() - begin,
            chain_losses=losses,
            is_repeatable=self.seconds is None,
        )

    def _run(self, form: Compiled, chains: Sequence[Chain]) -> int:
        """All stages; returns the proposals made by all chains."""
        limited = form.problem.is_limited
        heat = (self.hot, self.cold)
        with _workers(form, len(chains)) as pool:
            run = map_serially if pool is None else _in_threads(pool)
            first = self._stage(form, 0.0, 0.7 if limited else 1.0)
            made = self.chains * anneal(form, chains, first, heat, self.pairs, run)
            if limited:
                made += self._mend(form, chains, run)
        report("search", 1.0)
        return made

    def _mend(self, form: Compiled, chains: Sequence[Chain], run: Any) -> int:
        """Repair and polish each chain within its own limits."""
        made = [0] * len(chains)

        def mend(place: int) -> None:
            chain, stage = chains[place], self._stage(form, 0.7, 0.85)
            if form.problem.groups is None and not _is_violated(form.problem, chain):
                return
            limits = _mended(form, chain, stage)
            polish = form.with_limits(limits.low, limits.high, _POLISH_EXCESS)
            stage_two = self._stage(form, 0.85, 1.0)
            again = polish.chain(chain.y, chain.random[0])
            spent = anneal(polish, [again], stage_two, _POLISH_HEAT, self.pairs, map_serially)
            overwrite(chain, again)
            made[place] = stage.done + spent

        run(mend, range(len(chains)))
        return sum(made)

    def _stage(self, form: Compiled, begin: float, end: float) -> Stage:
        share = end - begin
        seconds = None if self.seconds is None else share * self.seconds
        return Stage(len(form.model.members), share * self.proposals, seconds, (begin, end))


def _is_violated(problem: Problem, chain: Chain) -> bool:
    return bool(problem.violations(chain.deviation[:-1]).any())


def _mended(form: Compiled, chain: Chain, stage: Stage) -> Limits:
    """Limits kept, or found, by repair."""
    if form.problem.groups is not None:
        return lower_limits(form, chain, stage)
    limits = Limits(*form.problem.limits)
    keep_limits(form, chain, limits, stage)
    return limits


def _rank(problem: Problem, chain: Chain, loss: float) -> tuple[float, ...]:
    """What makes one chain better than another: fewer breaches, smaller maxima, less loss."""
    deviation = chain.deviation[:-1]
    return (float(problem.violations(deviation).sum()), *problem.largest(deviation), loss)


def map_serially(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Do the work for one item after the other."""
    return [work(item) for item in items]


def _in_threads(
    pool: ThreadPoolExecutor,
) -> Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]:
    """Work in threads that report progress to the caller's listener."""

    def run(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        started = [pool.submit(copy_context().run, work, item) for item in items]
        return [one.result() for one in started]

    return run


def _workers(form: Compiled, chains: int) -> Any:
    """Threads for the chains, when there are several and enough to do; the kernels hold no lock."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if min(chains, cores) == 1 or form.model.members.size < _SERIAL:
        return nullcontext(None)
    return ThreadPoolExecutor(max_workers=min(chains, cores))
