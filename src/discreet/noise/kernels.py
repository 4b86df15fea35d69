"""The compiled look-up of noise, apart from `lookup` so that designing a matrix loads no Numba."""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.arrays import Whole


@njit(cache=True)
def _row(count: int, starts: Whole, dense: int, head: int) -> int:
    """The row that serves a count; rows below `dense` begin at their own index."""
    last = len(starts) - 1
    if count >= starts[head]:
        period = last + 1 - head
        return last if period == 1 else head + (count - starts[head]) % period
    if count < dense:
        return count
    low, high = dense - 1, head
    while high - low > 1:
        middle = (low + high) >> 1
        if starts[middle] <= count:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def look_up(
    counts: Whole,
    keys: Whole,
    modulus: int,
    starts: Whole,
    period: int,
    cuts: Whole,
    moves: Whole,
    out: Whole,
) -> int:
    """Write the deviation of every cell; return the place of the first bad cell, or -1.

    `cuts` has a power of two of columns; interval `k` of a row holds the keys below `cuts[k]`
    that no earlier interval holds. The search halves without branches.
    """
    head = len(starts) - period
    dense = 0  # most matrices begin with one row for each count: no search there
    while dense < len(starts) and starts[dense] == dense:
        dense += 1
    half = cuts.shape[1] >> 1
    for cell in range(len(counts)):
        count, key = counts[cell], keys[cell]
        if count < 0 or key < 0 or key >= modulus:
            return cell
        row = _row(count, starts, dense, head)
        place, width = np.int64(0), half
        while width > 0:  # keys are random, so a branch would be guessed wrongly half the time
            place += width * (cuts[row, place + width - 1] <= key)
            width >>= 1
        out[cell] = moves[row, place]
    return -1
