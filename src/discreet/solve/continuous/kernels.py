"""Compiled sums over chosen inner cells, and conjugate gradients on them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Real = NDArray[np.float64]
Whole = NDArray[np.int32]


@njit(cache=True)
def sum_up(source: Whole, target: Whole, nodes: Real) -> None:
    """Add every node to the nodes it counts in, cells first."""
    for e in range(len(source)):
        nodes[target[e]] += nodes[source[e]]


@njit(cache=True)
def hand_down(source: Whole, target: Whole, nodes: Real) -> None:
    """The adjoint of `sum_up`: every node receives what the nodes it counts in hold."""
    for e in range(len(source) - 1, -1, -1):
        nodes[source[e]] += nodes[target[e]]


@njit(cache=True)
def conjugate_steps(
    source: Whole,
    target: Whole,
    scale: Real,
    weights: Real,
    ridge: float,
    x: Real,
    dual: Real,
    r: Real,
    s: Real,
    p: Real,
    pi: Real,
    nodes: Real,
    tolerance: float,
    steps: int,
) -> int:
    r"""Conjugate gradients for :math:`(DXWX^\top D + \lambda I) x = r_0`, with :math:`x = DX\nu`.

    Every vector over the cells has its image over the published nodes beside it (:math:`x` and
    `dual`, :math:`r` and `s`, :math:`p` and `pi`), so that the solution stays in the row space to
    the last digit. Vectors are changed in place; returns the steps taken.
    """
    n = len(x)
    image = np.empty(len(weights))
    rr = 0.0
    for i in range(n):
        rr += r[i] * r[i]
    for step in range(steps):
        largest = 0.0
        for i in range(n):
            largest = max(largest, abs(r[i]))
        if largest <= tolerance:
            return step
        nodes[n:] = 0.0
        for i in range(n):
            nodes[i] = scale[i] * p[i]
        sum_up(source, target, nodes)
        for k in range(len(weights)):
            image[k] = weights[k] * nodes[n + k] + ridge * pi[k]
            nodes[n + k] = image[k]
        nodes[:n] = 0.0
        hand_down(source, target, nodes)
        curvature = 0.0
        for i in range(n):
            nodes[i] *= scale[i]
            curvature += p[i] * nodes[i]
        if not curvature > 0.0:
            return step
        alpha = rr / curvature
        before, rr = rr, 0.0
        for i in range(n):
            x[i] += alpha * p[i]
            r[i] -= alpha * nodes[i]
            rr += r[i] * r[i]
        beta = rr / before
        for i in range(n):
            p[i] = r[i] + beta * p[i]
        for k in range(len(weights)):
            dual[k] += alpha * pi[k]
            s[k] -= alpha * image[k]
            pi[k] = s[k] + beta * pi[k]
    return steps
