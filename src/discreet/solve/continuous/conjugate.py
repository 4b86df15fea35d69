"""Conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Operator = Callable[[Vector], Vector]


def preconditioned(
    apply: Operator,
    rhs: Vector,
    x: Vector,
    precondition: Operator,
    *,
    tolerance: float,
    max_steps: int,
    watch: Callable[[int], None] | None = None,
) -> tuple[Vector, int]:
    """Conjugate gradients with a preconditioner; returns the solution and the steps taken."""
    r = rhs - apply(x)
    s = precondition(r)
    p, product = s, float(r @ s)
    for step in range(max_steps):
        if np.abs(r).max(initial=0.0) <= tolerance or product <= 0.0:
            return x, step
        q = apply(p)
        alpha = product / float(p @ q)
        x = x + alpha * p
        r = r - alpha * q
        s = precondition(r)
        before, product = product, float(r @ s)
        p = s + (product / before) * p
        if watch is not None:
            watch(step)
    return x, max_steps
