"""A member of a cluster works out the others from the sums and squares that the file keeps."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Real, Whole
from discreet.assessment.measure import NotApplicableError, Score
from discreet.assessment.microdata.record_sets import RecordMeasure
from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.attacks.leverage import Near
from discreet.attacks.public_side import ask
from discreet.attacks.scoring import Finding, judge
from discreet.errors import DataError
from discreet.frames import read_frame
from discreet.randomness import stream
from discreet.synthesis.result import Synthesized, read_records

EXACT = 1e-6
"""Share of a value within which it counts as solved for."""
_MOST_UNKNOWN = 4  # whole numbers that are searched for; five take minutes
_WIDEST = 20_000  # largest sum of squared deviations whose lattice is searched


@dataclass(frozen=True)
class ClusterInsider(PublicAttack):
    """Claims the values of the others in the insider's cluster, as a set.

    Two unknown values follow from their sum and sum of squares. More are searched for among whole
    numbers, where the intruder knows them to be whole: all candidates are found, and one of them is
    claimed. Targets are pairs of a column and the positions of the others.

    `knowledge.extra` holds `row`, the insider's position; `values`, the own values by column; and
    `whole`, whether values are whole numbers.

    Attributes:
      clusters: The column of clusters; the whole file is one if absent.
    """

    clusters: str | None = None
    name: ClassVar[str] = "cluster-insider"
    about: ClassVar[About] = "clusters"
    remedy: ClassVar[str] = "make clusters larger: k + 3 residual degrees of freedom"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Claims for each confidential column, with one over the number of candidates."""
        own, row = knowledge.extra["values"], int(knowledge.extra["row"])
        labels = cluster_labels(release.frame, self.clusters)
        members = np.flatnonzero(labels == labels[row])
        others = tuple(int(i) for i in members if i != row)
        targets, values, sure = [], [], []
        for name in release.confidential:
            made = _column(release.frame, name)[members]
            total, squares = made.sum() - own[name], (made**2).sum() - own[name] ** 2
            is_whole = bool(knowledge.extra.get("whole"))
            found = candidates(total, squares, len(others), is_whole=is_whole)
            if found:
                targets.append((name, others))
                values.append(Near(found[int(rng.integers(len(found)))], EXACT))
                sure.append(1 / len(found))
        return Claims.ranked(targets, values, sure)


@dataclass(frozen=True)
class InsiderDisclosure(RecordMeasure):
    """Share of clusters in which one member works out the values of all others.

    The first record of each cluster is the insider. Guessing is never right. Range: 0 to 1. Lower
    is safer. The breakdown counts clusters, those with a claim, and those in which it is right.

    Args:
      clusters: The column of clusters; the whole file is one if absent.
    """

    name = "cluster-insiders"
    kind = "risk"

    clusters: str | None = None

    def __call__(self, original: Any, synthetic: Any) -> Score:
        """The share of clusters that are seen through; records of one model only."""
        if not isinstance(synthetic, Synthesized) or synthetic.method == "mixed":
            raise NotApplicableError("the records must be those of one model, row by row.")
        finding = judge_insiders(ClusterInsider(self.clusters), original, synthetic)
        parts = {
            "targets": [finding.tally.targets],
            "claims": [finding.tally.claims],
            "right": [int(finding.tally.right.sum())],
        }
        return self.score(finding.tally.recall, ", ".join(synthetic.confidential), parts)


def judge_insiders(attack: Any, original: Any, synthetic: Synthesized) -> Finding:
    """The first member of each cluster against the others."""
    before = read_records(original).table
    columns = {name: _column(before, name) for name in synthetic.confidential}
    labels = cluster_labels(before, attack.clusters)
    truth: dict[Hashable, Any] = {}
    every, rng = [], stream(0, "cluster-insiders")
    for row in np.unique(labels, return_index=True)[1].tolist():
        others = tuple(int(i) for i in np.flatnonzero(labels == labels[row]) if i != row)
        if not others:
            continue
        for name, values in columns.items():
            truth[name, others] = tuple(sorted(values[list(others)].tolist()))
        own = {name: float(values[row]) for name, values in columns.items()}
        is_whole = all((values == np.rint(values)).all() for values in columns.values())
        known = Knowledge(extra={"row": row, "values": own, "whole": is_whole})
        every.append(ask(attack, synthetic, known, rng=rng, plain=[Near]))
    claims = Claims.ranked(
        [target for each in every for target in each.targets],
        [value for each in every for value in each.values],
        np.concatenate([each.confidence for each in every]) if every else np.zeros(0),
    )
    return judge(claims, truth, attack=attack.name, baseline=0.0)


def candidates(
    total: float, squares: float, n: int, *, is_whole: bool = False
) -> list[tuple[float, ...]]:
    """All sets of n values, in increasing order, with a sum and a sum of squares.

    Values are real where there are one or two; more are searched for among whole numbers, and
    there are none to tell where that cannot be done.
    """
    if n == 1:
        return [(float(total),)]
    if n == 2:
        half = math.sqrt(max(squares / 2 - total**2 / 4, 0.0))
        return [(float(total / 2 - half), float(total / 2 + half))]
    deviation = squares - total**2 / n
    if not is_whole or n > _MOST_UNKNOWN or deviation > _WIDEST:
        return []
    found = whole_numbers(round(total), round(squares), n)
    return [tuple(float(x) for x in reversed(each)) for each in found]


def whole_numbers(total: int, squares: int, n: int, most: int | None = None) -> Iterator[Any]:
    """Whole numbers in decreasing order with a sum and a sum of squares."""
    if n == 1:
        if total * total == squares and (most is None or total <= most):
            yield (total,)
        return
    spread = n * squares - total * total  # n times the sum of squared deviations
    if spread < 0:
        return
    low = -(-total // n)
    high = (total + math.isqrt(spread * (n - 1))) // n
    for x in range(low, (high if most is None else min(high, most)) + 1):
        for rest in whole_numbers(total - x, squares - x * x, n - 1, x):
            yield (x, *rest)


def cluster_labels(frame: Any, clusters: str | None) -> Whole:
    """The cluster of each record by number; one for all where no column is named."""
    table = read_frame(frame)
    if clusters is None:
        return np.zeros(len(table), dtype=np.int64)
    if clusters not in table.column_names:
        raise DataError(f"there is no column {clusters!r} of clusters in these records.")
    texts = np.array([str(value) for value in table.column(clusters).to_pylist()])
    return np.asarray(np.unique(texts, return_inverse=True)[1], dtype=np.int64)


def _column(frame: Any, name: str) -> Real:
    values = read_frame(frame).column(name).to_numpy()
    return np.asarray(values, dtype=np.float64)
