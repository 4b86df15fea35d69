"""Duality gaps of least absolute deviation: of a cell by itself, and of the loss with a ridge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.solve.absolute.schedule import SCHEDULE
from discreet.solve.least_squares.goal import Goal

Vector = NDArray[np.float64]


def own_gaps(
    goal: Goal, weights: Vector, residual: Vector, y: Vector, dual: Vector, slopes: Vector
) -> tuple[float, float, int]:
    r"""The largest share of the gap that one cell has, on its own scale.

    The gap is the sum of :math:`w_k|r_k| - u_kr_k` over the published and :math:`-y_i(Xu)_i` over
    the inner cells, and none of them is negative.

    Returns:
      The largest, in units of which the tolerance is allowed; the largest of a published cell in
      counts; and its position.
    """
    own = np.abs(residual) - np.divide(
        dual * residual, weights, out=np.abs(residual), where=weights > 0
    )
    unit = np.maximum(goal.accuracy.count, SCHEDULE.own_share * np.abs(residual))
    inner = -y * slopes / goal.gradient * goal.accuracy.tolerance
    worst = max(float((own / unit).max(initial=0.0)), float(inner.max(initial=0.0)))
    cell = int(own.argmax()) if len(own) else 0
    return goal.accuracy.tolerance * worst / SCHEDULE.own_count, float(own.max(initial=0.0)), cell


def ridge_gap(
    loss: float, z: Vector, ridge: float, y: Vector, u: Vector, slopes: Vector
) -> tuple[float, float]:
    r"""Primal minus dual value of the loss plus :math:`\tfrac{\rho}{2}\|y\|^2`, and the former.

    Any `u` within the weights is dual feasible there; its value is
    :math:`z^\top u - \|(Xu)_+\|^2/(2\rho)`.
    """
    primal = loss + 0.5 * ridge * float(y @ y)
    up = np.maximum(slopes, 0.0)
    dual = float(z @ u[: len(z)]) - float(up @ up) / (2.0 * ridge)
    return primal - dual, max(primal, np.finfo(float).tiny)
