"""Rows of a comparison: means of many draws with uncertainty, and which differ by chance only."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import stdtrit

from discreet.arrays import Real
from discreet.assessment.assess import group_by_key
from discreet.assessment.compare.job import STAGES
from discreet.assessment.measure import EVERYTHING, Measure, Score
from discreet.errors import ParameterError, UnknownNameError
from discreet.frames import Frame

WORDS = ("label", "method", "parameters", "stage", "fitter", "measure", "kind")
NUMBERS = ("mean", "sd", "standard_error", "lower", "upper")
RISKS = (
    "exact-disclosure-own",
    "disclosure-probability-own",
    "unchanged-small-cells",
    "unchanged-cells",
)
UTILITIES = ("hellinger-utility", "mean-absolute-deviation")
Line = Mapping[str, Any]
Rows = Sequence[Line]
Ends = tuple[float, float]

# With few draws 1 % on each side for normal values, so that skewed ones reach 95 % as well.
_TAIL, _TAIL_OF_FEW = 0.025, 0.01
_TIE_LEVEL = 0.05
_ROUNDING = 1e-12  # of methods that always give the same score, which has no spread to test by


def summarise(replicates: Frame, measures: Sequence[Measure]) -> Frame:
    """Mean, spread and 95 % range of every score.

    `sd` is the standard deviation between draws, `standard_error` that of the mean. A further
    draw lies between `lower` and `upper` with a probability of 95 %. A measure that never applies
    has no mean; its note says why.

    Args:
      replicates: The scores of single draws.
      measures: What was measured; ranges end at the smallest and largest value of a measure.
    """
    limits = {m.name: getattr(m, "range", EVERYTHING) for m in measures}
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in replicates.to_pylist():
        groups.setdefault(tuple(row[name] for name in WORDS), []).append(row)
    rows = [
        {**dict(zip(WORDS, key, strict=True)), **line}
        for key, found in groups.items()
        for line in _lines(found, limits.get(found[0]["measure"], EVERYTHING))
    ]
    words = dict.fromkeys((*WORDS, "on"), "string")
    numbers = dict.fromkeys(NUMBERS, "float64")
    last = dict.fromkeys(("direction", "reading", "note"), "string")
    return Frame.from_rows(rows, {**words, **numbers, "replicates": "int32", **last})


def _lines(found: Rows, limits: Ends) -> Iterator[dict[str, Any]]:
    """A line for everything that one measure was taken of; one if it never applied."""
    missing = [row for row in found if row["value"] is None]
    for on in dict.fromkeys(row["on"] for row in found if row["value"] is not None):
        taken = [row for row in found if row["value"] is not None and row["on"] == on]
        yield _line(taken, missing, limits)
    if len(missing) == len(found):
        yield _line([], missing, limits)


def _line(taken: Rows, missing: Rows, limits: Ends) -> dict[str, Any]:
    values = np.array([row["value"] for row in taken])
    line: dict[str, Any] = {"replicates": len(values), "note": _note(taken, missing)}
    if taken:
        first = taken[0]
        score = Score(first["measure"], 0.0, first["kind"], (0, 1), first["direction"])
        line |= {"on": first["on"], "direction": first["direction"], "reading": score.reading}
    return {**line, **spread(values, limits)}


def spread(values: Real, limits: Ends = EVERYTHING) -> dict[str, float | None]:
    """Mean, standard deviation, standard error and 95 % range of the draws.

    >>> spread(np.array([1.0, 2.0, 3.0]))["standard_error"]
    0.5773502691896258
    """
    if not len(values):
        return dict.fromkeys(NUMBERS)
    sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    ends = prediction_range(values, limits)
    numbers = (float(values.mean()), sd, sd / math.sqrt(len(values)), *ends)
    return dict(zip(NUMBERS, numbers, strict=True))


def prediction_range(values: Real, limits: Ends = EVERYTHING) -> tuple[float | None, float | None]:
    r"""The range in which a further draw lies with a probability of at least 95 %.

    From 39 draws on it ends at two order statistics, :math:`x_{(r)}` and :math:`x_{(n+1-r)}` with
    :math:`r = \lfloor 0.025(n+1) \rfloor`, whatever the distribution. With fewer draws even the
    smallest and the largest are too near to each other: the range also holds
    :math:`\bar x \pm t_{n-1}\,s\sqrt{1 + 1/n}`, with 1 % on each side for normal values, so that
    skewed ones reach 95 % as well. One draw has no range, and fewer than seven equal draws say
    little about the next one.

    >>> prediction_range(np.arange(39.0)), prediction_range(np.array([4.0]))
    ((0.0, 38.0), (None, None))
    """
    n = len(values)
    if n < 2:
        return None, None
    rank = int(_TAIL * (n + 1) + 1e-9)
    if rank:
        ends = np.partition(values, (rank - 1, n - rank))[[rank - 1, n - rank]]
        return float(ends[0]), float(ends[1])
    reach = stdtrit(n - 1, 1 - _TAIL_OF_FEW) * values.std(ddof=1) * math.sqrt(1 + 1 / n)
    low = min(values.mean() - reach, values.min())
    high = max(values.mean() + reach, values.max())
    return float(max(low, limits[0])), float(min(high, limits[1]))


def _note(taken: Rows, missing: Rows) -> str | None:
    """Why some draws have no value, and how many fits did not end as they should."""
    draws = len({row["replicate"] for row in (*taken, *missing)})
    reasons = Counter(row["note"] for row in missing) if len(taken) < draws else {}
    fits = Counter(row["fit"] for row in taken if row["fit"] not in ("", "converged"))
    lines = [
        reason if n == draws else f"in {n} of {draws} draws: {reason}"
        for reason, n in reasons.items()
    ]
    lines += [f"the fit ended as {fit!r} in {n} of {draws} draws." for fit, n in fits.items()]
    return " ".join(lines) or None


@dataclass(frozen=True)
class MeasureRows:
    """A measure at one stage: after fitting, unless it is taken of published tables only.

    Attributes:
      measure: The measure's name.
      stage: `"fitted"` or `"published"`.
      lines: Its rows that have values, one for each method and fitter.
      missing: By label why a method has no value, or not one for every draw.
    """

    measure: str
    stage: str
    lines: tuple[Line, ...]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Measure and stage in words."""
        return f"{self.measure} ({self.stage})"

    @property
    def direction(self) -> str:
        """Whether higher or lower values, or values near zero, are better."""
        return str(self.lines[0]["direction"])

    @property
    def remark(self) -> str:
        """What each method was measured on, where that is not the same for all."""
        things = group_by_key((line["on"], line["label"]) for line in self.lines)
        if len(things) < 2:
            return ""
        listed = "; ".join(f"{on} for {', '.join(labels)}" for on, labels in things.items())
        return f"{self.measure} is that of {listed}."

    def by_method(self) -> dict[tuple[str, str], Line]:
        """Rows by label and fitter; as published, the fitter is empty."""
        return {(line["label"], line["fitter"]): line for line in self.lines}


