"""All schemes on a table with and without its zeros, at both ε; weights, and cells as examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from discreet.arrays import Real
from discreet.design.base import Cell
from discreet.progress import report
from discreet.randomness import stream
from discreet_studies.inner_frequencies import printed
from discreet_studies.inner_frequencies.schemes import (
    PARTS,
    Data,
    Released,
    Schemes,
    deviation,
    utility,
    zeros_kept,
)

EPSILONS = (0.5, 1.5)
KINDS = ("with zeros", "without zeros")
WEIGHTED = ("without zeros", 1.5)
EXACT_EXAMPLE = ("with zeros", 0.5, "3-way (2-way exact)")

Setting = tuple[str, float]


@dataclass(frozen=True)
class SchemeScores:
    """What one scheme gives: utility and deviation by part, and the bias of the total.

    Attributes:
      utility: Hellinger utility.
      deviation: Mean absolute deviation.
      bias: Percent by which the total is too large.
      shortfall: In which way the fit fell short of its tolerance, if it did.
    """

    utility: dict[str, float]
    deviation: dict[str, float]
    bias: float
    shortfall: str = ""

    @classmethod
    def of(cls, data: Data, released: Released) -> SchemeScores:
        """Measure a release against the truth."""
        return cls(
            _by_part(data.true, released, utility),
            _by_part(data.true, released, deviation),
            _bias(data, released),
            released.shortfall,
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
class SchemeResults:
    """Scores of every scheme, by kind of data and ε.

    Attributes:
      scores: By setting and scheme.
      weights: Scores by weight of the exact margins.
      zeros: Inner zeros kept, and all, in the example of Table 8.
      examples: Its cells, by part.
      sizes: Numbers of cells and records, and scales of the noise, by their names in section 4.
    """

    scores: dict[Setting, dict[str, SchemeScores]]
    weights: dict[str, SchemeScores]
    zeros: tuple[int, int]
    examples: dict[str, list[ExampleCell]] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)

    def __call__(self, kind: str, epsilon: float, scheme: str) -> SchemeScores:
        """The scores of one scheme."""
        return self.scores[kind, epsilon][scheme]

    @property
    def shortfalls(self) -> list[str]:
        """Fits that did not reach their tolerance, and how far they came."""
        fits = {
            f"{scheme}, {kind}, ε = {epsilon}": scores
            for (kind, epsilon), found in self.scores.items()
            for scheme, scores in found.items()
        } | {f"weight {weight}": scores for weight, scores in self.weights.items()}
        return [f"{name}: {fit.shortfall}" for name, fit in fits.items() if fit.shortfall]


def all_results(complete: Data, seed: int) -> SchemeResults:
    """Run everything of section 4; on the paper's sizes this takes some minutes."""
    forms = {"with zeros": complete, "without zeros": complete.without_zeros()}
    scores: dict[Setting, dict[str, SchemeScores]] = {}
    kept, examples = (0, 0), {}
    for kind, data in forms.items():
        for epsilon in EPSILONS:
            found: dict[str, SchemeScores] = {}
            schemes = Schemes(data, epsilon, seed)
            for name, released in schemes.all():
                found[name] = SchemeScores.of(data, released)
                if (kind, epsilon, name) == EXACT_EXAMPLE:
                    kept = zeros_kept(data, released)
                    examples = _examples(schemes, released)
            scores[kind, epsilon] = found
    weights = _weights(forms[WEIGHTED[0]], scores[WEIGHTED], seed)
    return SchemeResults(scores, weights, kept, examples, _sizes(complete, scores))


def quick_results(complete: Data, seed: int) -> SchemeResults:
    """Scores of the schemes without exact two-way margins, for verdicts over seeds."""
    forms = {"with zeros": complete, "without zeros": complete.without_zeros()}
    scores = {
        (kind, epsilon): {
            name: SchemeScores.of(data, released)
            for name, released in Schemes(data, epsilon, seed).all(quick=True)
        }
        for kind, data in forms.items()
        for epsilon in EPSILONS
    }
    return SchemeResults(scores, {}, (0, 0), sizes=_sizes(complete, scores))


def _sizes(data: Data, scores: dict[Setting, dict[str, SchemeScores]]) -> dict[str, float]:
    """The figures of section 4 that describe the table."""
    sizes = {"records": float(data.y.sum())}
    for part, name in (
        ("inner", "inner cells"),
        ("2-way", "2-way cells"),
        ("3-way", "3-way cells"),
    ):
        sizes[name] = len(data.true[part])
        sizes[f"{name}, not empty"] = int(np.count_nonzero(data.true[part]))
    noisy = {"inner cells": "inner", "3-way (no fitting)": "3-way", "2-way (no fitting)": "2-way"}
    for scheme, part in noisy.items():
        name = f"scale of noise, {scheme.removesuffix(' (no fitting)')}, ε = 0.5"
        sizes[name] = scores["with zeros", 0.5][scheme].deviation[part]
    return sizes


def _examples(schemes: Schemes, released: Released) -> dict[str, list[ExampleCell]]:
    rng = stream(schemes.seed, "inner frequencies, example cells")
    noisy = Released({"3-way": schemes.noisy_three})
    return example_cells(schemes.data, noisy, released, rng)


def _weights(data: Data, known: dict[str, SchemeScores], seed: int) -> dict[str, SchemeScores]:
    """Scores by weight of the exact margins; no weight and weight alone were fitted before."""
    ends = {"0": known["3-way"], "∞": known["nothing (2-way exact)"]}
    schemes, found = Schemes(data, WEIGHTED[1], seed), {}
    for done, text in enumerate(printed.WEIGHTS, start=1):
        given = ends.get(text)
        found[text] = given or SchemeScores.of(data, schemes.weigh_margins(float(text)))
        report("weights of exact margins", done / len(printed.WEIGHTS))
    return found


@dataclass(frozen=True)
class ExampleCell:
    """One cell before and after.

    Attributes:
      cell: Its codes, totals left out.
      original: Its true count.
      perturbed: The count with noise, where the part has noise of its own.
      fitted: What is released.
    """

    cell: Cell
    original: float
    perturbed: float | None
    fitted: float


def example_cells(
    data: Data, noisy: Released, fitted: Released, rng: np.random.Generator
) -> dict[str, list[ExampleCell]]:
    """Cells of each part with the printed counts, or the nearest there are.

    Args:
      data: The table.
      noisy: Counts with noise, by part.
      fitted: What is released, by part.
      rng: Chooses among cells that are equally near.
    """
    found: dict[str, list[ExampleCell]] = {}
    for part, rows in printed.EXAMPLES.items():
        wanted = [float(original) for original, _, _ in rows]
        found[part] = [
            ExampleCell(
                _cell(data, part, place),
                float(data.true[part][place]),
                float(noisy[part][place]) if part in noisy else None,
                float(fitted[part][place]),
            )
            for place in _nearest(data.true[part], wanted, rng)
        ]
    return found


def _nearest(counts: Real, wanted: list[float], rng: np.random.Generator) -> list[int]:
    """A cell for each wanted count, none of them twice."""
    places: list[int] = []
    for count in wanted:
        gap = np.abs(counts - count)
        gap[places] = np.inf
        places.append(int(rng.choice(np.flatnonzero(gap == gap.min()))))
    return places


def _cell(data: Data, part: str, place: int) -> Cell:
    if part == "inner":
        return data.three.inner_cell(place)
    return (data.two if part == "2-way" else data.three).cell(place)
