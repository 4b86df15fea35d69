r"""Least absolute deviation of small tables, to rounding error whatever their scale.

A linear program finds the least loss, and its prices are a dual vector `u` that proves it. They
also tell all tables that attain it: inner cells with a negative slope :math:`(Xu)_i` are zero;
published cells are met where :math:`|u_k| < w_k`, not exceeded where :math:`u_k = w_k`, and reached
where :math:`u_k = -w_k`. The smallest of these tables is :math:`y = \max(0, X\nu)` on the other
inner cells, where :math:`\nu` minimises

.. math:: \tfrac12\|\max(0, X\nu)\|^2 - z^\top\nu

with :math:`\nu_k \le 0` where a cell is not exceeded and :math:`\nu_k \ge 0` where it is reached.
With any ridge :math:`\rho` that keeps :math:`u + \rho\nu` within the weights, and the slopes of
zero cells negative, that vector proves the choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Mask, Real
from discreet.design.base import Design
from discreet.errors import NotConvergedError
from discreet.solve.absolute.certificate import Answer, largest
from discreet.solve.absolute.schedule import SCHEDULE
from discreet.solve.linear.program import Program
from discreet.solve.linear.schedule import PROGRAM


def is_small(design: Design) -> bool:
    """Whether a linear program is solved within a second or two."""
    return design.n_inner * design.n_published <= SCHEDULE.most_entries


def solve_exactly(design: Design, z: Real, weights: Real, max_steps: int) -> Answer | None:
    """The smallest table of the least loss; nothing where steps do not suffice for the program."""
    matrix = design.matrix().tocsr().astype(np.float64)
    unit, top = largest(z), largest(weights)
    prices = _prices(matrix, PROGRAM.largest / unit * z, weights / top, max_steps)
    if prices is None:
        return None
    dual = np.clip(top * prices, -weights, weights)
    slopes = matrix @ dual
    cells = np.flatnonzero(slopes >= -SCHEDULE.same * top)
    is_met = np.abs(dual) < (1.0 - SCHEDULE.same) * weights
    low = np.where(is_met | (dual > 0), -np.inf, 0.0)
    high = np.where(is_met | (dual < 0), np.inf, 0.0)
    nu, steps = _smallest(matrix[cells], z / unit, low, high)
    pull, y = unit * (matrix @ nu), np.zeros(len(slopes))
    y[cells] = np.maximum(pull[cells], 0.0)
    pull[cells] = 0.0
    nu *= unit
    ridge = min(_room(weights - dual, nu), _room(weights + dual, -nu), _room(-slopes, pull))
    return Answer(y, dual, ridge, dual + ridge * nu, steps)


def _prices(matrix: Any, z: Real, weights: Real, max_steps: int) -> Real | None:
    """What one more count in each published cell adds to the least loss."""
    from scipy.sparse import eye_array, vstack

    n, m = matrix.shape
    rows = vstack([matrix, eye_array(m), -eye_array(m)])
    floor, ceiling = np.zeros(n + 2 * m), np.full(n + 2 * m, np.inf)
    program = Program(rows, z, z, floor, ceiling, changing="nothing")
    cost = np.concatenate([np.zeros(n), weights, weights])
    try:
        program.minimise(cost, steps=max_steps)
    except NotConvergedError:
        return None
    return program.prices() if program.is_best else None


def _room(room: Real, rising: Real) -> float:
    """How many times something that rises fits into the room, with some to spare."""
    fits = (SCHEDULE.spare * room[rising > 0] / rising[rising > 0]).min(initial=np.inf)
    return float(fits) if np.isfinite(fits) else 1.0


def _smallest(matrix: Any, z: Real, low: Real, high: Real) -> tuple[Real, int]:
    """Minimise half the squared norm of the positive part of `Xv`, less `zv`, within bounds."""
    nu = np.zeros(len(z))
    for step in range(SCHEDULE.newton_steps):
        slopes = matrix @ nu
        gradient = matrix.T @ np.maximum(slopes, 0.0) - z
        direction = _direction(matrix[slopes >= 0], gradient, nu <= low, nu >= high)
        if direction is None:
            return nu, step
        nu = _along(matrix, z, nu, direction, low, high)
    return nu, SCHEDULE.newton_steps


def _direction(positive: Any, gradient: Real, at_low: Mask, at_high: Mask) -> Real | None:
    """The Newton direction of the values that no bound holds; nothing where none is left to go.

    The system is damped in proportion to the gradient: it may be singular.
    """
    held = (at_low & (gradient >= 0)) | (at_high & (gradient <= 0))
    force = float(np.abs(gradient[~held]).max(initial=0.0))
    if force <= SCHEDULE.resolved:
        return None
    damping = max(SCHEDULE.damping * force, SCHEDULE.least_damping)
    while True:
        part = positive[:, np.flatnonzero(~held)]
        hessian = (part.T @ part).toarray()
        hessian[np.diag_indices(len(hessian))] += damping
        direction = np.zeros(len(gradient))
        direction[~held] = -np.linalg.solve(hessian, gradient[~held])
        leaving = (at_low & (direction < 0)) | (at_high & (direction > 0))
        if not leaving.any():
            return direction
        held |= leaving


def _along(matrix: Any, z: Real, nu: Real, direction: Real, low: Real, high: Real) -> Real:
    """The point along the direction, bent at the bounds, up to which the objective falls.

    Its slope there is told apart from zero where its value no longer is from that at the start.
    """

    def rises(size: float) -> bool:
        point = np.clip(nu + size * direction, low, high)
        gradient = matrix.T @ np.maximum(matrix @ point, 0.0) - z
        inside = (point > low) & (point < high)
        return float(gradient[inside] @ direction[inside]) > 0.0

    least, most = 0.0, 1.0
    if rises(most):
        for _ in range(SCHEDULE.bisections):
            size = (least + most) / 2
            least, most = (least, size) if rises(size) else (size, most)
    return np.clip(nu + most * direction, low, high)
