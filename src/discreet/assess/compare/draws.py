"""The scores of single draws behind a row, and whether two rows differ by more than chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Real
from discreet.assess.compare.choose import Line, Selection

if TYPE_CHECKING:
    import pyarrow as pa

_LEVEL = 0.05
_DUST = 1e-12


def draws_of(replicates: pa.Table, chosen: Selection, line: Line) -> Real:
    """The score of every draw behind a row; not-a-number where a draw has none."""
    import pyarrow.compute as pc

    mask = pc.equal(replicates["measure"], chosen.measure)
    for name in ("label", "stage", "fitter", "on"):
        mask = pc.and_(mask, pc.equal(replicates[name], line[name]))
    found = replicates.filter(mask)
    values = np.full(pc.max(replicates["replicate"]).as_py() + 1, np.nan)
    values[found["replicate"].to_numpy()] = found["value"].to_numpy()
    return values


def tied_with_first(replicates: pa.Table, chosen: Selection, lines: Sequence[Line]) -> list[Line]:
    """The rows after the first one that differ from it by no more than chance."""
    draws = [_turned(draws_of(replicates, chosen, line), chosen.direction) for line in lines]
    pairs = zip(lines[1:], draws[1:], strict=True)
    return [line for line, own in pairs if is_tied(draws[0], own)]


def _turned(values: Real, direction: str) -> Real:
    """Values turned so that smaller is better in the mean."""
    if direction == "zero":
        return values * (np.sign(np.nanmean(values)) or 1.0)
    return -values if direction == "higher" else values


def is_tied(first: Real, second: Real) -> bool:
    """Whether two series of draws differ in the mean by no more than chance.

    A paired t test at the 5 % level: draws of the same number share their random numbers where
    methods have some in common. Fewer than two draws tell nothing apart.

    >>> is_tied(np.array([1.0, 2.0, 3.0]), np.array([1.1, 2.1, 3.11]))
    False
    >>> is_tied(np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.5]))
    True
    """
    from scipy.special import stdtrit

    gaps = (first - second)[~np.isnan(first - second)]
    if len(gaps) < 2:
        return True
    error = gaps.std(ddof=1) / math.sqrt(len(gaps))
    reach = stdtrit(len(gaps) - 1, 1 - _LEVEL / 2) * error
    return bool(abs(gaps.mean()) <= reach + _DUST * np.nanmax(np.abs(first)))
