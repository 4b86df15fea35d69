"""How often a sensitive category is guessed right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.assess.measure import UNIT, NotApplicableError, Score
from discreet.assess.risk.groups import GroupMeasure
from discreet.assess.risk.guessing import Guesses, guesses
from discreet.assess.risk.refit import refitted_guess
from discreet.design.release import Release
from discreet.design.table import Table
from discreet.solve.fit import Fitter


@dataclass(frozen=True)
class GuessMeasure(GroupMeasure):
    """A measure of guesses from the release, by outsiders or by insiders."""

    own: ClassVar[bool] = False

    range = UNIT
    direction = "lower"

    def guesses(self, table: Table, release: Release) -> Guesses:
        """Guesses from truth and release."""
        return guesses(self.groups(table, release), self.own)


@dataclass(frozen=True)
class RefitMeasure(GuessMeasure):
    """A measure of guesses by insiders who fit the release again without themselves.

    Args:
      sensitive: The variable that must not be disclosed.
      quasi: The variables an intruder knows; all others by default.
      fitter: What the insider fits with.
      most: The largest number of fits to make.
    """

    own: ClassVar[bool] = True

    fitter: Fitter | None = None
    most: int = 2000

    def guesses(self, table: Table, release: Release) -> Guesses:
        """Guesses from truth and release."""
        groups = self.groups(table, release)
        if self.fitter is None:
            raise NotApplicableError("name what the insider fits with: fitter=....")
        released = refitted_guess(table, release, groups, self.fitter, self.most)
        return guesses(groups, self.own, released)


class DisclosureProbability(GuessMeasure):
    r"""How often the category guessed from the release is right, mean over the groups.

    For each combination of quasi-identifiers that has records, the category with the largest
    released frequency is guessed; the guess is right with its true share, :math:`f_g/\sum_s f_s`.
    Groups count alike, whatever their size. Range: 0 to 1. Lower is safer. The breakdown has, for
    each group, the probability of the best guess from the truth and from the release,
    :math:`\max_s y_s/\sum_s y_s`, and whether both guess the same category.

    >>> from discreet.assess.cells import toy
    >>> table, release = toy([[3, 1], [0, 2]], [[1, 2], [0, 3]])
    >>> DisclosureProbability(sensitive="b")(table, release).breakdown.to_pylist()[0]
    {'a': '1', 'original': 0.75, 'released': 0.6666666666666666, 'same_guess': False}
    >>> DisclosureProbability(sensitive="b")(table, release).value
    0.625

    Args:
      sensitive: The variable that must not be disclosed.
      quasi: The variables an intruder knows; all others by default.

    See Langsrud & Lupp (2021), Table 9.
    """

    name = "disclosure-probability"

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        return _score(self, self.guesses(table, release))


class DisclosureProbabilityOwn(DisclosureProbability):
    r"""The same for an insider, who knows one record and takes it out before guessing.

    Probabilities become :math:`y_g/(\sum_s y_s - \min(1, \max_{s\ne g} y_s))`: the insider stands
    in the largest category that is not guessed. Range: 0 to 1. Lower is safer. Breakdown and
    options as for the outsider.

    >>> from discreet.assess.cells import toy
    >>> table, release = toy([[3, 1], [0, 2]], [[3.5, 0.5], [0, 3]])
    >>> DisclosureProbabilityOwn(sensitive="b")(table, release).breakdown.to_pylist()[0]
    {'a': '1', 'original': 1.0, 'released': 1.0, 'same_guess': True}

    See Langsrud & Lupp (2021), Table 10.
    """

    name = "disclosure-probability-own"
    own = True


class DisclosureProbabilityRefit(RefitMeasure):
    r"""The same for an insider who takes his record out of the published cells and fits again.

    For each inner cell with records, :math:`z` is reduced by that cell's row of :math:`X`, inner
    cells are fitted anew, and :math:`\max_s \hat y_s/\sum_s \hat y_s` is taken in the insider's
    group; the surest guess of each group counts, an outsider's among them. Range: 0 to 1. Lower is
    safer. The breakdown is that of the outsider. Cost: one fit for each inner cell that is not
    empty.

    >>> from discreet.assess.cells import toy
    >>> from types import SimpleNamespace as Plain  # inner cells are published: fitted as they are
    >>> as_it_is = Plain(prepare=lambda design: lambda z, weights: Plain(y=z))
    >>> table, release = toy([[3, 1], [0, 2]], [[3, 1], [0, 2]])
    >>> measure = DisclosureProbabilityRefit(sensitive="b", fitter=as_it_is)
    >>> measure(table, release).breakdown["released"].to_pylist()
    [1.0, 1.0]

    Args:
      sensitive: The variable that must not be disclosed.
      quasi: The variables an intruder knows; all others by default.
      fitter: What the insider fits with.
      most: The largest number of fits to make.

    See Langsrud & Lupp (2021), section 6.
    """

    name = "disclosure-probability-refit"

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        return _score(self, self.guesses(table, release))


def _score(measure: GuessMeasure, found: Guesses) -> Score:
    occurs = np.flatnonzero(found.occurs)
    parts: dict[str, Any] = {
        **found.layout.labels(occurs),
        "original": found.original.probability[occurs],
        "released": found.released.probability[occurs],
        "same_guess": found.agree[occurs],
    }
    return measure.score(found.success[occurs].mean(), found.layout.on, parts)
