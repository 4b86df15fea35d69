"""Noise from the operating system's source, through OpenDP.

OpenDP samples the discrete Laplace law exactly, on whole numbers, so no floating-point rounding
can betray the value it was added to.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.design.values import Whole
from discreet.progress import report

_CHUNK = 20_000
_TASK = "drawing differentially private noise"


def scale_for(epsilon: float, sensitivity: int) -> float:
    """The smallest scale for which OpenDP proves ε at this sensitivity."""
    scale = sensitivity / epsilon
    while _measurement(scale).map(sensitivity) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


def laplace_noise(n: int, scale: float, cap: int | None = None) -> Whole:
    r"""Independent draws with :math:`\Pr(u) \propto e^{-|u|/b}`, for scale `b`.

    Draws beyond the cap are rejected and drawn again.
    Cost: about 10 µs per draw.
    """
    measurement = _measurement(scale)
    noise, waiting = np.zeros(n, dtype=np.int64), np.arange(n)
    while len(waiting):
        report(_TASK, 1 - len(waiting) / n)
        now = waiting[:_CHUNK]
        noise[now] = measurement([0] * len(now))
        again = now[:0] if cap is None else now[np.abs(noise[now]) > cap]
        waiting = np.concatenate([again, waiting[_CHUNK:]])
    report(_TASK, 1.0)
    return noise


def _measurement(scale: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale)
