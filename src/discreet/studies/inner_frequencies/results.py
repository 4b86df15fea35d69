"""All schemes on a table with and without its zeros, at both ε, and the study of weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from discreet.progress import report
from discreet.randomness import stream
from discreet.studies.inner_frequencies import printed
from discreet.studies.inner_frequencies.schemes import (
    HEAVY,
    PARTS,
    Data,
    Real,
    Released,
    Schemes,
    deviation,
    utility,
    zeros_kept,
)

EPSILONS = (0.5, 1.5)
KINDS = ("with zeros", "without zeros")
WEIGHTED = ("without zeros", 1.5)
EXACT_EXAMPLE = ("with zeros", 0.5)

Setting = tuple[str, float]


@dataclass(frozen=True)
class Scores:
    """What one scheme gives: utility and deviation by part, and the bias of the total."""

    utility: dict[str, float]
    deviation: dict[str, float]
    bias: float

    @classmethod
    def of(cls, data: Data, released: Released) -> Scores:
        """Measure a release against the truth."""
        return cls(
            _by_part(data.true, released, utility),
            _by_part(data.true, released, deviation),
            _bias(data, released),
        )


def _by_part(
    true: Released, released: Released, measure: Callable[[Real, Real], float]
) -> dict[str, float]:
    return {part: measure(true[part], released[part]) for part in PARTS if part in released}


def _bias(data: Data, released: Released) -> float:
    """Percent by which the total is too large."""
    if "inner" not in released:
        return float("nan")
    total = float(data.y.sum())
    return 100 * (float(released["inner"].sum()) - total) / total


@dataclass(frozen=True, eq=False)
class Results:
    """Scores of every scheme, by kind of data and ε.

    Attributes:
      scores: By setting and scheme.
      weights: Scores by weight of the exact margins.
      zeros: Inner zeros kept, and all, in the example of Table 8.
    """

    scores: dict[Setting, dict[str, Scores]]
    weights: dict[str, Scores]
    zeros: tuple[int, int]

    def __call__(self, kind: str, epsilon: float, scheme: str) -> Scores:
        """The scores of one scheme."""
        return self.scores[kind, epsilon][scheme]


def all_results(complete: Data, seed: int) -> Results:
    """Run everything of section 4; on the paper's sizes this takes many minutes."""
    forms = {"with zeros": complete, "without zeros": complete.without_zeros()}
    scores: dict[Setting, dict[str, Scores]] = {}
    kept = (0, 0)
    for kind, data in forms.items():
        for epsilon in EPSILONS:
            found: dict[str, Scores] = {}
            for name, released in _schemes(data, epsilon, kind, seed).all():
                found[name] = Scores.of(data, released)
                if (kind, epsilon, name) == (*EXACT_EXAMPLE, "3-way (2-way exact)"):
                    kept = zeros_kept(data, released)
            scores[kind, epsilon] = found
    return Results(scores, _weights(forms[WEIGHTED[0]], seed), kept)


def _schemes(data: Data, epsilon: float, kind: str, seed: int) -> Schemes:
    name = f"inner frequencies, {kind}, {epsilon}"
    return Schemes(data, epsilon, lambda part: stream(seed, f"{name}, {part}"))


def _weights(data: Data, seed: int) -> dict[str, Scores]:
    schemes = _schemes(data, WEIGHTED[1], WEIGHTED[0], seed)
    found: dict[str, Scores] = {}
    tried = [text for text in printed.WEIGHTS if float(text) <= HEAVY]
    for text in tried:
        found[text] = Scores.of(data, schemes.weighted(float(text)))
        report("weights of exact margins", len(found) / len(tried))
    return found
