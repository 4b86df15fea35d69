"""Compiled sweeps of iterative proportional fitting."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Index = NDArray[np.int32]
Vector = NDArray[np.float64]


@njit(cache=True)
def scale_and_sum(y: Vector, row: Index, factors: Vector, following: Index, sums: Vector) -> None:
    """Multiply by the factors of one group and sum into the cells of the next, in one pass.

    Neighbours often lie in the same published cell; their sum is kept in a register, because
    adding to memory would make every step wait for the one before.
    """
    last = 0
    run = 0.0
    for i in range(len(row)):
        value = y[i] * factors[row[i]]
        y[i] = value
        k = following[i]
        if k == last:
            run += value
        else:
            sums[last] += run
            last = k
            run = value
    sums[last] += run


@njit(cache=True)
def sweep(
    y: Vector,
    index: Index,
    ordered: Index,
    starts: NDArray[np.int64],
    z: Vector,
    sums: Vector,
    factors: Vector,
    multipliers: Vector,
) -> float:
    """Fit every group once, and return the largest deviation met on the way.

    On entry and on exit `sums` holds the sums of the first group. A cell whose members are all
    zero is passed over.
    """
    n_groups = index.shape[0]
    deviation = 0.0
    for g in range(n_groups):
        for j in range(starts[g], starts[g + 1]):
            k = ordered[j]
            deviation = max(deviation, abs(sums[k] - z[k]))
            factors[k] = 1.0
            if sums[k] > 0.0 and z[k] > 0.0:
                factors[k] = z[k] / sums[k]
                multipliers[k] += math.log(factors[k])
        following = (g + 1) % n_groups
        for j in range(starts[following], starts[following + 1]):
            sums[ordered[j]] = 0.0
        sums[-1] = 0.0
        scale_and_sum(y, index[g], factors, index[following], sums)
    return deviation


@njit(cache=True)
def tilt(index: Index, multipliers: Vector, log_start: Vector, y: Vector) -> float:
    """Set `y = start·exp(Xν)` and return its sum; `multipliers` has a zero at the end."""
    total = 0.0
    n_groups = index.shape[0]
    for i in range(index.shape[1]):
        exponent = log_start[i]
        for g in range(n_groups):
            exponent += multipliers[index[g, i]]
        y[i] = math.exp(exponent)
        total += y[i]
    return total
