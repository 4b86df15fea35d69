"""What an intruder learns of single people: probable, exact and near-certain guesses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from discreet.arrays import Array, Index, Mask, Real
from discreet.assessment.cells import check_choice, true_values
from discreet.assessment.measure import NotApplicableError, Score
from discreet.assessment.risk.diversity import Exact, GroupMeasure, Groups, Layout
from discreet.facade.table import Table
from discreet.progress import report
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
    @abstractmethod
    def stem(self) -> str:
        """The measure without its intruder."""

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

    >>> from discreet.assessment.cells import toy
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
        found = self.guesses(table, release)
        occurs = np.flatnonzero(found.occurs)
        parts: dict[str, Any] = {
            **found.layout.labels(occurs),
            "original": found.original.probability[occurs],
            "released": found.released.probability[occurs],
            "same_guess": found.agree[occurs],
        }
        return self.score(found.success[occurs].mean(), found.layout.on, parts)


Part = Literal["f", "precision", "recall"]
CERTAIN = 1e-9  # fits leave this little in categories that they mean to be empty


def exact(found: Guesses, tolerance: float) -> Exact:
    """Count the certain guesses."""
    a = found.occurs & (found.original.probability >= 1 - tolerance)
    b = found.occurs & (found.released.probability >= 1 - tolerance)
    return Exact(*(int(np.count_nonzero(m)) for m in (a, b, a & b & found.agree)))


@dataclass(frozen=True)
class ExactDisclosure(GuessMeasure):
    r"""How well certain guesses from the release match the truth: the F score and its parts.

    .. math:: F_\beta = (1 + \beta^2)c / (\beta^2 a + b)

    with a certain guesses in truth, b in the release and c in both; precision is c/b and recall
    c/a. Range: 0 (no certain guess is a real disclosure, or there are none) to 1 (the release
    discloses what the truth discloses). Lower is safer. The breakdown gives a, b, c, precision and
    recall. A refit costs one fit for each inner cell that is not empty.

    >>> from discreet.assessment.cells import toy
    >>> pair = toy([[3, 1], [0, 2]], [[3, 0], [0, 2]])
    >>> score = ExactDisclosure(sensitive="b")(*pair)
    >>> score.breakdown.to_pylist()[0]["b"], round(score.value, 4)
    (2, 0.5556)
    >>> [ExactDisclosure(sensitive="b", figure=k)(*pair).value for k in ("precision", "recall")]
    [0.5, 1.0]

    Args:
      figure: ``"f"``, ``"precision"`` or ``"recall"``.
      beta: Weight of recall against precision.
      tolerance: A guess is certain when its probability falls short of 1 by at most this.

    See Langsrud & Lupp (2021), equation 5 and section 6.
    """

    figure: Part = "f"
    beta: float = 0.5
    tolerance: float = CERTAIN

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("figure", self.figure, get_args(Part))

    @property
    def stem(self) -> str:
        """The measure without its intruder."""
        return "exact-disclosure" if self.figure == "f" else f"disclosure-{self.figure}"

    def __call__(self, table: Table, release: Protected) -> Score:
        found = self.guesses(table, release)
        parts = exact(found, self.tolerance).parts(self.beta)
        return self.score(parts[self.figure][0], found.layout.on, parts)


@dataclass(frozen=True)
class NearCertainGuesses(GuessMeasure):
    r"""Share of the groups in which a guess looks nearly certain, and is.

    With p the probability of the guess as the release shows it, and q that with which it holds in
    truth, :math:`\#\{p \ge \tau, q \ge \tau\} / n` over the n groups with records. Range: 0 to 1.
    Lower is safer. The breakdown gives the groups, those whose best guess is nearly certain in
    truth, those where it looks so in the release, and both. Certainty itself is rare, and nine in
    ten is harm enough.

    >>> from discreet.assessment.cells import toy
    >>> pair = toy([[19, 1], [9, 3], [1, 9]], [[18, 1], [11, 0], [2, 8]])
    >>> score = NearCertainGuesses(sensitive="b")(*pair)
    >>> score.breakdown.to_pylist(), round(score.value, 4)
    ([{'groups': 3, 'true': 2, 'released': 2, 'both': 1}], 0.3333)

    Args:
      sure: The probability, τ, from which on a guess is nearly certain.
    """

    stem = "near-certain-guesses"

    sure: float = 0.9

    def __call__(self, table: Table, release: Protected) -> Score:
        found = self.guesses(table, release)
        true, shown, right = (
            found.occurs & (p >= self.sure - CERTAIN)
            for p in (found.original.probability, found.released.probability, found.success)
        )
        sets = {"groups": found.occurs, "true": true, "released": shown, "both": shown & right}
        counts = {name: int(np.count_nonzero(chosen)) for name, chosen in sets.items()}
        value = counts["both"] / counts["groups"]
        return self.score(value, found.layout.on, {k: [n] for k, n in counts.items()})


@dataclass(frozen=True)
class TargetedAttribution(GroupMeasure):
    r"""Targeted correct attribution probability (TCAP), counting records.

    Over the groups q with records whose released frequencies :math:`y_{qs}` all lie in one
    category g, each weighing by its released frequency,

    .. math:: \sum_q y_{q\cdot}\,\frac{f_{qg}}{f_{q\cdot}} \Big/ \sum_q y_{q\cdot}.

    Zero when there is no such group. Range: 0 to 1. Lower is safer. The breakdown gives the number
    of such groups and their released records. Exact disclosures count groups instead.

    >>> from discreet.assessment.cells import toy
    >>> table, release = toy([[3, 1], [0, 2], [5, 5]], [[3, 0], [0, 1], [6, 4]])
    >>> TargetedAttribution(sensitive="b")(table, release).value
    0.8125

    Args:
      tolerance: A guess is certain when its probability falls short of 1 by at most this.

    See Taub et al. (2019), as described by Langsrud & Lupp (2021).
    """

    name = "targeted-attribution"

    tolerance: float = CERTAIN

    def __call__(self, table: Table, release: Protected) -> Score:
        groups = self.groups(table, release)
        found = guesses(groups, own=False)
        certain = found.occurs & (found.released.probability >= 1 - self.tolerance)
        records = groups.released[certain].sum(axis=1)
        value = np.average(found.success[certain], weights=records) if certain.any() else 0.0
        parts = {"groups": [int(np.count_nonzero(certain))], "records": [float(records.sum())]}
        return self.score(value, found.layout.on, parts)


_TIE = 1e-9  # fitted frequencies that should be equal differ by their rounding


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
