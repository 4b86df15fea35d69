"""Counts that survive protection: unchanged and small cells, cells that are certainly not empty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Mask
from discreet.assessment.cells import CLASS_STARTS, NEARLY_ZERO, PairMeasure, by_class
from discreet.assessment.measure import NO_MECHANISM, NotApplicableError, Score
from discreet.facade.table import Table
from discreet.noise.matrix import TransitionMatrix
from discreet.tables.protected import Protected


def unchanged(f: Array, g: Array) -> Mask:
    """Whether the released value, rounded to a whole number, is the true one."""
    return np.asarray(np.abs(g - f) < 0.5)


@dataclass(frozen=True)
class UnchangedCells(PairMeasure):
    r"""Share of the cells that are not empty and whose released value rounds to the true one.

    .. math:: \#\{f > 0, |g - f| < \tfrac12\} / \#\{f > 0\}

    Range: 0 to 1. Lower is safer; one minus it is the share of perturbed cells. The breakdown
    gives cells and share by class of the true count.

    >>> from discreet.assessment.cells import toy
    >>> UnchangedCells()(*toy([1, 4, 2, 9, 0], [0, 4, 3, 9.4, 0])).value
    0.5

    Args:
      zeros: Whether empty cells count as well.
      classes: First value of each class of true values.

    See Langsrud & Lupp (2021), section 6; Shlomo, Krenzke & Li (2019), Table 4.
    """

    name = "unchanged-cells"
    kind = "risk"

    zeros: bool = False
    classes: tuple[int, ...] = CLASS_STARTS

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        chosen = np.ones(len(pair.f), dtype=bool) if self.zeros else pair.f > 0
        if not chosen.any():
            raise NotApplicableError("every true value is zero.")
        f, same = pair.f[chosen], unchanged(pair.f[chosen], pair.g[chosen])
        parts = by_class(f, same, self.classes, {"unchanged": np.sum, "share": np.mean})
        return self.score(same.mean(), pair.on, parts)


@dataclass(frozen=True)
class SmallCells(PairMeasure):
    r"""Share of the small cells, true count 1 to `small`, released as small, or unchanged.

    .. math:: \#\{1 \le f \le s, 1 \le [g] \le s\} / \#\{1 \le f \le s\} \quad\text{or}\quad
              \#\{1 \le f \le s, [g] = f\} / \#\{1 \le f \le s\}

    with :math:`[g]` the nearest whole number. Range: 0 to 1. Lower is safer. The breakdown gives
    the small cells in truth, in the release, in both, and the unchanged ones.

    >>> from discreet.assessment.cells import toy
    >>> SmallCells()(*toy([1, 2, 2, 9], [0, 1, 3, 2])).breakdown.to_pylist()
    [{'true': 3, 'released': 2, 'both': 1, 'unchanged': 0}]
    >>> SmallCells(unchanged=True)(*toy([1, 2, 2, 9], [0, 2, 3, 9])).value
    0.3333333333333333

    Args:
      unchanged: Whether cells count that are released as they are.
      small: The largest count that is small.

    See Giessing & Höhne (2011); unchanged: Langsrud & Lupp (2021), section 6.
    """

    kind = "risk"

    unchanged: bool = False
    small: int = 2

    @property
    def name(self) -> str:
        """What is counted."""
        return "unchanged-small-cells" if self.unchanged else "surviving-small-cells"

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.counts(table, release)
        true, shown = ((v >= 0.5) & (v < self.small + 0.5) for v in (pair.f, pair.g))
        if not true.any():
            raise NotApplicableError("no true count is small.")
        same = true & unchanged(pair.f, pair.g)
        sets = {"true": true, "released": shown, "both": true & shown, "unchanged": same}
        counts = {name: int(np.count_nonzero(chosen)) for name, chosen in sets.items()}
        value = counts["unchanged" if self.unchanged else "both"] / counts["true"]
        return self.score(value, pair.on, {name: [n] for name, n in counts.items()})


@dataclass(frozen=True)
class Uniqueness(PairMeasure):
    r"""How well the release tells who stands alone: the F score of the cells shown as one.

    With t cells of true count 1, r cells released as 1 and b both, :math:`2b/(t + r)`.
    Range: 0 (no one shown as alone is) to 1 (exactly those who are). Lower is safer. The breakdown
    gives t, r, b and the share of the records that are alone in their cell.

    >>> from discreet.assessment.cells import toy
    >>> Uniqueness()(*toy([1, 1, 2, 6], [1, 0, 1, 6])).value
    0.5
    """

    name = "uniqueness"
    kind = "risk"

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.counts(table, release)
        true, shown = pair.f == 1, np.abs(pair.g - 1) < 0.5
        t, r, b = (int(np.count_nonzero(m)) for m in (true, shown, true & shown))
        if t == 0:
            raise NotApplicableError("no cell holds a single record.")
        share = t / float(pair.f.sum())
        parts = {"true": [t], "released": [r], "both": [b], "unique_records": [share]}
        return self.score(2 * b / (t + r), pair.on, parts)


@dataclass(frozen=True)
class CertainNonzero(PairMeasure):
    r"""How sure a reader of a positive value can be that the cell is not empty.

    .. math:: \#\{f > 0, g > 0\} / \#\{g > 0\}

    Range: 0 to 1; at 1 every positive value in this release tells the truth. Lower is safer. The
    breakdown gives the same by class of the released value: small values are the critical ones.

    >>> from discreet.assessment.cells import NEARLY_ZERO, toy
    >>> CertainNonzero()(*toy([1, 4, 0, 0], [2, 3, 1, 0])).value
    0.6666666666666666

    Args:
      tolerance: Released values up to this size are zeros, for fits with decimals.
      classes: First value of each class of released values.

    See Langsrud & Lupp (2021), section 6.
    """

    name = "certain-nonzero"
    kind = "risk"

    tolerance: float = NEARLY_ZERO
    classes: tuple[int, ...] = CLASS_STARTS

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        positive = pair.g > self.tolerance
        right = pair.f[positive] > 0
        value = right.mean() if len(right) else 0.0
        parts = by_class(pair.g[positive], right, self.classes, {"share": np.mean})
        return self.score(value, pair.on, parts)


@dataclass(frozen=True)
class ProvenNonzero(PairMeasure):
    r"""Share of the filled cells whose released value the mechanism cannot make from zero.

    .. math:: \#\{f > 0, \Pr(g \mid 0) = 0\} / \#\{f > 0\}

    A reader who knows the mechanism knows for certain that these are not empty. Values are the
    unfitted ones of the mechanism, whole numbers. Range: 0 to 1. Lower is safer.

    >>> from discreet.assessment.cells import NEARLY_ZERO, toy
    >>> from discreet.noise import drop_add
    >>> ProvenNonzero(mechanism=drop_add())(*toy([1, 4, 0, 2], [0, 5, 0, 1])).value
    0.6666666666666666

    Args:
      mechanism: The transition matrix that was applied to each cell.
    """

    name = "proven-nonzero"
    kind = "risk"

    mechanism: TransitionMatrix | None = None

    def __call__(self, table: Table, release: Protected) -> Score:
        if self.mechanism is None:
            raise NotApplicableError(NO_MECHANISM)
        pair = self.counts(table, release)
        if (pair.g != np.rint(pair.g)).any():
            raise NotApplicableError("released values have decimals; assess them before fitting.")
        filled = pair.f > 0
        if not filled.any():
            raise NotApplicableError("every true value is zero.")
        chances, moves = self.mechanism.probabilities(0), self.mechanism.deviations
        possible = moves[chances > 0]
        return self.score(np.mean(~np.isin(pair.g[filled], possible)), pair.on)
