"""Small cells that are still small, and people who still stand alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.assess.cells import PairMeasure
from discreet.assess.measure import UNIT, NotApplicableError, Score
from discreet.design.release import Release
from discreet.design.table import Table


@dataclass(frozen=True)
class SurvivingSmallCells(PairMeasure):
    r"""Share of the small cells, true count 1 to `small`, that are released as small.

    .. math:: \#\{1 \le f \le s, 1 \le [g] \le s\} / \#\{1 \le f \le s\}

    with :math:`[g]` the nearest whole number. Range: 0 to 1. Lower is safer. The breakdown gives
    the small cells in truth, in the release, and in both.

    >>> from discreet.assess.cells import toy
    >>> SurvivingSmallCells()(*toy([1, 2, 2, 9], [0, 1, 3, 2])).breakdown.to_pylist()
    [{'true': 3, 'released': 2, 'both': 1}]

    Args:
      cells: Published or inner cells.
      values: Counts or weighted counts.
      small: The largest count that is small.

    See Giessing & Höhne (2011).
    """

    name = "surviving-small-cells"
    kind = "risk"
    range = UNIT
    direction = "lower"

    small: int = 2

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        true, shown = ((v >= 0.5) & (v < self.small + 0.5) for v in (pair.f, pair.g))
        if not true.any():
            raise NotApplicableError("no true count is small.")
        both = int(np.count_nonzero(true & shown))
        counts = int(np.count_nonzero(true)), int(np.count_nonzero(shown)), both
        parts = dict(zip(("true", "released", "both"), ([n] for n in counts), strict=True))
        return self.score(both / counts[0], pair.on, parts)


@dataclass(frozen=True)
class Uniqueness(PairMeasure):
    r"""How well the release tells who stands alone: :math:`F_1` of the cells shown as one.

    With t cells of true count 1, r cells released as 1 and b both, :math:`2b/(t + r)`.
    Range: 0 (no one shown as alone is) to 1 (exactly those who are). Lower is safer. The breakdown
    gives t, r, b and the share of the records that are alone in their cell.

    >>> from discreet.assess.cells import toy
    >>> Uniqueness()(*toy([1, 1, 2, 6], [1, 0, 1, 6])).value
    0.5

    Args:
      cells: Published or inner cells.
      values: Counts or weighted counts.
    """

    name = "uniqueness"
    kind = "risk"
    range = UNIT
    direction = "lower"

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        true, shown = pair.f == 1, np.abs(pair.g - 1) < 0.5
        t, r, b = (int(np.count_nonzero(m)) for m in (true, shown, true & shown))
        if t == 0:
            raise NotApplicableError("no cell holds a single record.")
        share = t / float(pair.f.sum())
        parts = {"true": [t], "released": [r], "both": [b], "unique_records": [share]}
        return self.score(2 * b / (t + r), pair.on, parts)
