"""Cells that are not shown at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.assess.cells import without_withheld
from discreet.assess.measure import UNIT, BaseMeasure, Score
from discreet.design.release import Release
from discreet.design.table import Table


@dataclass(frozen=True)
class WithheldCells(BaseMeasure):
    r"""Share of the published cells whose value is suppressed or missing.

    .. math:: \#\{\text{withheld}\} / n

    Range: 0 to 1. Lower is better. Every other measure looks at the cells that are shown.

    >>> from discreet.assess.cells import toy
    >>> WithheldCells()(*toy([1, 4, 5, 6], [float("nan"), 4, 5, 6])).value
    0.25
    """

    name = "withheld-cells"
    kind = "utility"
    range = UNIT
    direction = "lower"

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        z = without_withheld(release, release.z)
        withheld = np.isnan(z) if z.dtype.kind == "f" else np.zeros(len(z), dtype=bool)
        return self.score(float(withheld.mean()), "published values")
