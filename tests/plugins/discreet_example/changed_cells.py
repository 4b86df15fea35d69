"""A measure of another package."""

from dataclasses import dataclass

import numpy as np

from discreet.assessment.measure import BaseMeasure


@dataclass(frozen=True)
class ChangedCells(BaseMeasure):
    """The share of published cells that differ from the truth."""

    name = "changed-cells"
    kind = "utility"

    def __call__(self, table, release):
        """Take the measure."""
        return self.score(np.mean(table.z != release.z), "published")