def select_rows(frame: Frame, measure: str) -> MeasureRows:
    """The rows of a measure; ``name@published`` or ``name@fitted`` names the stage.

    Without a stage, the one at which most methods have values is taken, after fitting before as
    published: methods are then compared by the same thing.
    """
    name, _, stage = measure.partition("@")
    if stage and stage not in STAGES:
        raise ParameterError(f"a stage is one of {' and '.join(STAGES)}; got {stage!r}.")
    rows = [row for row in frame.to_pylist() if row["measure"] == name]
    if not rows:
        raise UnknownNameError(
            "measure of this comparison", name, dict.fromkeys(frame["measure"].to_pylist())
        )
    usable = [row for row in rows if row["replicates"] and stage in ("", row["stage"])]
    if not usable:
        note = next((row["note"] for row in rows if row["note"]), "it was not taken there.")
        raise ParameterError(f"measure {measure!r} has no values in this comparison: {note}")
    chosen = max(STAGES, key=lambda s: len({r["label"] for r in usable if r["stage"] == s}))
    here = [row for row in rows if row["stage"] == chosen]
    lines = _one_each([row for row in here if row["replicates"]])
    return MeasureRows(name, chosen, lines, _reasons_missing(frame, here, lines))


def _one_each(rows: Sequence[Line]) -> tuple[Line, ...]:
    """A row for each method and fitter; of counts and weights what most methods have."""
    common = [on for on, _ in Counter(row["on"] for row in rows).most_common()]
    found: dict[tuple[str, str], Line] = {}
    for row in sorted(rows, key=lambda row: -common.index(row["on"])):
        found[row["label"], row["fitter"]] = row
    return tuple(row for row in rows if row is found[row["label"], row["fitter"]])


