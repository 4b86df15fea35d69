"""What an insider guesses after removing himself from the published cells and fitting again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from discreet.assess.cells import true_values
from discreet.assess.measure import NotApplicableError
from discreet.assess.risk.groups import Groups
from discreet.assess.risk.guessing import Guess, best_guess
from discreet.design.base import Vector
from discreet.design.release import Release
from discreet.design.table import Table
from discreet.progress import report
from discreet.solve.fit import Fitter


def refitted_guess(
    table: Table, release: Release, groups: Groups, fitter: Fitter, most: int
) -> Guess:
    """For each group the surest guess among those of an outsider and of its insiders.

    An insider is a record in an inner cell: one is taken from every published cell that holds it
    (never below zero), inner cells are fitted again, and the guess is made from these.
    Cost: one fit for each inner cell that is not empty.
    """
    insiders = np.flatnonzero(true_values(table, release.design, "inner"))
    if len(insiders) > most:
        raise NotApplicableError(
            f"each of {len(insiders):,} kinds of insiders needs a fit; the limit is {most:,}."
        )
    outsider = best_guess(groups.released, own=False)
    probability, winners = outsider.probability.copy(), outsider.winners.copy()
    for i, y in _without_each(release, insiders, fitter):
        group = groups.layout.group[i]
        frequencies = np.maximum(groups.layout.spread(y)[[group]], 0)
        guess = best_guess(frequencies, own=False)
        if guess.probability[0] > probability[group]:
            probability[group], winners[group] = guess.probability[0], guess.winners[0]
    return Guess(probability, winners)


def _without_each(
    release: Release, insiders: NDArray[np.intp], fitter: Fitter
) -> Iterator[tuple[int, Vector]]:
    """Each insider with the inner cells fitted to the published ones without one record there."""
    refit = fitter.prepare(release.design)
    X = release.design.matrix()
    for done, i in enumerate(insiders.tolist(), start=1):
        z = release.z.astype(np.float64)
        held = X.indices[X.indptr[i] : X.indptr[i + 1]]
        z[held] = np.maximum(z[held] - 1, 0)
        yield i, refit(z, weights=release.precision).y
        report("refitting without one record", done / len(insiders))
