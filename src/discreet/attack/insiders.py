r"""Synthetic records work out others: insiders of a cluster, and large units.

A member of a cluster works out the others from the sums and squares that the file keeps.

Fits and sums of squares are those of the original, and everybody computes them from the file. A
record of leverage h is its own fit up to :math:`\sigma\sqrt{1 - h}`, and a giant is the root of the
sum of all squares.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.assessment.measure import NotApplicableError, Score
from discreet.assessment.microdata.record_sets import RecordMeasure
from discreet.attack.frame import Attack, Claims, Knowledge
from discreet.attack.scoring import Finding, judge
from discreet.errors import DataError
from discreet.frames import to_arrow
from discreet.randomness import stream
from discreet.synthesis.decompose import fit
from discreet.synthesis.formula import parse
from discreet.synthesis.model import build, read_columns
from discreet.synthesis.result import Synthesized, read_records

EXACT = 1e-6
"""Share of a value within which it counts as solved for."""
_MOST_UNKNOWN = 4  # whole numbers that are searched for; five take minutes
_WIDEST = 20_000  # largest sum of squared deviations whose lattice is searched
_NEARLY_ONE = 1e-9  # leverages nearer to one are one: nothing of the record is told by the others


@dataclass(frozen=True)
class ClusterInsider:
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
    name = "cluster-insider"

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
        """Take the measure."""
        if not isinstance(synthetic, Synthesized) or synthetic.method == "mixed":
            raise NotApplicableError("the records must be those of one model, row by row.")
        finding = attack_by_insiders(original, synthetic, self.clusters)
        parts = {
            "targets": [finding.tally.targets],
            "claims": [finding.tally.claims],
            "right": [int(finding.tally.right.sum())],
        }
        return self.score(finding.tally.recall, ", ".join(synthetic.confidential), parts)


def attack_by_insiders(original: Any, synthetic: Synthesized, clusters: str | None) -> Finding:
    """The first member of each cluster against the others."""
    before = read_records(original).table
    columns = {name: _column(before, name) for name in synthetic.confidential}
    labels, attack = cluster_labels(before, clusters), ClusterInsider(clusters)
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
        every.append(attack(synthetic, known, rng=rng))
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
    table = to_arrow(frame)
    if clusters is None:
        return np.zeros(len(table), dtype=np.int64)
    if clusters not in table.column_names:
        raise DataError(f"there is no column {clusters!r} of clusters in these records.")
    texts = np.array([str(value) for value in table.column(clusters).to_pylist()])
    return np.asarray(np.unique(texts, return_inverse=True)[1], dtype=np.int64)


def _column(frame: Any, name: str) -> Real:
    values = to_arrow(frame).column(name).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True)
class Near:
    """A claim about numbers that is right when all of them lie within a share of the true ones."""

    values: tuple[float, ...]
    within: float

    def __eq__(self, other: object) -> bool:
        true = other if isinstance(other, tuple) else (other,)
        if len(true) != len(self.values) or not all(isinstance(t, (int, float)) for t in true):
            return False
        pairs = zip(true, self.values, strict=True)
        return all(abs(t - claimed) <= self.within * abs(t) for t, claimed in pairs)

    __hash__ = None  # type: ignore[assignment]  # near is no equivalence


@dataclass(frozen=True)
class FittedValues:
    """Claims that the records of largest leverage have their fitted values.

    Targets are pairs of a confidential column and the position of a record in the file.

    Attributes:
      within: Share of the true value within which a claim is right.
      most: How many records are claimed.
    """

    within: float = 0.1
    most: int = 10
    name = "fitted-values"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Claims from the regression that the statement names, run on the file."""
        return _claims(Regression.of(release, release.frame).fits, release, self)


@dataclass(frozen=True)
class LongestColumn:
    """Claims that the record known to be the largest is the root of the sum of all squares.

    `knowledge.extra["largest"]` says which record that is, by column; without it, it is taken to be
    the one of largest leverage.

    Attributes:
      within: Share of the true value within which a claim is right.
    """

    within: float = 0.1
    name = "longest-column"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """One claim for each confidential column."""
        model = Regression.of(release, release.frame)
        known = knowledge.extra.get("largest", {})
        usual = int(np.argmax(model.leverage))
        length = np.sqrt((model.Y**2).sum(axis=0))
        targets = [(name, int(known.get(name, usual))) for name in release.confidential]
        values = [Near((float(size),), self.within) for size in length]
        return Claims.ranked(targets, values, np.ones(len(targets)))


