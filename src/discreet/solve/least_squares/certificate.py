r"""Certificates of least squares fits, from the result and its multipliers alone.

Nothing here knows how a fit was found. A certificate is checked with one or two `aggregate` and
`adjoint` of the design; what its numbers are relative to is a `Goal`.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Real
from discreet.solve.fit import Certificate
from discreet.solve.least_squares.problem import Problem
from discreet.solve.least_squares.schedule import GOAL


def certify_least_squares(problem: Problem, y: Real, row_space: Real) -> Certificate:
    r"""The normal equations :math:`XW(X^\top y - z) = 0`, and :math:`y = s + qX\nu`.

    `row_space` are the cells `y` in the latter form, which makes them the nearest to `s`.
    """
    movable, fitted = problem.prior.movable(len(y)), problem.design.aggregate(y)
    g = np.where(movable, -problem.design.adjoint(problem.misfit(fitted)), 0.0)
    return _certificate(problem, g, np.zeros(0), y - row_space)


def certify_non_negative(
    problem: Problem,
    y: Real,
    multipliers: Real,
    *,
    dual: Real | None,
    ridge: float,
    norm_dual: Real | None = None,
) -> Certificate:
    r"""The conditions of Karush, Kuhn and Tucker, and :math:`y = \max(0, s + qX\nu)`.

    With :math:`g` the gradient of the Lagrangian and `d` the curvature,
    :math:`\min(d_iy_i, g_i) = 0`, and margins that are held deviate as their multipliers say.

    Args:
      problem: Targets, weights, and what was asked for.
      y: Fitted inner cells.
      multipliers: Those of the margins that the problem holds.
      dual: The vector :math:`\nu` that shows `y` to be the optimum nearest to `s`; not needed
        when a ridge makes the optimum unique.
      ridge: Factor of the ridge that is part of the objective, zero without.
      norm_dual: A vector that shows the norm of `y` to be nearly the smallest instead.
    """
    fitted, movable = problem.design.aggregate(y), problem.prior.movable(len(y))
    residuals = problem.misfit(fitted)
    residuals[problem.held] = multipliers
    g = ridge * problem.prior.steps(y) - problem.design.adjoint(residuals)
    off = (problem.z - fitted)[problem.held] - problem.slack * multipliers
    apart = np.zeros_like(y)
    if dual is not None:
        apart = y - np.maximum(problem.prior.moved(problem.design.adjoint(dual)), 0.0)
    blocked = np.minimum(g, problem.goal.curvature * y)
    blocked, apart = (np.where(movable, values, 0.0) for values in (blocked, apart))
    excess = 0.0
    if norm_dual is not None:
        must_be_zero = problem.design.adjoint((fitted == 0).astype(float)) > 0
        inner = np.where(must_be_zero, 0.0, problem.design.adjoint(norm_dual))
        excess = norm_excess(y, smallest_norm(fitted, norm_dual, inner))
    return _certificate(problem, blocked, off, apart, excess)


def smallest_norm(fitted: Real, dual: Real, inner: Real) -> float:
    r"""A norm that no table :math:`y \ge 0` with the given published cells falls below.

    For any :math:`\nu`, :math:`\hat z^\top \nu = y^\top X\nu \le \|y\| \, \|\max(0, X\nu)\|`.

    Args:
      fitted: The published cells.
      dual: Any vector over them.
      inner: The same vector on the inner cells, :math:`X\nu`; zero where cells must be.
    """
    size = float(np.linalg.norm(np.maximum(inner, 0.0)))
    return max(float(fitted @ dual), 0.0) / size if size > 0 else 0.0


def norm_excess(y: Real, smallest: float) -> float:
    """By what part the norm of a table may exceed the smallest one."""
    norm = float(np.linalg.norm(y))
    if norm == 0.0:
        return 0.0
    return norm / smallest - 1.0 if smallest > 0 else np.inf


def _certificate(
    problem: Problem, g: Real, off: Real, apart: Real, excess: float = 0.0
) -> Certificate:
    """Every condition in units of its limit, times the tolerance."""
    goal, tolerance = problem.goal, problem.goal.accuracy.tolerance
    gradient, margin = g / goal.gradient, off / goal.margin[problem.held]
    deviation, cell = _in_counts(problem, g, gradient)
    if _largest(margin) > _largest(gradient):
        worst = int(np.abs(margin).argmax())
        deviation, cell = abs(float(off[worst])), int(problem.held[worst])
    return Certificate(
        stationarity=tolerance * _largest(gradient),
        feasibility=tolerance * _largest(margin),
        selection=tolerance * max(_largest(apart / goal.inner), excess / GOAL.excess),
        tolerance=tolerance,
        deviation=deviation,
        cell=cell,
    )


def _in_counts(problem: Problem, g: Real, gradient: Real) -> tuple[float, int | None]:
    """The worst gradient as the deviation of one published cell, and which one."""
    if len(g) == 0:
        return 0.0, None
    chosen = np.zeros(len(g))
    worst = int(np.abs(gradient).argmax())
    chosen[worst] = 1.0
    counting = (problem.design.aggregate(chosen) > 0) & (problem.weights > 0)
    soft = counting.copy()
    soft[problem.held] = False
    cells = np.flatnonzero(soft if soft.any() else counting)
    if len(cells) == 0:
        return 0.0, None
    cell = int(cells[(problem.weights * problem.goal.margin)[cells].argmin()])
    return abs(float(g[worst])) / float(problem.weights[cell]), cell


def _largest(values: Real) -> float:
    return float(np.abs(values).max(initial=0.0))
