"""Compiled sums over chosen inner cells.

The sums of an `Incidence` come as rows (`starts`, `columns`: the nodes a cell counts in directly)
and as edges (`source`, `target`: nodes that are summed into coarser ones, sources first).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Real = NDArray[np.float64]
Whole = NDArray[np.int32]
Sums = tuple[NDArray[np.int64], Whole, Whole, Whole]


@njit(cache=True)
def sum_up(sums: Sums, values: Real, nodes: Real) -> None:
    """Write the sums of the cells' values to the nodes."""
    starts, columns, source, target = sums
    nodes[:] = 0.0
    for i in range(len(values)):
        for e in range(starts[i], starts[i + 1]):
            nodes[columns[e]] += values[i]
    for e in range(len(source)):
        nodes[target[e]] += nodes[source[e]]


@njit(cache=True)
def hand_down(sums: Sums, nodes: Real, values: Real) -> None:
    """Write to each cell the sum over the nodes it counts in; the nodes are used up."""
    starts, columns, source, target = sums
    for e in range(len(source) - 1, -1, -1):
        nodes[source[e]] += nodes[target[e]]
    for i in range(len(values)):
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            total += nodes[columns[e]]
        values[i] = total
