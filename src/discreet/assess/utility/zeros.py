"""Zeros that should not be there, and values where there should be a zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.assess.cells import PairMeasure
from discreet.assess.measure import UNIT, NotApplicableError, Score
from discreet.design.release import Release
from discreet.design.table import Table

TOLERANCE = 1e-6


@dataclass(frozen=True)
class FalseZeros(PairMeasure):
    r"""Share of the cells that are not empty and are released as zero.

    .. math:: \#\{f > 0, g = 0\} / \#\{f > 0\}

    Range: 0 to 1. Lower is better.

    >>> from discreet.assess.cells import toy
    >>> FalseZeros()(*toy([1, 4, 2, 0], [0, 5, 3, 0])).breakdown.to_pylist()
    [{'cells': 3, 'false': 1}]

    Args:
      cells: Published or inner cells.
      values: Counts or weighted counts.
      tolerance: Released values up to this size are zeros, for fits with decimals.
    """

    name = "false-zeros"
    kind = "utility"
    range = UNIT
    direction = "lower"

    tolerance: float = TOLERANCE

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        filled = pair.f > 0
        if not filled.any():
            raise NotApplicableError("every true value is zero, so no zero can be false.")
        false = int(np.count_nonzero(np.abs(pair.g[filled]) <= self.tolerance))
        n = int(np.count_nonzero(filled))
        return self.score(false / n, pair.on, {"cells": [n], "false": [false]})


@dataclass(frozen=True)
class FalsePositives(PairMeasure):
    r"""Share of the empty cells that are released as something else than zero.

    .. math:: \#\{f = 0, g \ne 0\} / \#\{f = 0\}

    Range: 0 to 1. Lower is better.

    >>> from discreet.assess.cells import toy
    >>> FalsePositives()(*toy([1, 4, 0, 0], [0, 5, 3, 0])).value
    0.5

    Args:
      cells: Published or inner cells.
      values: Counts or weighted counts.
      tolerance: Released values up to this size are zeros, for fits with decimals.
    """

    name = "false-positives"
    kind = "utility"
    range = UNIT
    direction = "lower"

    tolerance: float = TOLERANCE

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        empty = pair.f == 0
        if not empty.any():
            raise NotApplicableError("no cell is truly empty, so none can be filled falsely.")
        false = int(np.count_nonzero(np.abs(pair.g[empty]) > self.tolerance))
        n = int(np.count_nonzero(empty))
        return self.score(false / n, pair.on, {"cells": [n], "false": [false]})
