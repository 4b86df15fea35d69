r"""Certificates of least squares fits, from the result and its multipliers alone.

Nothing here knows how a fit was found. A certificate is checked with one `aggregate` and one or two
`adjoint` of the design.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.solve.continuous.problem import Problem
from discreet.solve.fit import Certificate

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Held:
    """Margins that are held in place, exactly or nearly.

    Attributes:
      at: Their published positions.
      multipliers: The forces that hold them.
      slack: Deviation that a unit of force allows: one over the weight, zero for an exact margin.
    """

    at: NDArray[np.int64]
    multipliers: Vector
    slack: Vector


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
    problem: Problem, y: Vector, held: Held, *, dual: Vector | None, ridge: float, tolerance: float
) -> Certificate:
    r"""The conditions of Karush, Kuhn and Tucker, and :math:`y = \max(0, s + qX\nu)`.

    With :math:`g` the gradient of the Lagrangian: :math:`g_i = 0` where :math:`y_i > 0`,
    :math:`g_i \ge 0` elsewhere, and margins that are held deviate as their multipliers say.

    Args:
      problem: Targets and weights.
      y: Fitted inner cells.
      held: Margins with multipliers of their own.
      dual: The vector :math:`\nu` that shows `y` to be the optimum nearest to `s`; not needed
        when a ridge makes the optimum unique.
      ridge: Factor of the ridge that is part of the objective, zero without.
      tolerance: What was asked for.
    """
    fitted = problem.design.aggregate(y)
    forces = problem.misfit(fitted)
    forces[held.at] = held.multipliers
    movable = problem.prior.movable(len(y))
    g = ridge * problem.prior.steps(y) - problem.design.adjoint(forces)
    g = np.where(movable, g, 0.0)
    off = problem.z[held.at] - fitted[held.at] - held.slack * held.multipliers
    return Certificate(
        stationarity=_largest(projected(g, y)) / problem.scale,
        complementarity=_largest(y / _size(y) * np.maximum(g, 0.0)) / problem.scale,
        feasibility=max(_largest(np.minimum(y, 0.0)) / _size(y), _largest(off) / problem.size),
        selection=0.0 if dual is None else _selection(problem, y, dual, movable),
        tolerance=tolerance,
    )


def _selection(problem: Problem, y: Vector, dual: Vector, movable: NDArray[np.bool_]) -> float:
    chosen = np.maximum(problem.prior.moved(problem.design.adjoint(dual)), 0.0)
    return _largest(np.where(movable, y - chosen, 0.0)) / _size(y)


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
