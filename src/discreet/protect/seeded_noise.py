"""Noise of private methods from a seeded generator, for experiments alone.

Not for releases: what a seeded generator draws can be drawn again.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.tables.values import Whole


def seeded_laplace(rng: np.random.Generator, n: int, scale: float, cap: int | None = None) -> Whole:
    r"""Draws with :math:`\Pr(u) \propto e^{-|u|/b}`: the difference of two geometric numbers."""
    stop = -math.expm1(-1 / scale)
    noise = rng.geometric(stop, n) - rng.geometric(stop, n)
    while cap is not None and (beyond := np.flatnonzero(np.abs(noise) > cap)).size:
        noise[beyond] = rng.geometric(stop, beyond.size) - rng.geometric(stop, beyond.size)
    return noise


def seeded_gaussian(rng: np.random.Generator, n: int, scale: float) -> Whole:
    r"""Draws with :math:`\Pr(u) \propto e^{-u^2/2\sigma^2}`, by rejection from discrete Laplace.

    See Canonne, Kamath & Steinke (2020).
    """
    t = math.floor(scale) + 1
    noise, waiting = np.zeros(n, dtype=np.int64), np.arange(n)
    while len(waiting):
        drawn = seeded_laplace(rng, len(waiting), t)
        exponent = (np.abs(drawn) - scale**2 / t) ** 2 / (2 * scale**2)
        accepted = rng.random(len(waiting)) < np.exp(-exponent)
        noise[waiting[accepted]] = drawn[accepted]
        waiting = waiting[~accepted]
    return noise
