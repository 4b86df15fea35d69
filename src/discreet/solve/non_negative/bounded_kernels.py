"""Compiled conjugate gradients on inner cells that must not become negative."""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.arrays import Real
from discreet.design.incidence import Sums, hand_down, sum_up

_REORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True)
def _gradient(sums: Sums, weights: Real, targets: Real, ridge: float, x: Real, g: Real) -> None:
    """Write the gradient at a point; what is left of the targets is rounded as they are."""
    nodes = np.empty_like(weights)
    sum_up(sums, x, nodes)
    for k in range(len(nodes)):
        nodes[k] = weights[k] * (nodes[k] - targets[k])
    hand_down(sums, nodes, g)
    for i in range(len(x)):
        g[i] += ridge * x[i]


@njit(cache=True, fastmath=_REORDER)
def _judged(x: Real, g: Real, curvature: Real, limits: Real) -> tuple[float, float, int]:
    """Squares of what still moves positive cells and cells at zero, and how many cells it moves."""
    free, bound, moved = 0.0, 0.0, 0
    for i in range(len(x)):
        r = min(g[i], curvature[i] * x[i])
        free += g[i] * r if x[i] > 0.0 else 0.0
        bound += r * r if x[i] <= 0.0 else 0.0
        moved += abs(r) > limits[i]
    return free, bound, moved


@njit(cache=True, fastmath=_REORDER)
def _along(
    sums: Sums, weights: Real, ridge: float, g: Real, p: Real, q: Real, nodes: Real
) -> tuple[float, float]:
    """Write the Hessian times a direction; returns slope and curvature along the direction."""
    sum_up(sums, p, nodes)
    for k in range(len(nodes)):
        nodes[k] *= weights[k]
    hand_down(sums, nodes, q)
    slope, curvature = 0.0, 0.0
    for i in range(len(p)):
        q[i] += ridge * p[i]
        slope += p[i] * g[i]
        curvature += p[i] * q[i]
    return slope, curvature


@njit(cache=True, fastmath=_REORDER)
def _leaves(x: Real, p: Real, size: float) -> bool:
    """Whether a step makes a cell negative."""
    below = 0
    for i in range(len(x)):
        below += size * p[i] > x[i]
    return below > 0


@njit(cache=True, fastmath=_REORDER)
def _advance(x: Real, g: Real, p: Real, q: Real, size: float, curvature: float) -> None:
    """A step that stays in bounds, and the next conjugate direction."""
    product = 0.0
    for i in range(len(x)):
        x[i] = max(x[i] - size * p[i], 0.0)
        g[i] -= size * q[i]
        product += g[i] * q[i] if x[i] > 0.0 else 0.0
    for i in range(len(x)):
        p[i] = g[i] - product / curvature * p[i] if x[i] > 0.0 else 0.0


@njit(cache=True)
def bounded_steps(
    sums: Sums,
    weights: Real,
    targets: Real,
    ridge: float,
    x: Real,
    curvature: Real,
    limits: Real,
    most: int,
) -> int:
    r"""Improve :math:`x \ge 0` in place until no cell is moved by more than its limit.

    Conjugate gradients run on the cells that are positive. A step beyond a bound is cut off cell by
    cell, and the directions start afresh. Cells at zero are set free when their gradients exceed
    those of positive cells. Returns the products with the Hessian that were taken.
    """
    g, p, q = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    nodes = np.empty_like(weights)
    _gradient(sums, weights, targets, ridge, x, g)
    is_fresh, taken = True, 1
    while taken < most:
        free, bound, moved = _judged(x, g, curvature, limits)
        if moved == 0:
            break
        is_release = bound > free
        if is_release or is_fresh:
            for i in range(len(x)):
                p[i] = min(g[i], 0.0) if x[i] <= 0.0 else g[i]
                if (x[i] <= 0.0) != is_release:
                    p[i] = 0.0
        slope, curved = _along(sums, weights, ridge, g, p, q, nodes)
        taken += 1
        if not curved > 0.0:
            break
        size = slope / curved
        is_fresh = is_release
        if _leaves(x, p, size):
            for i in range(len(x)):
                x[i] = max(x[i] - size * p[i], 0.0)
            _gradient(sums, weights, targets, ridge, x, g)
            is_fresh, taken = True, taken + 1
        else:
            _advance(x, g, p, q, size, curved)
    return taken
