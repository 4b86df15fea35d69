"""What chance alone may do: tolerances of simulated figures, and orders among paired draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

_CHANCE = 1e-5
"""Probability with which a figure that is right lies outside: some hundred are judged at once."""
_SEEN = 2.0


def quantile(draws: int) -> float:
    """Standard errors within which a right figure lies, but for one in a hundred thousand."""
    return float(stdtrit(max(draws - 1, 1), 1 - _CHANCE / 2))


def mean_and_spread(values: ArrayLike, paper: int) -> tuple[float, float]:
    """Mean of a simulation, and its largest distance from another one of the paper's size."""
    drawn = np.asarray(values, dtype=float)
    error = float(drawn.std(ddof=1)) * math.sqrt(1 / len(drawn) + 1 / paper)
    return float(drawn.mean()), quantile(len(drawn)) * error


def orders(chains: Iterable[Sequence[ArrayLike]]) -> tuple[bool | None, str]:
    """Whether means of paired columns increase along every chain, and the least certain step.

    An order is seen from two paired standard errors on, and contradicted where a step goes the
    other way by more than chance does; in between it is `None`, undecided.
    """
    steps = [(_step(a, b), np.size(a)) for chain in chains for a, b in pairwise(chain)]
    least, draws = min(steps)
    shown = f"smallest step {least:+.1f} paired standard errors"
    if -quantile(draws) <= least < _SEEN:
        return None, shown
    return least > 0, shown


def _step(a: ArrayLike, b: ArrayLike) -> float:
    """Mean of paired differences in units of its standard error."""
    d = np.asarray(b, dtype=float) - np.asarray(a, dtype=float)
    mean, error = float(d.mean()), float(d.std(ddof=1)) / math.sqrt(len(d))
    if error > 0:
        return mean / error
    return math.copysign(math.inf, mean) if mean else 0.0
