"""Original records that come back among the synthetic ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.assess.measure import NotApplicableError, Score
from discreet.assess.microdata.record_sets import (
    ORIGINAL,
    SYNTHETIC,
    RecordMeasure,
    row_classes,
)
from discreet.errors import UnknownNameError


@dataclass(frozen=True)
class _Repeated(RecordMeasure):
    """A measure of records that both sets have; numbers are equal up to 1e-6 of their spread."""

    kind = "risk"

    def counted(self, original: Any, synthetic: Any) -> tuple[str, Array, Array]:
        """The columns in words, and how often each combination of values occurs in both sets."""
        sets = self.sets(original, synthetic)
        names = self.compared(sets.names)
        cells = row_classes([sets.exact(name) for name in names])
        before, after = (
            np.bincount(cells[sets.rows(place)], minlength=int(cells.max()) + 1)
            for place in (ORIGINAL, SYNTHETIC)
        )
        return ", ".join(names), before, after

    def compared(self, names: list[str]) -> list[str]:
        """The columns that are compared."""
        return names


@dataclass(frozen=True)
class CopiedRecords(_Repeated):
    """Share of synthetic records that are the same as an original one in every column.

    Range: 0 to 1. Lower is safer. Few columns with few codes agree by chance, so that copies tell
    something only where a record has many possible values. The breakdown counts them.

    >>> CopiedRecords()({"a": [1.0, 2.0]}, {"a": [2.0, 3.0]}).value
    0.5
    """

    name = "copied-records"

    def __call__(self, original: Any, synthetic: Any) -> Score:
        """Take the measure."""
        on, before, after = self.counted(original, synthetic)
        copies, total = int(after[before > 0].sum()), int(after.sum())
        parts = {"copies": [copies], "synthetic_records": [total]}
        return self.score(copies / total, on, parts)


@dataclass(frozen=True)
class ReplicatedUniques(_Repeated):
    """Share of original records that are alone with their keys and come back alone.

    Somebody who is unique and meets a unique synthetic record will take it for his own. Range:
    0 to 1. Lower is safer. The breakdown counts uniques of both and those in common.

    >>> ReplicatedUniques()({"a": ["x", "y", "y"]}, {"a": ["x", "y", "z"]}).breakdown.to_pylist()
    [{'uniques': 1, 'synthetic_uniques': 3, 'replicated': 1, 'original_records': 3}]

    Args:
      keys: The columns by which people are known; by default all.

    See Raab, Nowok & Dibben (2024).
    """

    name = "replicated-uniques"

    keys: tuple[str, ...] | None = None

    def compared(self, names: list[str]) -> list[str]:
        """The keys."""
        for name in self.keys or ():
            if name not in names:
                raise UnknownNameError("column of both sets of records", name, names)
        if self.keys is not None and not self.keys:
            raise NotApplicableError("name at least one column by which people are known: keys=.")
        return names if self.keys is None else list(self.keys)

    def __call__(self, original: Any, synthetic: Any) -> Score:
        """Take the measure."""
        on, before, after = self.counted(original, synthetic)
        total, replicated = int(before.sum()), int(((before == 1) & (after == 1)).sum())
        parts = {
            "uniques": [int((before == 1).sum())],
            "synthetic_uniques": [int((after == 1).sum())],
            "replicated": [replicated],
            "original_records": [total],
        }
        return self.score(replicated / total, on, parts)
