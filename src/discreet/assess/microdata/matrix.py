"""Records as matrices: numbers scaled, codes as indicators."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from discreet.arrays import Real
from discreet.assess.measure import NotApplicableError
from discreet.assess.microdata.record_sets import ORIGINAL, RecordSets


def main_effects(sets: RecordSets, most: int, *, all_levels: bool = False) -> dict[str, Real]:
    """The columns of each variable: a number centred and scaled, or indicators of its codes.

    Missing numbers are the mean, and have an indicator of their own.

    Args:
      sets: The records.
      most: The largest number of columns altogether.
      all_levels: Whether the first code has an indicator as well.
    """
    width = len(sets.numbers) + sum(len(sets.labels[name]) for name in sets.codes)
    if width > most:
        raise NotApplicableError(
            f"the records have {width:,} numbers and codes, and at most {most:,} are taken; name "
            "fewer columns: columns=."
        )
    found = {name: _number(sets, name) for name in sets.numbers}
    for name, codes in sets.codes.items():
        found[name] = np.eye(len(sets.labels[name]))[:, 0 if all_levels else 1 :][codes]
    return found


def with_products(blocks: dict[str, Real], most: int) -> Real:
    """All columns, their squares, and the products of columns of different variables."""
    width = sum(block.shape[1] for block in blocks.values())
    if width * (width + 1) // 2 + width > most:
        raise NotApplicableError(
            f"{width} columns have too many products for these records; use order=1, or name "
            "fewer columns: columns=."
        )
    parts = list(blocks.values())
    parts += [block**2 for block in blocks.values() if block.shape[1] == 1]
    for a, b in combinations(list(blocks.values()), 2):
        parts.append((a[:, :, None] * b[:, None, :]).reshape(len(a), -1))
    return np.hstack(parts)


def _number(sets: RecordSets, name: str) -> Real:
    values = sets.numbers[name]
    is_missing = np.isnan(values)
    first = values[sets.rows(ORIGINAL)]
    first = first[~np.isnan(first)]
    centre = float(first.mean()) if len(first) else 0.0
    scaled = np.where(is_missing, 0.0, values - centre) / sets.spread(name)
    return np.column_stack([scaled, is_missing]) if is_missing.any() else scaled[:, None]
