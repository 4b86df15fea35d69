"""Targeted correct attribution: how often a certain guess about a released record is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.assess.measure import UNIT, Score
from discreet.assess.risk.exact import CERTAIN
from discreet.assess.risk.groups import GroupMeasure
from discreet.assess.risk.guessing import guesses
from discreet.design.release import Release
from discreet.design.table import Table


@dataclass(frozen=True)
class TargetedAttribution(GroupMeasure):
    r"""Targeted correct attribution probability (TCAP), counting records.

    Over the groups q with records whose released frequencies :math:`y_{qs}` all lie in one
    category g, each weighing by its released frequency,

    .. math:: \sum_q y_{q\cdot}\,\frac{f_{qg}}{f_{q\cdot}} \Big/ \sum_q y_{q\cdot}.

    Zero when there is no such group. Range: 0 to 1. Lower is safer. The breakdown gives the number
    of such groups and their released records. Exact disclosures count groups instead.

    >>> from discreet.assess.cells import toy
    >>> table, release = toy([[3, 1], [0, 2], [5, 5]], [[3, 0], [0, 1], [6, 4]])
    >>> TargetedAttribution(sensitive="b")(table, release).value
    0.8125

    Args:
      sensitive: The variable that must not be disclosed.
      quasi: The variables an intruder knows; all others by default.
      tolerance: A guess is certain when its probability falls short of 1 by at most this.

    See Taub et al. (2019), as described by Langsrud & Lupp (2021).
    """

    name = "targeted-attribution"
    range = UNIT
    direction = "lower"

    tolerance: float = CERTAIN

    def __call__(self, table: Table, release: Release) -> Score:
        """Take the measure."""
        groups = self.groups(table, release)
        found = guesses(groups, own=False)
        certain = found.occurs & (found.released.probability >= 1 - self.tolerance)
        records = groups.released[certain].sum(axis=1)
        value = np.average(found.success[certain], weights=records) if certain.any() else 0.0
        parts = {"groups": [int(np.count_nonzero(certain))], "records": [float(records.sum())]}
        return self.score(value, found.layout.on, parts)
