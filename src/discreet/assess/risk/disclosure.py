"""How often a sensitive category is guessed right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from discreet.assess.cells import check_choice
from discreet.assess.measure import NotApplicableError, Score
from discreet.assess.risk.groups import GroupMeasure
from discreet.assess.risk.guessing import Guesses, guesses, refitted_guess
from discreet.facade.table import Table
from discreet.solve.fit import Fitter
from discreet.tables.protected import Protected

Intruder = Literal["outsider", "own", "refit"]
_WHO = {
    "outsider": "guessed from the release as it stands",
    "own": "guessed by an insider, who takes one known record out",
    "refit": "guessed by an insider, who takes his record out and fits again",
}


@dataclass(frozen=True)
class GuessMeasure(GroupMeasure):
    """A measure of guesses from the release, by outsiders or by insiders.

    Args:
      sensitive: The variable that must not be disclosed.
      quasi: The variables an intruder knows; all others by default.
      intruder: Who guesses: an ``"outsider"``, an insider who removes his ``"own"`` record, or an
        insider who removes it and fits again (``"refit"``).
      fitter: What the insider fits with.
      most: The largest number of fits to make.
    """

    intruder: Intruder = "outsider"
    fitter: Fitter | None = None
    most: int = 2000

    def __post_init__(self) -> None:
        check_choice("intruder", self.intruder, get_args(Intruder))

    @property
    def stem(self) -> str:
        """The measure without its intruder."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The measure with its intruder, such as ``"exact-disclosure-own"``."""
        return self.stem if self.intruder == "outsider" else f"{self.stem}-{self.intruder}"

    @property
    def meaning(self) -> str:
        """What this one of the family says."""
        first = (type(self).__doc__ or "").partition("\n")[0].removesuffix(".")
        return f"{first}; {_WHO[self.intruder]}."

    def guesses(self, table: Table, release: Protected) -> Guesses:
        """Guesses from truth and release."""
        groups = self.groups(table, release)
        if self.intruder != "refit":
            return guesses(groups, self.intruder == "own")
        if self.fitter is None:
            raise NotApplicableError("name what the insider fits with: fitter=....")
        released = refitted_guess(table, release, groups, self.fitter, self.most)
        return guesses(groups, True, released)


@dataclass(frozen=True)
class DisclosureProbability(GuessMeasure):
    r"""How often the category guessed from the release is right, mean over the groups.

    For each combination of quasi-identifiers that has records, the category with the largest
    released frequency is guessed; the guess is right with its true share, :math:`f_g/\sum_s f_s`.
    Groups count alike, whatever their size. Range: 0 to 1. Lower is safer. The breakdown has, for
    each group, the probability of the best guess from the truth and from the release,
    :math:`\max_s y_s/\sum_s y_s`, and whether both guess the same category.

    For an insider who removes his own record, probabilities become
    :math:`y_g/(\sum_s y_s - \min(1, \max_{s\ne g} y_s))`: he stands in the largest category that
    is not guessed. With a refit, :math:`z` is reduced by the row of :math:`X` of each inner cell
    with records, inner cells are fitted anew, and the surest guess of each group counts, an
    outsider's among them: one fit for each inner cell that is not empty.

    >>> from discreet.assess.cells import toy
    >>> table, release = toy([[3, 1], [0, 2]], [[1, 2], [0, 3]])
    >>> DisclosureProbability(sensitive="b")(table, release).breakdown.to_pylist()[0]
    {'a': '1', 'original': 0.75, 'released': 0.6666666666666666, 'same_guess': False}
    >>> DisclosureProbability(sensitive="b")(table, release).value
    0.625
    >>> insider = DisclosureProbability(sensitive="b", intruder="own")
    >>> insider(*toy([[3, 1], [0, 2]], [[3.5, 0.5], [0, 3]])).breakdown.to_pylist()[0]
    {'a': '1', 'original': 1.0, 'released': 1.0, 'same_guess': True}
    >>> from types import SimpleNamespace as Plain  # inner cells are published: fitted as they are
    >>> as_it_is = Plain(prepare=lambda design: lambda z, weights: Plain(y=z))
    >>> refit = DisclosureProbability(sensitive="b", intruder="refit", fitter=as_it_is)
    >>> refit(*toy([[3, 1], [0, 2]], [[3, 1], [0, 2]])).breakdown["released"].to_pylist()
    [1.0, 1.0]

    See Langsrud & Lupp (2021), Tables 9 and 10 and section 6.
    """

    stem = "disclosure-probability"

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        found = self.guesses(table, release)
        occurs = np.flatnonzero(found.occurs)
        parts: dict[str, Any] = {
            **found.layout.labels(occurs),
            "original": found.original.probability[occurs],
            "released": found.released.probability[occurs],
            "same_guess": found.agree[occurs],
        }
        return self.score(found.success[occurs].mean(), found.layout.on, parts)
