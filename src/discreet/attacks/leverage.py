r"""Large units in synthetic records: their fits, and the root of a sum of squares.

Fits and sums of squares are those of the original, and everybody computes them from the file. A
record of leverage h is its own fit up to :math:`\sigma\sqrt{1 - h}`, and a giant is the root of the
sum of all squares.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Real
from discreet.assessment.measure import NotApplicableError, Score
from discreet.assessment.microdata.record_sets import RecordMeasure
from discreet.attacks.frame import About, Claims, Knowledge, PublicAttack
from discreet.attacks.public_side import ask
from discreet.attacks.scoring import Finding, judge
from discreet.errors import DataError
from discreet.randomness import stream
from discreet.synthesis.decompose import fit
from discreet.synthesis.formula import parse
from discreet.synthesis.model import build, read_columns
from discreet.synthesis.result import Synthesized, read_records

_NEARLY_ONE = 1e-9  # leverages nearer to one are one: nothing of the record is told by the others


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
class FittedValues(PublicAttack):
    """Claims that the records of largest leverage have their fitted values.

    Targets are pairs of a confidential column and the position of a record in the file.

    Attributes:
      within: Share of the true value within which a claim is right.
      most: How many records are claimed.
    """

    within: float = 0.1
    most: int = 10
    name: ClassVar[str] = "fitted-values"
    about: ClassVar[About] = "units"
    remedy: ClassVar[str] = "top-code the variable, or leave large units out of the model"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Claims from the regression that the statement names, run on the file."""
        return _claims(Regression.of(release, release.frame).fits, release, self)


@dataclass(frozen=True)
class Copies(PublicAttack):
    """Claims that records have the values that stand in the file, or means over several files.

    `knowledge.earlier` holds other files of the same records. What they keep of the residuals is
    left in the mean, and every file says how long the residuals are.

    Attributes:
      within: Share of the true value within which a claim is right.
      most: How many records are claimed, those of largest leverage first.
    """

    within: float = 0.1
    most: int = 1_000
    name: ClassVar[str] = "copies"
    about: ClassVar[About] = "units"
    remedy: ClassVar[str] = "ipso, or a smaller correlation; and one release"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """A claim for each record and confidential column; nothing is drawn."""
        model = Regression.of(release, release.frame)
        files = [Regression.of(each, each.frame).Y for each in knowledge.earlier]
        kept = np.mean([*files, model.Y], axis=0) - model.fits
        length = np.linalg.norm(model.Y - model.fits, axis=0)
        kept *= length / np.maximum(np.linalg.norm(kept, axis=0), _NEARLY_ONE)
        return _claims(model.fits + kept, release, self)


@dataclass(frozen=True)
class LongestColumn(PublicAttack):
    """Claims that the record known to be the largest is the root of the sum of all squares.

    `knowledge.extra["largest"]` says which record that is, by column; without it, it is taken to be
    the one of largest leverage.

    Attributes:
      within: Share of the true value within which a claim is right.
    """

    within: float = 0.1
    name: ClassVar[str] = "longest-column"
    about: ClassVar[About] = "units"
    remedy: ClassVar[str] = "top-code the variable, or leave large units out of the model"

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
        """The largest lift of any attacker; records of one model only."""
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


def judge_large_units(
    attack: Any, original: Any, synthetic: Synthesized, known: Knowledge | None = None
) -> Finding:
    """One of the attackers judged, beside itself on the file without the record."""
    known = Knowledge() if known is None else known
    model = Regression.of(synthetic, original)
    names, rng = synthetic.confidential, stream(0, "large-units")  # neither attack draws
    if len(read_records(synthetic.frame).table) != len(model.Y):
        raise DataError("the original and the synthetic records differ in number.")
    truth: dict[Hashable, Any] = {
        (n, i): float(y) for n, Y in zip(names, model.Y.T, strict=True) for i, y in enumerate(Y)
    }
    largest = {name: int(i) for name, i in zip(names, np.abs(model.Y).argmax(axis=0), strict=True)}
    if isinstance(attack, FittedValues | Copies):
        baseline = _claims(model.fits_without, synthetic, attack)
    else:
        squares = (model.Y**2).sum(axis=0)
        rest = [squares[j] - model.Y[largest[name], j] ** 2 for j, name in enumerate(names)]
        baseline = Claims.ranked(
            [(name, largest[name]) for name in names],
            [Near((float(np.sqrt(max(size, 0.0))),), attack.within) for size in rest],
            np.ones(len(names)),
        )
    told = replace(known, extra={**known.extra, "largest": largest})
    claims = ask(attack, synthetic, told, rng=rng, plain=[Near])
    found = judge(claims, truth, attack=attack.name, baseline=baseline)
    return replace(found, beside="the same attack on the file without the record")


def attack_large_units(
    original: Any, synthetic: Synthesized, within: float = 0.1, most: int = 10
) -> list[Finding]:
    """Both attackers judged."""
    attacks = FittedValues(within, most), LongestColumn(within)
    return [judge_large_units(attack, original, synthetic) for attack in attacks]


def _claims(fits: Real, release: Synthesized, attack: FittedValues | Copies) -> Claims:
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
