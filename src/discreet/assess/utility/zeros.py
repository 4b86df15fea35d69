"""Cells that mislead or are not shown: false zeros, false positives, withheld values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.assess.cells import NEARLY_ZERO, PairMeasure, without_withheld
from discreet.assess.measure import BaseMeasure, NotApplicableError, Score
from discreet.facade.table import Table
from discreet.tables.protected import Protected


@dataclass(frozen=True)
class FalseZeros(PairMeasure):
    r"""Share of the filled cells released as zero, or of the empty ones released as something.

    .. math:: \#\{f > 0, g = 0\} / \#\{f > 0\} \quad\text{or}\quad
              \#\{f = 0, g \ne 0\} / \#\{f = 0\}

    Range: 0 to 1. Lower is better.

    >>> from discreet.assess.cells import NEARLY_ZERO, toy
    >>> FalseZeros()(*toy([1, 4, 2, 0], [0, 5, 3, 0])).breakdown.to_pylist()
    [{'cells': 3, 'false': 1}]
    >>> FalseZeros(positives=True)(*toy([1, 4, 0, 0], [0, 5, 3, 0])).value
    0.5

    Args:
      positives: Whether false positives are counted, not false zeros.
      tolerance: Released values up to this size are zeros, for fits with decimals.
    """

    kind = "utility"

    positives: bool = False
    tolerance: float = NEARLY_ZERO

    @property
    def name(self) -> str:
        """What is counted."""
        return "false-positives" if self.positives else "false-zeros"

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        pair = self.pairs(table, release)
        chosen = (pair.f == 0) == self.positives
        if not chosen.any():
            every = "filled" if self.positives else "empty"
            raise NotApplicableError(f"every cell is truly {every}, so none can be false.")
        zero = np.abs(pair.g[chosen]) <= self.tolerance
        n, false = len(zero), int(np.count_nonzero(zero != self.positives))
        return self.score(false / n, pair.on, {"cells": [n], "false": [false]})


@dataclass(frozen=True)
class WithheldCells(BaseMeasure):
    r"""Share of the published cells whose value is suppressed or missing.

    .. math:: \#\{\text{withheld}\} / n

    Range: 0 to 1. Lower is better. Every other measure looks at the cells that are shown.

    >>> from discreet.assess.cells import NEARLY_ZERO, toy
    >>> WithheldCells()(*toy([1, 4, 5, 6], [float("nan"), 4, 5, 6])).value
    0.25
    """

    name = "withheld-cells"
    kind = "utility"

    def __call__(self, table: Table, release: Protected) -> Score:
        """Take the measure."""
        z = without_withheld(release, release.z)
        withheld = np.isnan(z) if z.dtype.kind == "f" else np.zeros(len(z), dtype=bool)
        return self.score(float(withheld.mean()), "published values")