def _reasons_missing(frame: Frame, rows: Sequence[Line], lines: Sequence[Line]) -> dict[str, str]:
    """Why methods have no value, or not one for every draw."""
    draws = max(frame["replicates"].to_pylist())
    found = {}
    for label in dict.fromkeys(frame["label"].to_pylist()):
        taken = [line["replicates"] for line in lines if line["label"] == label]
        if min(taken, default=0) < draws:
            own = [r for r in rows if r["label"] == label and r["note"] and r["replicates"] < draws]
            notes = " ".join(dict.fromkeys(row["note"] for row in own))
            found[label] = notes or "it was not taken at this stage."
    return found


def first_of(frame: Frame, names: tuple[str, ...], kind: str) -> MeasureRows:
    """The first measure of a list that has values, or else the first of its kind that has."""
    taken = [r["measure"] for r in frame.to_pylist() if r["replicates"] and r["kind"] == kind]
    for name in (*names, *taken):
        if name in taken:
            return select_rows(frame, name)
    raise ParameterError(
        f"no measure of {kind} has values in this comparison; take one such as {names[-1]!r}."
    )


def is_dominated(point: tuple[float, float], others: list[tuple[float, float]]) -> bool:
    """Whether another point is at least as good in both losses and better in one.

    >>> is_dominated((1, 2), [(1, 2), (0, 2)]), is_dominated((1, 2), [(1, 2), (0, 3)])
    (True, False)
    """
    return any(a <= point[0] and b <= point[1] and (a, b) != point for a, b in others)


def pair_rows(first: MeasureRows, second: MeasureRows) -> list[tuple[Line, Line]]:
    """Rows of two measures that belong together: same method, same fitter where both have one."""
    return [
        (line, other)
        for (label, fitter), line in first.by_method().items()
        for (name, used), other in second.by_method().items()
        if name == label and (used == fitter or "" in (used, fitter))
    ]


def draws_of(replicates: Frame, chosen: MeasureRows, line: Line) -> Real:
    """The score of every draw behind a row; not-a-number where a draw has none."""
    mask = replicates["measure"].equal(chosen.measure)
    for name in ("label", "stage", "fitter", "on"):
        mask &= replicates[name].equal(line[name])
    found = replicates.filter(mask)
    values = np.full(replicates["replicate"].to_numpy().max() + 1, np.nan)
    values[found["replicate"].to_numpy()] = found["value"].to_numpy()
    return values


def tied_with_first(replicates: Frame, chosen: MeasureRows, lines: Sequence[Line]) -> list[Line]:
    """The rows after the first one that differ from it by no more than chance."""
    draws = []
    for line in lines:
        values = draws_of(replicates, chosen, line)
        # Values better near zero may lie on both sides of it; what counts is how far their means
        # lie from it. Turned to the positive side, two methods can be compared draw by draw.
        sign = np.sign(np.nanmean(values)) or 1.0 if chosen.direction == "zero" else 1.0
        draws.append(values * sign)
    pairs = zip(lines[1:], draws[1:], strict=True)
    return [line for line, own in pairs if is_tied(draws[0], own)]


def is_tied(first: Real, second: Real) -> bool:
    """Whether two series of draws differ in the mean by no more than chance.

    A paired t test at the 5 % level: draws of the same number share their random numbers where
    methods have some in common. Fewer than two draws tell nothing apart.

    >>> is_tied(np.array([1.0, 2.0, 3.0]), np.array([1.1, 2.1, 3.11]))
    False
    >>> is_tied(np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.5]))
    True
    """
    gaps = (first - second)[~np.isnan(first - second)]
    if len(gaps) < 2:
        return True
    error = gaps.std(ddof=1) / math.sqrt(len(gaps))
    reach = stdtrit(len(gaps) - 1, 1 - _TIE_LEVEL / 2) * error
    return bool(abs(gaps.mean()) <= reach + _ROUNDING * np.nanmax(np.abs(first)))
