"""Cells that cannot occur whatever the seed, and how many of the others are small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

from discreet.arrays import Whole
from discreet.demo.classifications import DEFENCE, code_lists
from discreet.demo.geography import NOT_APPLICABLE

Impossible = Mapping[str, frozenset[str]]


def structural_zeros() -> tuple[Impossible, ...]:
    """Declared structural zeros.

    Each one maps two variables to sets of leaf codes: no person has a code of the first set
    together with a code of the second.
    """
    children, older = _leaves("age", "Y_LT15"), _leaves("age", "Y15-64", "Y_GE65")
    military, none = _leaves("occupation", "OC0"), frozenset({NOT_APPLICABLE})
    return (
        # People younger than 15 are unmarried sons and daughters without a degree or work.
        {"age": children, "marital": _but("marital", "NEV")},
        {"age": children, "relation": _but("relation", "CHI")},
        {"age": children, "education": _but("education", NOT_APPLICABLE)},
        {"age": children, "occupation": _but("occupation", NOT_APPLICABLE)},
        {"age": children, "industry": _but("industry", NOT_APPLICABLE)},
        # Degrees take time, and everybody of 15 or older has a level of education.
        {"age": older, "education": none},
        {"age": frozenset({"Y15-19"}), "education": _leaves("education", "HIGH")},
        {"age": frozenset({"Y20-24"}), "education": frozenset({"ED8"})},
        {"education": none, "marital": _but("marital", "NEV")},
        {"education": none, "relation": _but("relation", "CHI")},
        {"education": none, "occupation": _but("occupation", NOT_APPLICABLE)},
        {"education": none, "industry": _but("industry", NOT_APPLICABLE)},
        # Who works has an occupation and an industry; soldiers serve in defence until 65.
        {"occupation": none, "industry": _but("industry", NOT_APPLICABLE)},
        {"occupation": _but("occupation", NOT_APPLICABLE), "industry": none},
        {"occupation": military, "industry": _but("industry", DEFENCE)},
        {"occupation": military, "age": _leaves("age", "Y_GE65")},
    )


def _leaves(variable: str, *under: str) -> frozenset[str]:
    return code_lists()[variable].leaves_under(*under)


def _but(variable: str, *codes: str) -> frozenset[str]:
    """All leaves of a variable but these."""
    return frozenset(code_lists()[variable].leaves) - set(codes)


@dataclass(frozen=True)
class SmallCellCounts:
    """Cells of all tables of one order, taken together."""

    cells: int  # those that are not empty
    small: int  # those of them with a small count
    occupancy: float  # records per non-empty cell

    @property
    def share(self) -> float:
        """Share of the non-empty cells that are small."""
        return self.small / self.cells


def small_cells(
    table: pa.Table, variables: Sequence[str], *, order: int = 3, at_most: int = 2
) -> SmallCellCounts:
    """Counts small cells over all tables of `order` of the variables.

    Args:
      table: The records.
      variables: Columns to cross.
      order: Number of columns of each table.
      at_most: Largest count that is called small.
    """
    coded = [_positions(table[name]) for name in variables]
    counts = []
    for chosen in combinations(coded, order):
        cell = np.zeros(table.num_rows, dtype=np.int64)
        for positions, size in chosen:
            cell = cell * size + positions
        counts.append(np.unique(cell, return_counts=True)[1])
    cells = sum(len(c) for c in counts)
    small = sum(int((c <= at_most).sum()) for c in counts)
    return SmallCellCounts(cells, small, table.num_rows * len(counts) / cells)


def _positions(column: pa.ChunkedArray) -> tuple[Whole, int]:
    """Each record's category as a number, and the number of categories; a null is one of them."""
    values = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    encoded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
