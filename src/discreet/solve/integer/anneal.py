"""Annealing: many sweeps over the inner cells while the temperature falls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.arrays import Real, Whole32
from discreet.progress import report
from discreet.solve.integer.chains import Compiled
from discreet.solve.integer.kernels import Chain, sweep
from discreet.solve.integer.schedule import SCHEDULE

Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


class Stage:
    """A share of the effort. Its end depends on proposals made, or on the clock when asked for.

    Counted in proposals the same seed gives the same result everywhere; counted in seconds it
    depends on the machine.

    Args:
      cells: Inner cells of one sweep.
      proposals: Effort.
      seconds: Effort by the clock, instead.
      span: The part of the whole search that the stage stands for, as it is reported.
    """

    def __init__(
        self,
        cells: int,
        proposals: float,
        seconds: float | None,
        span: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.cells = max(cells, 1)
        most = max(SCHEDULE.most_sweeps, SCHEDULE.small // self.cells)
        self.sweeps = int(min(max(proposals // self.cells, SCHEDULE.fewest_sweeps), most))
        self.seconds, self.span = seconds, span
        self.begin, self.done = time.monotonic(), 0

    def spend(self, proposals: int) -> None:
        """Note proposals that were made, and tell whoever listens how far the search is."""
        self.done += proposals
        low, high = self.span
        report("search", low + (high - low) * self.fraction)

    @property
    def fraction(self) -> float:
        """The part of the stage that is over, from 0 to 1."""
        if self.seconds is not None:
            return min((time.monotonic() - self.begin) / max(self.seconds, 1e-9), 1.0)
        return min(self.done / (self.sweeps * self.cells), 1.0)

    @property
    def is_overdue(self) -> bool:
        """Whether a stage that is timed has taken a tenth more than its time."""
        return self.seconds is not None and time.monotonic() - self.begin > 1.1 * self.seconds

    def chunk(self) -> int:
        """How many sweeps to make before looking up again."""
        fitting = max(SCHEDULE.sweep_at_once // self.cells, 1)
        if self.seconds is not None:
            return fitting
        left = self.sweeps - self.done // self.cells
        return max(min(fitting, left, self.sweeps // 20), 1)


def in_turn(work: Any, items: Sequence[Any]) -> list[Any]:
    """Do the work for one item after the other."""
    return [work(item) for item in items]


def anneal(
    form: Compiled,
    chains: Sequence[Chain],
    stage: Stage,
    heat: tuple[float, float],
    pairs: float,
    each: Each,
) -> int:
    """Cool from `heat[0]` to `heat[1]` (in units of the loss's scale), then go downhill.

    Every chain ends at the best point it has seen. They go on together, so that a search that is
    timed gives each of them as much.

    Returns:
      How many proposals the chains made.
    """
    hot, cold = (form.scale * h for h in heat)
    made, here, width = 0, 0.0, 0.0
    while here < 1.0:
        sweeps = stage.chunk()
        if stage.seconds is None:
            width = sweeps / stage.sweeps
        points = here + width * (np.arange(sweeps) + 0.5) / sweeps
        temperatures = hot * (cold / hot) ** np.minimum(points, 1.0)
        made += _sweep_all(form, chains, temperatures, pairs, each)
        stage.spend(sweeps * stage.cells)
        width, here = stage.fraction - here, stage.fraction
    return made + _quench(form, chains, stage, pairs, each)


def _quench(form: Compiled, chains: Sequence[Chain], stage: Stage, pairs: float, each: Each) -> int:
    """Sweep downhill until nothing gets better or it takes too long; go to the best point seen."""
    made = 0
    for _ in range(min(SCHEDULE.quenches, max(stage.sweeps // SCHEDULE.quench_share, 2))):
        if stage.is_overdue:
            break
        before = [chain.energy[1] for chain in chains]
        made += _sweep_all(form, chains, np.zeros(2), pairs, each)
        if all(chain.energy[1] >= b for chain, b in zip(chains, before, strict=True)):
            break
    for chain in chains:
        form.require_exact(chain)
        restart(form, chain, chain.best)
    return made


def _sweep_all(
    form: Compiled, chains: Sequence[Chain], temperatures: Real, pairs: float, each: Each
) -> int:
    each(lambda chain: sweep(form.model, chain, temperatures, pairs), chains)
    return len(chains) * len(temperatures) * len(form.model.members)


def restart(form: Compiled, chain: Chain, y: Whole32) -> None:
    """Put a chain at a point, with deviations and energy computed anew."""
    overwrite(chain, form.chain(y, chain.random[0]))


def overwrite(chain: Chain, other: Chain) -> None:
    """Give a chain the state of another."""
    pairs: Any = zip(chain, other, strict=True)
    for kept, new in pairs:
        kept[:] = new
