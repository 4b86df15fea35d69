"""How sparse the tables of a file are: the share of its non-empty cells that are small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from discreet.arrays import Whole


@dataclass(frozen=True)
class SmallCells:
    """Cells of all tables of one order, taken together.

    Args:
      cells: Number of non-empty cells.
      small: Number of those with a small count.
      occupancy: Records per non-empty cell.
    """

    cells: int
    small: int
    occupancy: float

    @property
    def share(self) -> float:
        """Share of the non-empty cells that are small."""
        return self.small / self.cells


def small_cells(
    table: pa.Table, variables: Sequence[str], *, order: int = 3, at_most: int = 2
) -> SmallCells:
    """Counts small cells over all tables of `order` of the variables.

    Args:
      table: The records.
      variables: Columns to cross.
      order: Number of columns of each table.
      at_most: Largest count that is called small.
    """
    coded = [_positions(table[name]) for name in variables]
    counts = [_counts(chosen) for chosen in combinations(coded, order)]
    cells = sum(len(c) for c in counts)
    small = sum(int((c <= at_most).sum()) for c in counts)
    return SmallCells(cells, small, table.num_rows * len(counts) / cells)


def _positions(column: pa.ChunkedArray) -> tuple[Whole, int]:
    """Each record's category as a number, and the number of categories; a null is one of them."""
    values = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    encoded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _counts(columns: Sequence[tuple[Whole, int]]) -> Whole:
    """Counts of the non-empty cells of one table."""
    cell = np.zeros(len(columns[0][0]), dtype=np.int64)
    for positions, size in columns:
        cell = cell * size + positions
    return np.unique(cell, return_counts=True)[1].astype(np.int64)
