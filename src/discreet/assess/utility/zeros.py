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
    r"""Share of the filled cells released as zero, or of the empty ones released as something.

    .. math:: \#\{f > 0, g = 0\} / \#\{f > 0\} \quad\text{or}\quad
              \#\{f = 0, g \ne 0\} / \#\{f = 0\}

    Range: 0 to 1. Lower is better.

    >>> from discreet.assess.cells import toy
    >>> FalseZeros()(*toy([1, 4, 2, 0], [0, 5, 3, 0])).breakdown.to_pylist()
    [{'cells': 3, 'false': 1}]
    >>> FalseZeros(positives=True)(*toy([1, 4, 0, 0], [0, 5, 3, 0])).value
    0.5

    Args:
      cells: Published or inner cells.
      values: Counts or weighted counts.
      positives: Whether false positives are counted, not false zeros.
      tolerance: Released values up to this size are zeros, for fits with decimals.
    """

    kind = "utility"
    range = UNIT
    direction = "lower"

    positives: bool = False
    tolerance: float = TOLERANCE

    @property
    def name(self) -> str:
        """What is counted."""
        return "false-positives" if self.positives else "false-zeros"

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        chosen = (pair.f == 0) == self.positives
        if not chosen.any():
            every = "filled" if self.positives else "empty"
            raise NotApplicableError(f"every cell is truly {every}, so none can be false.")
        zero = np.abs(pair.g[chosen]) <= self.tolerance
        n, false = len(zero), int(np.count_nonzero(zero != self.positives))
        return self.score(false / n, pair.on, {"cells": [n], "false": [false]})
