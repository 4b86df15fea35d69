r"""Certificates of least squares fits, from the result and its multipliers alone.

Nothing here knows how a fit was found. A certificate is checked with one `aggregate` and one or two
`adjoint` of the design.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.solve.continuous.problem import Problem
from discreet.solve.fit import Certificate

Vector = NDArray[np.float64]


def certify_least_squares(
    problem: Problem, y: Vector, row_space: Vector, tolerance: float
) -> Certificate:
    r"""The normal equations :math:`XW(X^\top y - z) = 0`, and :math:`y = s + qX\nu`.

    Args:
      problem: Targets and weights.
      y: Fitted inner cells.
      row_space: The same cells in the form :math:`s + qX\nu`, which makes them the nearest to `s`.
      tolerance: What was asked for.
    """
    g = _gradient(problem, y)
    return Certificate(
        stationarity=_largest(g) / problem.scale,
        selection=_largest(y - row_space) / _size(y),
        tolerance=tolerance,
    )


def certify_non_negative(
    problem: Problem,
    y: Vector,
    *,
    exact: NDArray[np.int64],
    multipliers: Vector,
    dual: Vector,
    ridge: float,
    tolerance: float,
) -> Certificate:
    r"""The conditions of Karush, Kuhn and Tucker, and :math:`y = \max(0, s + qX\nu)`.

    With :math:`g` the gradient of the Lagrangian: :math:`g_i = 0` where :math:`y_i > 0`,
    :math:`g_i \ge 0` elsewhere, and the exact margins met.

    Args:
      problem: Targets and weights.
      y: Fitted inner cells.
      exact: Published positions that must be met.
      multipliers: One for each published cell, zero but for the exact ones.
      dual: The vector :math:`\nu` that shows `y` to be the optimum nearest to `s`.
      ridge: Factor of the ridge that is part of the objective, zero without.
      tolerance: What was asked for.
    """
    fitted = problem.design.aggregate(y)
    forces = problem.misfit(fitted)
    forces[exact] = multipliers[exact]
    g = -problem.design.adjoint(forces) + ridge * problem.prior.steps(y)
    movable = problem.prior.movable(len(y))
    g = np.where(movable, g, 0.0)
    selected = np.maximum(problem.prior.moved(problem.design.adjoint(dual)), 0.0)
    return Certificate(
        stationarity=_largest(projected(g, y)) / problem.scale,
        complementarity=_largest(y * np.maximum(g, 0.0)) / (problem.scale * _size(y)),
        feasibility=max(
            float(np.maximum(-y, 0.0).max(initial=0.0)) / _size(y),
            _largest(fitted[exact] - problem.z[exact]) / problem.size,
        ),
        selection=_largest(np.where(movable, y - selected, 0.0)) / _size(y),
        tolerance=tolerance,
    )


def projected(g: Vector, y: Vector) -> Vector:
    """The gradient where a step against it stays feasible, zero elsewhere."""
    return np.where(y > 0, g, np.minimum(g, 0.0))


def _gradient(problem: Problem, y: Vector) -> Vector:
    fitted = problem.design.aggregate(y)
    g = -problem.design.adjoint(problem.misfit(fitted))
    return np.where(problem.prior.movable(len(y)), g, 0.0)


def _largest(values: Vector) -> float:
    return float(np.abs(values).max(initial=0.0))


def _size(y: Vector) -> float:
    return _largest(y) or 1.0
