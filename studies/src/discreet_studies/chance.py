"""What chance alone may do: tolerances of simulated figures, and orders among paired draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, stdtrit

from discreet.arrays import Real

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


def share_limits(share: float, draws: int, paper: int, rounding: float = 0.0) -> tuple[int, int]:
    r"""Fewest and most of our draws that can lie where a share of the paper's draws lies.

    Given the paper's share `s` of `m` draws, the probability has the law
    :math:`B(ms + 1/2, m(1 - s) + 1/2)`, and our number the beta-binomial law. This holds for any
    number of draws and any law of what is drawn.

    Args:
      share: The paper's share.
      draws: Number of our draws.
      paper: Number of the paper's draws.
      rounding: Half a unit of the share's last printed digit.
    """
    low, high = (
        _beta_binomial(draws, paper, min(max(share + sign * rounding, 0.0), 1.0))
        for sign in (-1, 1)
    )
    fewest = int(np.searchsorted(np.cumsum(low), _CHANCE / 2))
    most = draws - int(np.searchsorted(np.cumsum(high[::-1]), _CHANCE / 2))
    return fewest, most


def _beta_binomial(n: int, paper: int, share: float) -> Real:
    """Probabilities of 0 to `n` successes."""
    a, b, k = paper * share + 0.5, paper * (1 - share) + 0.5, np.arange(n + 1)
    choose = -np.log(n + 1) - betaln(n - k + 1, k + 1)
    return np.asarray(np.exp(choose + betaln(k + a, n - k + b) - betaln(a, b)))


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
