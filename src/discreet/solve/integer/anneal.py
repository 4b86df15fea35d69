"""Annealing: many sweeps over the inner cells while the temperature falls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.solve.integer.chains import Compiled
from discreet.solve.integer.effort import Stage
from discreet.solve.integer.kernels import Chain, sweep

Map = Callable[[Callable[[Chain], Any], Sequence[Chain]], Any]
_MOST_QUENCHES = 50
_QUENCH_SHARE = 8  # at most this part of the sweeps goes downhill only, twice over


def anneal(
    form: Compiled,
    chains: Sequence[Chain],
    stage: Stage,
    heat: tuple[float, float],
    pairs: float,
    run: Map,
) -> int:
    """Cool from `heat[0]` to `heat[1]` (in units of the loss's scale), then go downhill.

    Every chain ends at the best point it has seen.

    Returns:
      How many proposals each chain made.
    """
    hot, cold = (form.scale * h for h in heat)
    made, here, width = 0, 0.0, 0.0
    while here < 1.0:
        sweeps = stage.chunk()
        if stage.seconds is None:
            width = sweeps / stage.sweeps
        points = here + width * (np.arange(sweeps) + 0.5) / sweeps
        temperatures = hot * (cold / hot) ** np.minimum(points, 1.0)
        _sweep_all(form, chains, temperatures, pairs, run)
        stage.spend(sweeps * stage.cells)
        made += sweeps * stage.cells
        width, here = stage.fraction - here, stage.fraction
    return made + quench(form, chains, stage, pairs, run)


def quench(form: Compiled, chains: Sequence[Chain], stage: Stage, pairs: float, run: Map) -> int:
    """Sweep downhill until nothing gets better or it takes too long; go to the best point seen."""
    cold = np.zeros(2)
    made = 0
    for _ in range(min(_MOST_QUENCHES, max(stage.sweeps // _QUENCH_SHARE, 2))):
        if stage.is_overdue:
            break
        before = [float(chain.energy[1]) for chain in chains]
        _sweep_all(form, chains, cold, pairs, run)
        made += 2 * len(chains[0].y)
        if all(chain.energy[1] >= b for chain, b in zip(chains, before, strict=True)):
            break
    for chain in chains:
        form.require_exact(chain)
        restart(form, chain, chain.best)
    return made


def restart(form: Compiled, chain: Chain, y: NDArray[np.int32]) -> None:
    """Put a chain at a point, with deviations and energy computed anew."""
    overwrite(chain, form.chain(y, chain.random[0]))


def overwrite(chain: Chain, other: Chain) -> None:
    """Give a chain the state of another."""
    pairs: Any = zip(chain, other, strict=True)
    for kept, new in pairs:
        kept[:] = new


def _sweep_all(
    form: Compiled,
    chains: Sequence[Chain],
    temperatures: NDArray[np.float64],
    pairs: float,
    run: Map,
) -> None:
    run(lambda chain: sweep(form.model, chain, temperatures, pairs), chains)
