"""Which method to take, by the thresholds of whoever decides; it may be none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

from discreet.assessment.assess import group_by_key
from discreet.assessment.compare.summary import Line, MeasureRows, draws_of, tied_with_first
from discreet.assessment.measure import loss
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.assessment.compare.comparison import Comparison

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class ThresholdVerdict:
    """One method against one threshold.

    Attributes:
      label: The method.
      measure: The measure, with its stage.
      threshold: What is acceptable.
      direction: Which side of it is better.
      mean: Mean over the draws; `None` when the measure was not taken.
      acceptable: Of each draw whether it is acceptable; a draw without a value is not.
      missing: Why the measure was not taken for every draw; empty when it was.
    """

    label: str
    measure: str
    threshold: float
    direction: str
    mean: float | None
    acceptable: tuple[bool, ...]
    missing: str = ""

    @property
    def is_met(self) -> bool:
        """Whether every draw was measured and the mean is acceptable."""
        if self.mean is None or self.missing:
            return False
        return loss(self.mean, self.direction) <= loss(self.threshold, self.direction)

    @property
    def condition(self) -> str:
        """What is asked for, in words."""
        side = {"lower": "at most", "higher": "at least", "zero": "within"}[self.direction]
        return f"{self.measure} {side} {self.threshold:g}"

    @property
    def outcome(self) -> str:
        """What came out, in words."""
        if self.missing or self.mean is None:
            return f"not measured, so not met: {self.missing}"
        return f"{self.mean:.3g}: {'met' if self.is_met else 'not met'}"


@dataclass(frozen=True)
class Recommendation:
    """Every method against every threshold, and the most useful one that meets them all.

    Attributes:
      verdicts: All methods against all thresholds.
      utility: The measure of utility that decides between acceptable methods; empty without one.
      chosen: The method to take; `None` when none is acceptable or nothing was asked for.
      tied: Acceptable methods whose utility differs from that of the chosen one by chance only.
      above: Methods that could not be tuned to the equal risk, and are not acceptable therefore.
      remarks: Measures that are not of the same thing for all methods.
    """

    verdicts: tuple[ThresholdVerdict, ...]
    utility: str = ""
    chosen: str | None = None
    tied: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The recommendation in plain words."""
        if not self.verdicts:
            return "No thresholds were given, so nothing is recommended."
        above = f"Above the equal risk: {', '.join(self.above)}." if self.above else ""
        lacking = group_by_key((v.measure, v.label) for v in self.verdicts if v.missing)
        listed = "; ".join(f"{name} for {', '.join(labels)}" for name, labels in lacking.items())
        unmeasured = f"Not measured in every draw, and therefore not met: {listed}."
        parts = (self._choice(), unmeasured if listed else "", above, *self.remarks)
        return " ".join(filter(None, parts))

    def _choice(self) -> str:
        asked = "; ".join(dict.fromkeys(v.condition for v in self.verdicts))
        if not self.utility:
            return f"No measure of utility was taken to choose by ({asked})."
        if self.chosen is None:
            return f"No method meets all thresholds ({asked})."
        own = [v.acceptable for v in self.verdicts if v.label == self.chosen]
        together = np.all(own, axis=0)
        met, draws = int(together.sum()), len(together)
        alike = f" {', '.join(self.tied)} cannot be told apart from it." if self.tied else ""
        beware = " Most single draws do not meet them all." if met < draws / 2 else ""
        return (
            f"{self.chosen}: of the methods that meet all thresholds in the mean ({asked}) it has "
            f"the best {self.utility}.{alike} {met} of {draws} draws meet all of them; with 95 % "
            f"confidence a release does so in at least {int(100 * least_share(met, draws))} of 100 "
            f"cases.{beware}"
        )


def least_share(met: int, draws: int) -> float:
    """The share of all draws that meet a condition at least, with 95 % confidence.

    The exact bound for a binomial share (Clopper and Pearson's), which is never too optimistic.

    >>> [round(least_share(met, 10), 3) for met in (0, 5, 10)]
    [0.0, 0.222, 0.741]
    """
    return float(betaincinv(met, draws - met + 1, 1 - _CONFIDENCE)) if met else 0.0


def recommend(found: Comparison, thresholds: Mapping[str, float]) -> Recommendation:
    """The most useful method among those that meet every threshold in the mean.

    A threshold is not met by a method for which its measure was not taken in every draw. Where
    several fitters were used, the one that puts a method in the worst light counts.

    Args:
      found: The comparison.
      thresholds: By measure what is acceptable; ``name@published`` or ``name@fitted`` names the
        stage. Measures that are better when higher must reach it, others must not exceed it.
    """
    verdicts, remarks = [], []
    for name, limit in thresholds.items():
        if isinstance(limit, bool) or not isinstance(limit, (int, float)):
            raise ParameterError(f"the threshold of {name!r} must be a number, got {limit!r}.")
        chosen = found[name]
        verdicts += [_verdict(found, chosen, label, limit) for label in found.labels]
        remarks.append(chosen.remark)
    above = tuple(t.label for t in found.tuning if not t.reached)
    advice = Recommendation(tuple(verdicts), above=above, remarks=tuple(remarks))
    if not verdicts or "utility" not in found.kinds:
        return advice
    utility = found.utility()
    failed = {v.label for v in verdicts if not v.is_met}.union(above)
    worst: dict[str, Line] = {}
    for line in reversed(found.ranking()):  # from the worst: of several fitters the worst counts
        worst.setdefault(line["label"], line)
    acceptable = [line for line in reversed(worst.values()) if line["label"] not in failed]
    if not acceptable:
        return replace(advice, utility=utility.title)
    tied = tuple(x["label"] for x in tied_with_first(found.replicates, utility, acceptable))
    return replace(advice, utility=utility.title, chosen=acceptable[0]["label"], tied=tied)


def _verdict(found: Comparison, chosen: MeasureRows, label: str, limit: float) -> ThresholdVerdict:
    way, missing = chosen.direction, chosen.missing.get(label, "")
    lines = [line for line in chosen.lines if line["label"] == label]
    if not lines:
        return ThresholdVerdict(label, chosen.title, limit, way, None, (False,), missing)
    worst = max(lines, key=lambda line: loss(line["mean"], way))
    draws = draws_of(found.replicates, chosen, worst)
    accepted = tuple(bool(loss(value, way) <= loss(limit, way)) for value in draws)
    return ThresholdVerdict(label, chosen.title, limit, way, worst["mean"], accepted, missing)
