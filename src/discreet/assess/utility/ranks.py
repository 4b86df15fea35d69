"""Whether the largest stays the largest: ranks of the cells within each published table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.arrays import Array, Real
from discreet.assess.cells import PairMeasure, columns
from discreet.assess.measure import POSITIVE, NotApplicableError, Score
from discreet.facade.table import Table
from discreet.tables.protected import Protected

CORRELATION = (-1.0, 1.0)


@dataclass(frozen=True)
class RankCorrelation(PairMeasure):
    r"""Correlation of the ranks within a table, mean over tables weighted by cells.

    Spearman's :math:`\rho = \mathrm{corr}(\mathrm{rank} f, \mathrm{rank} g)`, where equal values
    share their mean rank, or Kendall's :math:`\tau_b = (C - D) / \sqrt{(n_0 - n_f)(n_0 - n_g)}`
    with C concordant and D discordant pairs among :math:`n_0` and :math:`n_f`, :math:`n_g` pairs
    tied in truth and release. Tables in which all values are equal are left out.
    Range: -1 to 1. Higher is better.

    >>> from discreet.assess.cells import toy
    >>> pair = toy([1, 2, 3, 4], [1, 3, 2, 4])
    >>> [round(RankCorrelation(concordance=c)(*pair).value, 4) for c in (False, True)]
    [0.8, 0.6667]

    Args:
      concordance: Whether pairs in the same order are counted, after Kendall.
    """

    kind = "utility"
    range = CORRELATION
    direction = "higher"

    concordance: bool = False

    @property
    def name(self) -> str:
        """Spearman's or Kendall's."""
        return "rank-concordance" if self.concordance else "rank-correlation"

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        rows = [
            (name, len(f), self._correlation(f, g))
            for name, f, g in pair.blocks()
            if len(f) > 1 and np.ptp(f) > 0 and np.ptp(g) > 0
        ]
        if not rows:
            raise NotApplicableError("no published table has two different values to rank.")
        value = np.average([r for _, _, r in rows], weights=[n for _, n, _ in rows])
        return self.score(
            np.clip(value, *CORRELATION), pair.on, columns(("table", "cells", "correlation"), rows)
        )

    def _correlation(self, f: Array, g: Array) -> float:
        from scipy.stats import kendalltau

        if self.concordance:
            return float(kendalltau(f, g).statistic)
        return float(np.corrcoef(_ranks(f), _ranks(g))[0, 1])


@dataclass(frozen=True)
class LargestRankMove(PairMeasure):
    r"""Most places that a cell moves in the ranking of its table, :math:`\max|r_f - r_g|`.

    Equal values share their mean rank. Range: 0 upwards. Lower is better.

    >>> from discreet.assess.cells import toy
    >>> LargestRankMove()(*toy([1, 2, 3, 4], [5, 2, 3, 4])).value
    3.0
    """

    name = "largest-rank-move"
    kind = "utility"
    range = POSITIVE

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        rows = [
            (name, len(f), float(np.abs(_ranks(f) - _ranks(g)).max()))
            for name, f, g in pair.blocks()
            if len(f)
        ]
        value = max(move for _, _, move in rows)
        return self.score(value, pair.on, columns(("table", "cells", "largest_move"), rows))


def _ranks(values: Array) -> Real:
    from scipy.stats import rankdata

    return rankdata(values)
