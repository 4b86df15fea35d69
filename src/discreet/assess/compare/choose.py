"""Which rows of a comparison speak for a measure, and which method they speak for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.assess.compare.judge import STAGES
from discreet.assess.listing import grouped
from discreet.errors import ParameterError, UnknownNameError

if TYPE_CHECKING:
    import pyarrow as pa

RISKS = (
    "exact-disclosure-own",
    "disclosure-probability-own",
    "unchanged-small-cells",
    "unchanged-cells",
)
UTILITIES = ("hellinger-utility", "mean-absolute-deviation")

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Selection:
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
        things = grouped((line["on"], line["label"]) for line in self.lines)
        if len(things) < 2:
            return ""
        listed = "; ".join(f"{on} for {', '.join(labels)}" for on, labels in things.items())
        return f"{self.measure} is that of {listed}."

    def by_method(self) -> dict[tuple[str, str], Line]:
        """Rows by label and fitter; as published, the fitter is empty."""
        return {(line["label"], line["fitter"]): line for line in self.lines}


def selected(frame: pa.Table, measure: str) -> Selection:
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
    return Selection(name, chosen, lines, _missing(frame, here, lines))


def _one_each(rows: Sequence[Line]) -> tuple[Line, ...]:
    """A row for each method and fitter; of counts and weights what most methods have."""
    common = [on for on, _ in Counter(row["on"] for row in rows).most_common()]
    found: dict[tuple[str, str], Line] = {}
    for row in sorted(rows, key=lambda row: -common.index(row["on"])):
        found[row["label"], row["fitter"]] = row
    return tuple(row for row in rows if row is found[row["label"], row["fitter"]])


def _missing(frame: pa.Table, rows: Sequence[Line], lines: Sequence[Line]) -> dict[str, str]:
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


def first_of(frame: pa.Table, names: tuple[str, ...], kind: str) -> Selection:
    """The first measure of a list that has values, or else the first of its kind that has."""
    taken = [r["measure"] for r in frame.to_pylist() if r["replicates"] and r["kind"] == kind]
    for name in (*names, *taken):
        if name in taken:
            return selected(frame, name)
    raise ParameterError(
        f"no measure of {kind} has values in this comparison; take one such as {names[-1]!r}."
    )


def is_dominated(point: tuple[float, float], others: list[tuple[float, float]]) -> bool:
    """Whether another point is at least as good in both losses and better in one.

    >>> is_dominated((1, 2), [(1, 2), (0, 2)]), is_dominated((1, 2), [(1, 2), (0, 3)])
    (True, False)
    """
    return any(a <= point[0] and b <= point[1] and (a, b) != point for a, b in others)


def paired(first: Selection, second: Selection) -> list[tuple[Line, Line]]:
    """Rows of two measures that belong together: same method, same fitter where both have one."""
    of_second = second.by_method()
    pairs = []
    for (label, fitter), line in first.by_method().items():
        fitting = [
            other
            for (name, used), other in of_second.items()
            if name == label and (used == fitter or "" in (used, fitter))
        ]
        pairs += [(line, other) for other in fitting]
    return pairs
