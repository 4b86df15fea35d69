"""What chance alone may do: tolerances of simulated figures, and orders among paired draws."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

_CHANCE = 1e-4
"""Probability with which a figure that is right lies outside: some hundred are judged at once."""


def quantile(draws: int) -> float:
    """Standard errors within which a right figure lies, but for one in ten thousand."""
    return float(stdtrit(max(draws - 1, 1), 1 - _CHANCE / 2))


def simulated(values: ArrayLike, paper: int) -> tuple[float, float]:
    """Mean of a simulation, and its largest distance from another one of the paper's size."""
    drawn = np.asarray(values, dtype=float)
    error = float(drawn.std(ddof=1)) * math.sqrt(1 / len(drawn) + 1 / paper)
    return float(drawn.mean()), quantile(len(drawn)) * error


def rises(*columns: ArrayLike) -> tuple[bool | None, str]:
    """Whether the means of paired columns increase, and the least certain step in words.

    `None` when a step is too small for its paired standard error, and none goes the other way.
    """
    drawn = [np.asarray(column, dtype=float) for column in columns]
    least = min(_step(b - a) for a, b in pairwise(drawn))
    needed = quantile(len(drawn[0]))
    shown = f"smallest step {least:+.1f} standard errors, {needed:.1f} needed"
    return (None if abs(least) <= needed else least > 0), shown


def _step(differences: np.ndarray) -> float:
    """Mean of paired differences in units of its standard error."""
    mean, error = differences.mean(), differences.std(ddof=1) / math.sqrt(len(differences))
    if error > 0:
        return float(mean / error)
    return math.copysign(math.inf, mean) if mean else 0.0
