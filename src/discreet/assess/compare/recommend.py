"""Which method to take, by the thresholds of whoever decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.assess.compare.choose import Line, Selection, loss
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.assess.compare.comparison import Comparison


@dataclass(frozen=True)
class Verdict:
    """One method against one threshold.

    Attributes:
      label: The method.
      measure: The measure, with its stage.
      threshold: What is acceptable.
      direction: Which side of it is better.
      mean: Mean over the draws.
      share: Share of the draws that are acceptable: the chance for the one that is released.
    """

    label: str
    measure: str
    threshold: float
    direction: str
    mean: float
    share: float

    @property
    def is_met(self) -> bool:
        """Whether the mean is acceptable."""
        return loss(self.mean, self.direction) <= loss(self.threshold, self.direction)

    @property
    def condition(self) -> str:
        """What is asked for, in words."""
        side = {"lower": "at most", "higher": "at least", "zero": "within"}[self.direction]
        return f"{self.measure} {side} {self.threshold:g}"


@dataclass(frozen=True)
class Recommendation:
    """Every method against every threshold, and the most useful one that meets them all.

    Attributes:
      verdicts: All methods against all thresholds.
      utility: The measure of utility that decides between acceptable methods.
      chosen: The method to take; `None` when none is acceptable or nothing was asked for.
    """

    verdicts: tuple[Verdict, ...]
    utility: str
    chosen: str | None

    @property
    def sentence(self) -> str:
        """The recommendation in plain words."""
        if not self.verdicts:
            return "No thresholds were given, so nothing is recommended."
        asked = "; ".join(dict.fromkeys(v.condition for v in self.verdicts))
        if self.chosen is None:
            return f"No method meets all thresholds ({asked})."
        share = min(v.share for v in self.verdicts if v.label == self.chosen)
        beware = " Most single draws do not meet them all." if share < 0.5 else ""
        return (
            f"{self.chosen}: of the methods that meet all thresholds in the mean ({asked}) it has "
            f"the best {self.utility}. A single draw meets each of them in at least "
            f"{100 * share:.0f} of 100 cases.{beware}"
        )


def recommend(found: Comparison, thresholds: Mapping[str, float]) -> Recommendation:
    """The most useful method among those that meet every threshold in the mean.

    Where several fitters were used, the one that puts a method in the worst light counts.

    Args:
      found: The comparison.
      thresholds: By measure what is acceptable; ``name@published`` or ``name@fitted`` names the
        stage. Measures that are better when higher must reach it, others must not exceed it.
    """
    verdicts = [v for name, limit in thresholds.items() for v in _verdicts(found, name, limit)]
    failed = {v.label for v in verdicts if not v.is_met}
    ranked = [line["label"] for line in found.ranking()]
    acceptable = [label for label in ranked if label not in failed]
    chosen = acceptable[0] if verdicts and acceptable else None
    return Recommendation(tuple(verdicts), found.utility().title, chosen)


def _verdicts(found: Comparison, name: str, limit: Any) -> list[Verdict]:
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        raise ParameterError(f"the threshold of {name!r} must be a number, got {limit!r}.")
    chosen = found[name]
    verdicts = []
    for label in found.labels:
        lines = [line for line in chosen.lines if line["label"] == label]
        if lines:
            worst = max(lines, key=lambda line: loss(line["mean"], chosen.direction))
            share = float(_acceptable(draws_of(found, chosen, worst), limit, chosen).mean())
            verdicts.append(
                Verdict(label, chosen.title, limit, chosen.direction, worst["mean"], share)
            )
    return verdicts


def draws_of(found: Comparison, chosen: Selection, line: Line) -> NDArray[np.float64]:
    """The scores of single draws behind a row."""
    import pyarrow.compute as pc

    mask = pc.equal(found.replicates["measure"], chosen.measure)
    for name in ("label", "stage", "fitter", "on"):
        mask = pc.and_(mask, pc.equal(found.replicates[name], line[name]))
    return np.asarray(found.replicates.filter(mask)["value"].to_numpy())


def _acceptable(values: NDArray[np.float64], limit: float, chosen: Selection) -> NDArray[np.bool_]:
    turned = np.array([loss(v, chosen.direction) for v in values])
    return turned <= loss(limit, chosen.direction)
