r"""Exact disclosures: groups in which a guess is certain.

With a groups certain in truth, b certain in the release (of groups that have records), and c
certain in both with the same category, recall is c/a, precision c/b and

.. math:: F_\beta = \frac{(1 + \beta^2)\,c}{\beta^2 a + b}.

Langsrud & Lupp (2021), equation 5. All are 0 when c = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from discreet.assess.measure import BaseMeasure, Score
from discreet.assess.risk.disclosure import GuessMeasure, RefitMeasure
from discreet.assess.risk.guessing import Guesses
from discreet.design.release import Release
from discreet.design.table import Table

CERTAIN = 1e-9


class Exact(NamedTuple):
    """Numbers of exact disclosures in truth, in the release, and in both."""

    a: int
    b: int
    c: int

    @property
    def precision(self) -> float:
        """Share of the disclosures in the release that are real."""
        return self.c / self.b if self.c else 0.0

    @property
    def recall(self) -> float:
        """Share of the real disclosures that are in the release."""
        return self.c / self.a if self.c else 0.0

    def f_score(self, beta: float = 0.5) -> float:
        """Both in one number; below 1, `beta` gives precision the greater weight.

        >>> found = [Exact(1, 0, 0), Exact(1, 2, 1), Exact(3, 1, 1), Exact(3, 2, 2)]
        >>> [round(counts.f_score(), 4) for counts in found]
        [0.0, 0.5556, 0.7143, 0.9091]
        """
        return (1 + beta**2) * self.c / (beta**2 * self.a + self.b) if self.c else 0.0

    def parts(self, beta: float) -> dict[str, list[float]]:
        """Everything in a row."""
        named = {"precision": self.precision, "recall": self.recall, "f": self.f_score(beta)}
        return {k: [v] for k, v in {**self._asdict(), **named}.items()}


def exact(found: Guesses, tolerance: float) -> Exact:
    """Count the certain guesses."""
    a = found.occurs & (found.original.probability >= 1 - tolerance)
    b = found.occurs & (found.released.probability >= 1 - tolerance)
    return Exact(*(int(np.count_nonzero(m)) for m in (a, b, a & b & found.agree)))


@dataclass(frozen=True)
class ExactDisclosure(GuessMeasure):
    r"""How well certain guesses from the release match the truth, :math:`F_\beta`.

    .. math:: F_\beta = (1 + \beta^2)c / (\beta^2 a + b)

    with a certain guesses in truth, b in the release and c in both. Range: 0 (no certain guess
    is a real disclosure, or there are none) to 1 (the release discloses what the truth discloses).
    Lower is safer. The breakdown gives a, b, c, precision and recall.

    >>> from discreet.assess.cells import toy
    >>> score = ExactDisclosure(sensitive="b")(*toy([[3, 1], [0, 2]], [[3, 0], [0, 2]]))
    >>> score.breakdown.to_pylist()[0]["b"], round(score.value, 4)
    (2, 0.5556)

    Args:
      sensitive: The variable that must not be disclosed.
      quasi: The variables an intruder knows; all others by default.
      beta: Weight of recall against precision.
      tolerance: A guess is certain when its probability falls short of 1 by at most this.

    See Langsrud & Lupp (2021), equation 5.
    """

    name = "exact-disclosure"

    beta: float = 0.5
    tolerance: float = CERTAIN

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        return f_score(self, self.guesses(table, release), self.beta, self.tolerance)


class ExactDisclosureOwn(ExactDisclosure):
    r"""The same for an insider, who takes one known record out, :math:`F_\beta` of Table 10.

    Range: 0 to 1. Lower is safer. Breakdown and options as for the outsider.

    >>> from discreet.assess.cells import toy
    >>> ExactDisclosureOwn(sensitive="b")(*toy([[3, 1], [0, 2]], [[3, 0.5], [0, 2]])).value
    1.0

    See Langsrud & Lupp (2021), section 6.
    """

    name = "exact-disclosure-own"
    own = True


class DisclosurePrecision(ExactDisclosure):
    r"""Share of the certain guesses from the release that are real disclosures, :math:`c/b`.

    Range: 0 to 1. Lower is safer. Breakdown and options as for exact disclosures.

    >>> from discreet.assess.cells import toy
    >>> DisclosurePrecision(sensitive="b")(*toy([[3, 1], [0, 2]], [[3, 0], [0, 2]])).value
    0.5

    See Langsrud & Lupp (2021), section 6.
    """

    name = "disclosure-precision"

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        found = self.guesses(table, release)
        counts = exact(found, self.tolerance)
        return self.score(counts.precision, found.layout.on, counts.parts(self.beta))


class DisclosureRecall(ExactDisclosure):
    r"""Share of the real disclosures that are certain guesses from the release, :math:`c/a`.

    Range: 0 to 1. Lower is safer. Breakdown and options as for exact disclosures.

    >>> from discreet.assess.cells import toy
    >>> DisclosureRecall(sensitive="b")(*toy([[3, 1], [0, 2]], [[3, 0], [0, 2]])).value
    1.0

    See Langsrud & Lupp (2021), section 6.
    """

    name = "disclosure-recall"

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        found = self.guesses(table, release)
        counts = exact(found, self.tolerance)
        return self.score(counts.recall, found.layout.on, counts.parts(self.beta))


@dataclass(frozen=True)
class ExactDisclosureRefit(RefitMeasure):
    r"""The same for an insider who fits the release again without himself, :math:`F_\beta`.

    Range: 0 to 1. Lower is safer. The breakdown is that of exact disclosures. Cost: one fit for
    each inner cell that is not empty.

    >>> from discreet.assess.cells import toy
    >>> from types import SimpleNamespace as Plain  # inner cells are published: fitted as they are
    >>> as_it_is = Plain(prepare=lambda design: lambda z, weights: Plain(y=z))
    >>> table, release = toy([[3, 1], [0, 2]], [[3, 1], [0, 2]])
    >>> ExactDisclosureRefit(sensitive="b", fitter=as_it_is)(table, release).value
    1.0

    Args:
      sensitive: The variable that must not be disclosed.
      quasi: The variables an intruder knows; all others by default.
      fitter: What the insider fits with.
      most: The largest number of fits to make.
      beta: Weight of recall against precision.
      tolerance: A guess is certain when its probability falls short of 1 by at most this.

    See Langsrud & Lupp (2021), section 6.
    """

    name = "exact-disclosure-refit"

    beta: float = 0.5
    tolerance: float = CERTAIN

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        return f_score(self, self.guesses(table, release), self.beta, self.tolerance)


def f_score(measure: BaseMeasure, found: Guesses, beta: float, tolerance: float) -> Score:
    """The score of exact disclosures with their breakdown."""
    counts = exact(found, tolerance)
    return measure.score(counts.f_score(beta), found.layout.on, counts.parts(beta))