@dataclass(frozen=True)
class LargeUnits(RecordMeasure):
    r"""How much more often large units are told than without their records.

    Two attackers: one takes the records of largest leverage for their fits, the other takes the
    largest record for the root of the sum of squares. With s the share of claims that come
    within a tenth of the true value and b the share that the same attacker has right who sees the
    file without the record, the value is the larger :math:`(s - b)/(1 - b)`, at least 0.
    Range: 0 to 1. Lower is safer. The breakdown has a row for each attacker.

    Args:
      within: Share of the true value within which a unit counts as told.
      most: How many records the first attacker looks at.
    """

    name = "large-units"
    kind = "risk"

    within: float = 0.1
    most: int = 10

    def __call__(self, original: Any, synthetic: Any) -> Score:
        """Take the measure."""
        if not isinstance(synthetic, Synthesized) or synthetic.method == "mixed":
            raise NotApplicableError("the records must be those of one model, row by row.")
        findings = attack_large_units(original, synthetic, self.within, self.most)
        parts = {
            "attacker": [each.attack for each in findings],
            "told": [each.success for each in findings],
            "baseline": [each.guess for each in findings],
        }
        worst = max(0.0, *(each.lift for each in findings))
        return self.score(worst, ", ".join(synthetic.confidential), parts)


def attack_large_units(
    original: Any, synthetic: Synthesized, within: float = 0.1, most: int = 10
) -> list[Finding]:
    """Both attackers judged, each beside itself on the file without the record."""
    model = Regression.of(synthetic, original)
    names, rng = synthetic.confidential, stream(0, "large-units")  # neither attack draws
    if len(read_records(synthetic.frame).table) != len(model.Y):
        raise DataError("the original and the synthetic records differ in number.")
    truth: dict[Hashable, Any] = {
        (n, i): float(y) for n, Y in zip(names, model.Y.T, strict=True) for i, y in enumerate(Y)
    }
    largest = {name: int(i) for name, i in zip(names, np.abs(model.Y).argmax(axis=0), strict=True)}
    first, second = FittedValues(within, most), LongestColumn(within)
    knowledge = Knowledge(extra={"largest": largest})
    squares = (model.Y**2).sum(axis=0)
    rest = [squares[j] - model.Y[largest[name], j] ** 2 for j, name in enumerate(names)]
    without = Claims.ranked(
        [(name, largest[name]) for name in names],
        [Near((float(np.sqrt(max(size, 0.0))),), within) for size in rest],
        np.ones(len(names)),
    )
    baselines = _claims(model.fits_without, synthetic, first), without
    attacks: tuple[Attack, ...] = (first, second)
    return [
        judge(attack(synthetic, knowledge, rng=rng), truth, attack=attack.name, baseline=baseline)
        for attack, baseline in zip(attacks, baselines, strict=True)
    ]


def _claims(fits: Real, release: Synthesized, attack: FittedValues) -> Claims:
    leverage = Regression.of(release, release.frame).leverage
    rows = np.argsort(-leverage, kind="stable")[: attack.most].tolist()
    targets = [(name, row) for name in release.confidential for row in rows]
    places = [(j, row) for j in range(len(release.confidential)) for row in rows]
    values = [Near((float(fits[row, j]),), attack.within) for j, row in places]
    return Claims.ranked(targets, values, [leverage[row] for _, row in places])


@dataclass(frozen=True, eq=False)
class Regression:
    """The model of a statement on some records."""

    Y: Real
    fits: Real
    leverage: Real

    @classmethod
    def of(cls, release: Synthesized, frame: Any) -> Regression:
        """The regression of the columns that a release calls synthetic."""
        formula = parse(release.model)
        used = release.statement.steps[-1].parameters
        columns = read_columns(read_records(frame), formula, used["missing"])
        model = build(formula, *columns)
        scaled = model.without_weights
        found = fit(scaled.Y, scaled.all_columns)
        leverage = np.einsum("ij,ij->i", found.basis, found.basis)
        return cls(model.Y, model.Y - model.to_original_scale(found.residuals), leverage)

    @property
    def fits_without(self) -> Real:
        """What the other records predict for each."""
        free = np.maximum(1 - self.leverage, _NEARLY_ONE)[:, None]
        return np.asarray(self.Y - (self.Y - self.fits) / free)
