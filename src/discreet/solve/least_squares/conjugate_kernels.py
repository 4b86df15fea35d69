"""Compiled conjugate gradients on chosen inner cells."""

from __future__ import annotations

import numpy as np
from numba import njit

from discreet.design.incidence_kernels import Real, Sums, hand_down, sum_up

_REORDER = {"reassoc", "contract"}  # lets sums use vector instructions; infinities stay infinite


@njit(cache=True, fastmath=_REORDER)
def _dot(a: Real, b: Real) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True)
def _within(a: Real, limits: Real) -> bool:
    outside = 0
    for i in range(len(a)):
        outside += abs(a[i]) > limits[i]
    return outside == 0


@njit(cache=True)
def conjugate_steps(
    sums: Sums,
    scale: Real,
    weights: Real,
    ridge: float,
    cells: tuple[Real, Real, Real],
    images: tuple[Real, Real, Real],
    limits: Real,
    steps: int,
) -> int:
    r"""Conjugate gradients for :math:`(DXWX^\top D + \lambda I) x = DXs_0`, with :math:`x = DX\nu`.

    The vectors over the cells are the solution x, the residual r and the direction p; beside each
    stands its image over the nodes (:math:`\nu`, s and :math:`\pi`, with :math:`r = DXs` and
    :math:`p = DX\pi`), so that the solution stays in the row space to the last digit.
    All are changed in place, until no residual exceeds its limit. Returns the steps taken.
    """
    x, r, p = cells
    nu, s, pi = images
    scaled, q, nodes, used = np.empty_like(x), np.empty_like(x), np.empty_like(s), np.empty_like(s)
    rr = _dot(r, r)
    for step in range(steps):
        if _within(r, limits):
            return step
        for i in range(len(p)):
            scaled[i] = scale[i] * p[i]
        sum_up(sums, scaled, nodes)
        for k in range(len(s)):
            nodes[k] = weights[k] * nodes[k] + ridge * pi[k]
            used[k] = nodes[k]
        hand_down(sums, used, q)
        for i in range(len(q)):
            q[i] *= scale[i]
        curvature = _dot(p, q)
        if not curvature > 0.0:
            return step
        alpha = rr / curvature
        for i in range(len(x)):
            x[i] += alpha * p[i]
            r[i] -= alpha * q[i]
        before, rr = rr, _dot(r, r)
        beta = rr / before
        for i in range(len(p)):
            p[i] = r[i] + beta * p[i]
        for k in range(len(s)):
            nu[k] += alpha * pi[k]
            s[k] -= alpha * nodes[k]
            pi[k] = s[k] + beta * pi[k]
    return steps
