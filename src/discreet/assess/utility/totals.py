"""Whether what is added up over a whole table stays what it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.assess.cells import PairMeasure, Pairs, columns
from discreet.assess.measure import POSITIVE, NotApplicableError, Score
from discreet.facade.table import Table
from discreet.tables.protected import Protected


@dataclass(frozen=True)
class TotalBias(PairMeasure):
    r"""Change of the sum over a published table, :math:`\sum g - \sum f`, mean over the tables.

    Range: all numbers. Nearer zero is better. The breakdown has a row for each published table.

    >>> from discreet.assess.cells import toy
    >>> TotalBias()(*toy([4, 9, 0], [5, 9, 2])).value
    3.0
    """

    name = "total-bias"
    kind = "utility"
    range = (-np.inf, np.inf)
    direction = "zero"

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        parts = _totals(pair)
        return self.score(np.mean(parts["bias"]), pair.on, parts)


@dataclass(frozen=True)
class TotalDifference(PairMeasure):
    r"""Percent relative absolute difference of the sum over a table, mean over the tables.

    .. math:: 100\,|\textstyle\sum g - \sum f| / \sum f

    Range: 0 upwards. Lower is better. The breakdown has a row for each published table.

    >>> from discreet.assess.cells import toy
    >>> TotalDifference()(*toy([40, 60], [42, 59])).value
    1.0

    See Shlomo, Krenzke & Li (2019), Table 5.
    """

    name = "total-difference"
    kind = "utility"
    range = POSITIVE

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        parts = _totals(pair)
        percent = [p for p in parts["percent"] if p is not None]
        if not percent:
            raise NotApplicableError("every true total is zero, so nothing is relative to it.")
        return self.score(np.mean(percent), pair.on, parts)


def _totals(pair: Pairs) -> dict[str, list[Any]]:
    rows = []
    for name, f, g in pair.blocks():
        true, released = float(f.sum()), float(g.sum())
        bias = released - true
        rows.append((name, true, released, bias, 100 * abs(bias) / true if true > 0 else None))
    return columns(("table", "true", "released", "bias", "percent"), rows)
