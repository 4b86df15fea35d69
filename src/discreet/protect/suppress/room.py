"""How far counts can go down when every empty cell is shown.

A count that is hidden is then known to be at least one, and at least as much as its parts that are
not empty add up to.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Array, Real
from discreet.design.base import Design
from discreet.protect.suppress.lines import lines


def least_counts(z: Array) -> Real:
    """What is public of each cell by itself: one, or nothing where it is shown as empty."""
    return np.where(z > 0, 1.0, -np.inf)


def room_below(design: Design, z: Array) -> Real:
    """How far each count can go down until parts that are not empty would be."""
    least = np.asarray(z > 0, dtype=np.float64)
    place = design.inner_in_published()
    least = np.maximum(least, design.aggregate(np.where(place >= 0, least[place], 0.0)))
    along = lines(design)
    before = least - 1
    while (least > before).any():
        before = least.copy()
        for line in along:
            parts = np.bincount(line.parent, least[line.child], len(least))
            least = np.maximum(least, parts)
    return np.asarray(z - least, dtype=np.float64)
