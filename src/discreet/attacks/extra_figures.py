"""What stands beside the counts of a release: steps and decimals of weighted counts, and classes.

A weighted count over the mean weight, both public, is a guess at how many records were asked; fine
steps leave little noise in it. Where noise is a multiple of the mean weight, decimals tell which
multiple it was. A class of quality says roughly how far a count was moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.attacks.several_laws import law_of
from discreet.errors import DiscreetError
from discreet.tables.protected import COUNT, WEIGHT
from discreet.tables.statement import Step

_LARGE = 1_000  # a count whose law is that of all large counts
_NEARLY = 1e-5  # sums of weights are right to as many digits of their last decimal


@dataclass(frozen=True)
class WeightedSteps(PublicAttack):
    """Claims numbers of records from weighted counts that are published in steps.

    `knowledge.extra["mean_weight"]` is the mean weight, which surveys publish.
    """

    name: ClassVar[str] = "weighted-steps"
    about: ClassVar[About] = "records"
    remedy: ClassVar[str] = "steps of the declared mean weight at least (grid=)"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No weighted counts, or no mean weight."""
        if release.unit != WEIGHT:
            return "the values are no weighted counts"
        return "" if "mean_weight" in knowledge.extra else "no mean weight is known"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Shown cells by their positions; nothing is drawn."""
        mean = float(knowledge.extra["mean_weight"])
        count = np.maximum(np.asarray(release.z, dtype=np.float64) / mean, 0.0)
        shown, whole = np.flatnonzero(~release.hidden), np.rint(count)
        sure = (1.0 - 2.0 * np.abs(count - whole))[shown]
        return Claims.ranked(shown.tolist(), whole[shown].astype(int).tolist(), sure)


@dataclass(frozen=True)
class WeightDecimals(PublicAttack):
    """Claims weighted counts, less the only noise that leaves a sum of weights.

    Noise comes in multiples of `knowledge.extra["mean_weight"]`; sums of weights have few decimals.

    Args:
      decimals: How many decimals weights have.
    """

    decimals: int = 0
    name: ClassVar[str] = "decimals"
    remedy: ClassVar[str] = "steps of the declared mean weight at least (grid=)"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No weighted counts, no mean weight, or noise whose law is not told."""
        if why := WeightedSteps().refusal(release, knowledge):
            return why
        try:
            law_of(release)
        except DiscreetError as error:
            return str(error).rstrip(".")
        return ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Shown cells by their positions; nothing is drawn."""
        law, step = law_of(release), float(knowledge.extra["mean_weight"])
        z = np.asarray(release.z, dtype=np.float64)
        left = z[:, None] - law.deviations * step
        inner = left * 10.0**self.decimals
        fits = (np.abs(inner - np.rint(inner)) < _NEARLY) & (inner > -_NEARLY)
        chance = np.where(fits, law.probabilities(_LARGE), 0.0)
        best, rows = chance.argmax(axis=1), np.arange(len(z))
        some = np.flatnonzero((z > 0) & ~release.hidden & (chance.max(axis=1) > 0))
        sure = chance[rows, best][some] / chance.sum(axis=1)[some]
        said = np.round(left[rows, best][some], self.decimals)
        return Claims.ranked(some.tolist(), said.tolist(), sure)


@dataclass(frozen=True)
class QualityClasses(PublicAttack):
    """Claims the likeliest count of a cell after its class of quality was seen.

    The baseline is the likeliest count by the law of the noise alone.
    """

    name: ClassVar[str] = "quality-classes"
    beside: ClassVar[Literal["bare"]] = "bare"
    remedy: ClassVar[str] = "fewer classes, or a smaller probability that a class is kept (keep)"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """No classes, or noise whose law is not told."""
        if release.unit != COUNT:
            return "the values are no counts"
        if release.quality is None:
            return "no cell has a class of quality"
        try:
            law_of(release)
        except DiscreetError as error:
            return str(error).rstrip(".")
        return ""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Cells with a class, by their positions; where classes are taken away, the same cells."""
        law = law_of(release)
        chance = law.probabilities(_LARGE)
        z = np.asarray(release.z, dtype=np.int64)
        quality = release.quality
        if quality is None:  # what is shown as zero, or hidden, never has one
            quality = np.where((z > 0) & ~release.hidden, 0, -1)
        graded = np.flatnonzero(quality >= 0)
        steps = [s for s in release.statement.steps if s.name == "protect:quality"]
        likely = [chance]
        if release.quality is not None and steps:
            likely = [chance * seen for seen in _seen(steps[-1], law.deviations)]
        best = np.array([law.deviations[each.argmax()] for each in likely])
        share = np.array([each.max() / each.sum() for each in likely])
        said = np.maximum(z - best[quality], 0)[graded]
        return Claims.ranked(graded.tolist(), said.tolist(), share[quality[graded]])


def _seen(step: Step, deviations: Any) -> list[Any]:
    """How likely each class is shown, by deviation."""
    edges, keep = list(step.parameters["edges"]), float(step.parameters["keep"])
    own, classes = np.searchsorted(edges, np.abs(deviations)), len(edges) + 1
    return [keep * (own == k) + (1 - keep) / classes for k in range(classes)]
