"""What happens to the tables that records are counted into."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from discreet.assess.measure import NotApplicableError, Score
from discreet.assess.microdata.record_sets import (
    ORIGINAL,
    SYNTHETIC,
    RecordMeasure,
    row_classes,
)
from discreet.assess.utility.hellinger import hellinger
from discreet.errors import ParameterError


@dataclass(frozen=True)
class MarginUtility(RecordMeasure):
    r"""Hellinger utility of the tables by k columns, mean over all of them.

    :math:`1 - \mathrm{HD}(f, g)/\sqrt{\sum f}` with the counts f of the original and g of the
    synthetic records, scaled to the same total. Numbers are cut into classes at quantiles of the
    original. Range: 0 to 1 (the same tables). Higher is better. The breakdown has a row for each
    table.

    >>> both = {"a": ["x", "x", "y", "y"]}, {"a": ["x", "x", "x", "y"]}
    >>> round(MarginUtility(way=1)(*both).value, 4)
    0.8154

    Args:
      way: How many columns are crossed; all of them where there are fewer.
      classes: Number of classes of a column of numbers.
    """

    name = "margin-utility"
    kind = "utility"
    direction = "higher"

    way: int = 2
    classes: int = 5

    def __call__(self, original: Any, synthetic: Any) -> Score:
        """Take the measure."""
        if self.way < 1 or self.classes < 2:
            raise ParameterError(
                f"way must be at least 1 and classes at least 2, got {self.way} and {self.classes}."
            )
        sets = self.sets(original, synthetic)
        coded = {name: sets.classes(name, self.classes) for name in sets.names}
        before, after = sets.rows(ORIGINAL), sets.rows(SYNTHETIC)
        scale = sets.sizes[ORIGINAL] / sets.sizes[SYNTHETIC]
        parts: dict[str, list[Any]] = {"table": [], "cells": [], "distance": [], "utility": []}
        for chosen in combinations(coded, min(self.way, len(coded))):
            cells = row_classes([coded[name] for name in chosen])
            f, g = (np.bincount(cells[r], minlength=cells.max() + 1) for r in (before, after))
            distance = hellinger(f.astype(np.float64), scale * g)
            utility = 1 - distance / math.sqrt(sets.sizes[ORIGINAL])
            for column, value in zip(
                parts, (" × ".join(chosen), len(f), distance, utility), strict=True
            ):
                parts[column].append(value)
        if not parts["table"]:
            raise NotApplicableError("there are no tables to compare.")
        return self.score(np.mean(parts["utility"]), f"{self.way}-way tables of {sets.on}", parts)
