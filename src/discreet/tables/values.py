"""Values held for cells: counts, sums of weights, sums of record keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.errors import DataError
from discreet.tables.keys import KeyConvention

_TOO_LARGE = 2.0**63 * (1 - 1e-9)  # a sum of real numbers below this fits into 64 bits


@dataclass(frozen=True, eq=False)
class CellValues:
    """Counts and, optionally, weight sums, sums of squared weights and cell keys."""

    count: Whole
    weight: Real | None = None
    weight_squared: Real | None = None
    key: Whole | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole_counts(self.count))

    def mapped(self, change: Callable[[Array], Array], convention: KeyConvention) -> CellValues:
        """The same linear map applied to every kind of value; keys are reduced afterwards."""
        key = None if self.key is None else convention.reduce(change(self.key))
        weight = None if self.weight is None else change(self.weight)
        squared = None if self.weight_squared is None else change(self.weight_squared)
        return CellValues(summed(self.count, change), weight, squared, key)

    def moved(self, change: Callable[[Array], Array]) -> CellValues:
        """Values of every kind in other places; nothing is summed."""
        parts = (self.count, self.weight, self.weight_squared, self.key)
        changed: list[Any] = [None if part is None else change(part) for part in parts]
        return CellValues(*changed)


def summed(counts: Whole, change: Callable[[Array], Array]) -> Whole:
    """Sums of counts that a linear map makes; those that 64 bits do not hold are an error.

    Cost: the sum of all counts in real numbers; the map is made twice only where that is too large.
    """
    if counts.sum(dtype=np.float64) >= _TOO_LARGE:
        _check_size(change(counts.astype(np.float64)))
    return change(counts)


def whole_counts(counts: Array) -> Whole:
    """Counts as int64; negative or fractional ones are an error."""
    counts = np.asarray(counts)
    if counts.dtype.kind == "f":
        if not np.isfinite(counts).all() or (counts != np.rint(counts)).any():
            raise DataError("counts must be whole numbers; found fractional or missing ones.")
    elif counts.dtype.kind not in "iu":
        raise DataError(f"counts must be whole numbers, got values of type {counts.dtype}.")
    _check_size(counts)
    counts = counts.astype(np.int64)
    if counts.size and counts.min() < 0:
        raise DataError("counts must not be negative; found at least one that is.")
    return counts


def _check_size(counts: Array) -> None:
    if counts.size and float(counts.max()) >= _TOO_LARGE:
        raise DataError(
            "a count or a sum of counts is 2**63 or more, which 64 bits do not hold. "
            "Count in larger units, or look for a code such as 999… in the counts."
        )
