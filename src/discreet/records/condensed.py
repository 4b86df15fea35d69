"""Records counted once: the cells of everything on offer, from which every table is summed.

A table on the fly groups the records anew. Counts, weights and keys are sums, so cells of the
crossing of all variables on offer, held in memory, give every smaller crossing exactly: a question
then costs what those cells cost, not what the records do. **Confidential**: the cells are true.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Index, Whole
from discreet.records.engine import COUNT, KEY, Engine, as_array

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.records.records import UnitRecords

MOST_CELLS = 4_000_000
"""Cells that are held at most, some 60 bytes each."""
_PLACES = 2_000_000  # of a crossing: a table of them is cheaper than sorting the cells


class CondensedCells:
    """An engine that groups cells instead of records; see `records.engine.Engine.group`.

    Promise: what it gives for some variables is what the engine gives for them, whole numbers to
    the last digit; sums of weights may differ by the order in which they were added.

    Args:
      engine: Groups the records, once.
      data: The records.
      variables: All that will be asked for.
    """

    def __init__(self, engine: Engine, data: UnitRecords, variables: Sequence[str]) -> None:
        cells = engine.group(data, variables)
        self._codes: dict[str, tuple[Any, Array]] = {}
        for place, name in enumerate(variables):
            coded = cells.column(place).combine_chunks().dictionary_encode(null_encoding="encode")
            smallest = np.min_scalar_type(max(len(coded.dictionary) - 1, 0))
            self._codes[name] = (coded.dictionary, coded.indices.to_numpy().astype(smallest))
        self._sums = {
            name: as_array(cells.column(len(variables) + place))
            for place, name in enumerate(cells.column_names[len(variables) :])
        }
        if KEY in self._sums:  # a sum that an engine may have written as decimals
            self._sums[KEY] = self._sums[KEY].astype(np.int64)

    def __len__(self) -> int:
        return len(self._sums[COUNT])

    def group(self, data: UnitRecords, variables: Sequence[str]) -> pa.Table:
        """The cells that occur of some of the variables."""
        import pyarrow as pa

        sizes = [len(self._codes[name][0]) for name in variables]
        place = np.zeros(len(self), dtype=np.int64)
        for name, size in zip(variables, sizes, strict=True):
            place = place * size + self._codes[name][1]
        found, inverse = _distinct(place, int(np.prod(sizes, dtype=np.int64)))
        columns: dict[str, Any] = {}
        for at, (name, size) in reversed([*enumerate(zip(variables, sizes, strict=True))]):
            below = int(np.prod(sizes[at + 1 :], dtype=np.int64))
            codes = pa.array(found // below % size)
            columns[name] = self._codes[name][0].take(codes)
        sums = {name: _sum_by(values, inverse, len(found)) for name, values in self._sums.items()}
        return pa.table({**{name: columns[name] for name in variables}, **sums})


def _distinct(place: Whole, places: int) -> tuple[Whole, Index]:
    """The places that occur, and for each cell which of them is its own."""
    if places > _PLACES:
        found, inverse = np.unique(place, return_inverse=True)
        return found, inverse
    occurs = np.zeros(places, dtype=bool)
    occurs[place] = True
    found = np.flatnonzero(occurs)
    number = np.zeros(places, dtype=np.int64)
    number[found] = np.arange(len(found))
    return found, number[place]


def _sum_by(values: Array, inverse: Index, n: int) -> Array:
    """Sums over the cells of each group; whole numbers never pass through floats."""
    found = np.zeros(n, dtype=values.dtype)
    np.add.at(found, inverse, values)
    return found
