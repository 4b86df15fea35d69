"""Laplace noise from a seeded generator or from keys, for simulations and look-ups.

Not for differentially private releases: a seeded generator can be run again.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.design.keys import KeyConvention
from discreet.design.values import Real, Whole
from discreet.noise.matrix import TransitionMatrix


def seeded_laplace(rng: np.random.Generator, n: int, scale: float, cap: int | None = None) -> Whole:
    r"""Draws with :math:`\Pr(u) \propto e^{-|u|/b}`: the difference of two geometric numbers."""
    stop = -math.expm1(-1 / scale)
    noise = rng.geometric(stop, n) - rng.geometric(stop, n)
    while cap is not None and (beyond := np.flatnonzero(np.abs(noise) > cap)).size:
        noise[beyond] = rng.geometric(stop, beyond.size) - rng.geometric(stop, beyond.size)
    return noise


def law_by_key(law: Real, keys: Whole, rule: KeyConvention) -> Whole:
    """The deviation in `-cap..cap` that each key looks up in one law."""
    cap = len(law) // 2
    still = np.zeros_like(law)
    still[cap] = 1.0
    matrix = TransitionMatrix.from_law("one law for all counts", [still, law], starts=[0, cap])
    return matrix.noise(np.full(len(keys), cap), keys, rule.modulus, edge=rule.edge)


def cap_for(scale: float, modulus: int) -> int:
    """The least cap beyond which the law has less probability than one key."""
    return max(1, math.ceil(scale * math.log(2 * modulus)))
