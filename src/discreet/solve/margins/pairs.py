"""Sweeps over records where margins have one or two variables: one row of costs for each code.

All categories of all variables stand in one row. The derivative of the loss by every pair of
categories is a symmetric matrix over it, and what each code of a record would cost is the sum of
the rows of the record's other codes. Sums of rows go through memory in order, so that a sweep
takes a sixth of the time of one that looks every cell up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from discreet.arrays import Real, Whole, Whole32
from discreet.design.product import ProductDesign
from discreet.solve.margins.effects import axes_of, leaf_axes

# Categories of all variables: their matrices take 16 bytes for each pair, and leave the caches.
_WIDEST = 2_000
# Cells that are added in order take a fraction of the time of cells that are looked up.
_IN_ORDER = 1 / 6
# Weights that differ by more leave rounding errors of heavy cells in sums of rows.
_MOST_UNEVEN = 1e4


@dataclass(frozen=True, eq=False)
class PairMatrix:
    """Where pairs of categories are published."""

    # Where the categories of each variable begin in the row; one more stands for margins of one
    # variable.
    begins: Whole
    position: Whole32  # published position of each pair, -1 where it is not published
    weight: Real  # its precision, or zero

    @classmethod
    def of(cls, design: ProductDesign, w: Real) -> PairMatrix | None:
        """The pairs of a design; `None` where other margins are published, or rows do not pay."""
        begins = np.cumsum([0, *design.shape, 1]).astype(np.int64)
        side, n_axes, used = int(begins[-1]), len(design.axes), w[w > 0]
        blocks = {k: axes_of(block) for k, block in enumerate(design.blocks)}
        looked_up = sum(design.shape[a] for axes in blocks.values() for a in axes)
        if side > _WIDEST or looked_up < _IN_ORDER * side * (n_axes + 1):
            return None
        if not len(used) or used.max() > _MOST_UNEVEN * np.median(used):
            return None
        position = np.full((side, side), -1, dtype=np.int32)
        for k, axes in blocks.items():
            if len(axes) > 2 or leaf_axes(design.blocks[k]) is None:
                return None
            if axes:
                rows, columns = (slice(*begins[a : a + 2]) for a in (*axes, n_axes)[:2])
                if (position[rows, columns] >= 0).any():
                    return None
                cells = np.arange(design.offsets[k], design.offsets[k + 1], dtype=np.int32)
                position[rows, columns] = cells.reshape(position[rows, columns].shape)
                position[columns, rows] = position[rows, columns].T
        return cls(begins, position, np.where(position >= 0, w[position], 0.0))

    def slopes(self, error: Real) -> Real:
        """What one more record in each pair of categories would add to the loss."""
        found: Real = self.weight * (error[self.position] + 0.5)
        return found


@njit(cache=True)
def move_by_rows(
    x: Any, slopes: Any, weight: Any, order: Any, uniform: Any, log_prior: Any, prior_at: Any,
    temperature: float, begins: Any,
) -> int:  # fmt: skip
    """Every code of some records moves to the best category, or is drawn; returns how many did."""
    n_axes, side, moved = len(begins) - 2, len(slopes), 0
    row, cost = np.empty(side), np.empty(np.diff(begins).max())
    at = np.full(n_axes + 1, begins[n_axes])
    for q in range(len(order)):
        r = order[q]
        for a in range(n_axes):
            at[a] = begins[a] + x[r, a]
        row[:] = slopes[at[n_axes]]
        for a in range(n_axes):
            _add_row(row, slopes, at[a], 1.0)
        turn = int(uniform[q, n_axes] * n_axes)
        for c in range(n_axes):
            a = (c + turn) % n_axes
            first, size, now = begins[a], begins[a + 1] - begins[a], at[a]
            costs = cost[:size]
            for b in range(size):
                costs[b] = row[first + b]
            # The record is taken out first, so that staying and moving have costs of one form.
            for k in range(n_axes + 1):
                costs[now - first] -= weight[now, at[k]]
            logs = log_prior[prior_at[a] : prior_at[a] + size]
            best = first + choose(costs, now - first, logs, temperature, uniform[q, a])
            if best == now:
                continue
            moved += 1
            x[r, a] = best - first
            _add_row(row, slopes, now, -1.0)
            for k in range(n_axes + 1):
                _change(slopes, weight, now, at[k], -1.0)
                _change(slopes, weight, best, at[k], 1.0)
            _add_row(row, slopes, best, 1.0)
            at[a] = best
    return moved


@njit(cache=True)
def _add_row(row: Any, slopes: Any, i: int, sign: float) -> None:
    for j in range(len(row)):
        row[j] += sign * slopes[i, j]


@njit(cache=True)
def _change(slopes: Any, weight: Any, i: int, j: int, sign: float) -> None:
    """One record more or less in a pair of categories."""
    slopes[i, j] += sign * weight[i, j]
    slopes[j, i] += sign * weight[i, j]


@njit(cache=True)
def choose(cost: Any, now: int, log_prior: Any, temperature: float, uniform: float) -> int:
    """The category that costs least, or one drawn; ties stay, or sweeps would never end."""
    if temperature <= 0.0:
        best = int(np.argmin(cost))
        return best if cost[best] < cost[now] - 1e-9 * (1.0 + abs(cost[now])) else now
    top, total = -np.inf, 0.0
    for b in range(len(cost)):
        cost[b] = log_prior[b] - cost[b] / temperature
        top = max(top, cost[b])
    for b in range(len(cost)):
        cost[b] = np.exp(cost[b] - top)
        total += cost[b]
    left = uniform * total
    for b in range(len(cost)):
        left -= cost[b]
        if left < 0.0:
            return b
    return now


@njit(cache=True)
def count_pairs(x: Any, error: Any, position: Any, begins: Any) -> None:
    """Add all records to the errors of pairs of categories, and of single ones."""
    n_axes = len(begins) - 2
    for r in range(len(x)):
        for a in range(n_axes):
            i = begins[a] + x[r, a]
            for b in range(a):
                k = position[i, begins[b] + x[r, b]]
                if k >= 0:
                    error[k] += 1.0
            k = position[i, begins[n_axes]]
            if k >= 0:
                error[k] += 1.0
