r"""Guessing a sensitive category from what is released.

For a combination of quasi-identifiers with frequencies :math:`y_s` over the sensitive categories,
the most frequent category g is guessed, and holds with probability

.. math:: p = \frac{y_g}{\sum_s y_s - o},\qquad o = \min\bigl(1, \max_{s \ne g} y_s\bigr)

with o = 0 for an outsider. An insider knows one record, and gains most by removing it from the
largest category that is not guessed, or from the published cells before fitting again. Langsrud &
Lupp (2021), Tables 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.assessment.cells import true_values
from discreet.assessment.measure import NotApplicableError
from discreet.assessment.risk.diversity import Groups, Layout
from discreet.facade.table import Table
from discreet.progress import report
from discreet.solve.fit import Fitter
from discreet.tables.protected import Protected

_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Guess:
    """For each group the probability of the best guess (0: nothing to go by) and the guesses.

    Several categories are guessed where they are equally frequent.
    """

    probability: Real
    winners: Mask


@dataclass(frozen=True, eq=False)
class Guesses:
    """What is guessed, group by group, from the truth and from the release.

    Attributes:
      layout: The groups.
      occurs: Which groups have records.
      original: The guess from the true frequencies.
      released: The guess from the release.
      success: Probability, in truth, that the guess from the release is right.
    """

    layout: Layout
    occurs: Mask
    original: Guess
    released: Guess
    success: Real

    @property
    def agree(self) -> Mask:
        """Whether truth and release lead to the same guess."""
        return np.asarray((self.original.winners & self.released.winners).any(axis=1))


def attribution(y: Real, own: bool) -> Real:
    """For each group and category the probability that a guess of this category holds."""
    total = y.sum(axis=1, keepdims=True)
    if own:
        total = total - np.minimum(1.0, _largest_other(y))
    return np.asarray(np.divide(y, total, out=np.zeros_like(y), where=(y > 0) & (total > 0)))


def best_guess(y: Real, own: bool) -> Guess:
    """The most frequent category of each group."""
    top = y.max(axis=1, keepdims=True)
    winners = (y >= top * (1 - _TIE)) & (top > 0)
    return Guess((attribution(y, own) * winners).max(axis=1), winners)


def guesses(groups: Groups, own: bool, released: Guess | None = None) -> Guesses:
    """Guesses from truth and release, and how often the latter are right."""
    guess = best_guess(groups.released, own) if released is None else released
    tried = np.maximum(guess.winners.sum(axis=1), 1)
    success = (attribution(groups.true, own) * guess.winners).sum(axis=1) / tried
    return Guesses(groups.layout, groups.occurs, best_guess(groups.true, own), guess, success)


def refitted_guess(
    table: Table, release: Protected, groups: Groups, fitter: Fitter, most: int
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
    release: Protected, insiders: Index, fitter: Fitter
) -> Iterator[tuple[int, Array]]:
    """Each insider with the inner cells fitted to the published ones without one record there."""
    refit, weights = fitter.prepare(release.design), release.fit_weights()
    X = release.design.matrix()
    for done, i in enumerate(insiders.tolist(), start=1):
        z = release.z.astype(np.float64)
        held = X.indices[X.indptr[i] : X.indptr[i + 1]]
        z[held] = np.maximum(z[held] - 1, 0)
        yield i, refit(z, weights=weights).y
        report("refitting without one record", done / len(insiders))


def _largest_other(y: Real) -> Real:
    """For each category the largest frequency among the other categories of its group."""
    if y.shape[1] == 1:
        return np.zeros(y.shape)
    second, top = np.partition(y, -2, axis=1)[:, -2:].T
    is_top = np.zeros(y.shape, dtype=bool)
    np.put_along_axis(is_top, y.argmax(axis=1)[:, None], True, axis=1)
    return np.asarray(np.where(is_top, second[:, None], top[:, None]))
