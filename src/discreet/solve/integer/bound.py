r"""Lower bounds on the loss, from the continuous relaxation and proven by duality.

For any multipliers :math:`\lambda` on the published cells,

.. math:: \min_{y \in \mathcal D} \sum_k \varphi_k(x_k^\top y - t_k) \ \ge\
          -\lambda^\top t - \sum_k \varphi_k^*(\lambda_k)
          + \sum_j \min_{l_j \le y_j \le u_j} (X\lambda)_j\, y_j,

so a solver only has to find good multipliers; the bound holds whatever it returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.solve.integer.problem import Problem, Real

_LARGEST_PROGRAM = 400_000  # non-zero entries of X up to which least absolute deviation is exact
_SMOOTHING = 0.05
_ITERATIONS = 300


def lower_bound(problem: Problem, start: NDArray[Any]) -> float:
    """No point of the domain has a smaller loss than this.

    Args:
      problem: The problem.
      start: Any feasible point; cells without an upper bound get one from its loss.
    """
    if problem.relaxed is not None and _fits(problem, problem.relaxed):
        return 0.0
    if not len(problem.rows):
        return problem.loss(problem.deviation(start))
    loss = problem.loss(problem.deviation(start))
    low, high = box(problem, loss)
    if problem.power == 1 and _entries(problem.design) <= _LARGEST_PROGRAM:
        multipliers = _by_program(problem, low, high)
    else:
        multipliers = _by_descent(problem, low, high, start)
    return min(max(dual_value(problem, multipliers, low, high), 0.0), loss)


def dual_value(problem: Problem, multipliers: Real, low: Real, high: Real) -> float:
    """The bound that multipliers prove over the box `low <= y <= high`."""
    weights, p = weights_of(problem), problem.power
    if p == 1:
        chosen = np.clip(multipliers, -weights, weights)
        conjugate = 0.0
    else:
        chosen = np.where(weights > 0, multipliers, 0.0)
        slope = np.abs(chosen) / (p * np.where(weights > 0, weights, 1.0))
        conjugate = float(((p - 1) * weights * slope ** (p / (p - 1))).sum())
    cost = problem.design.adjoint(chosen)
    least = np.minimum(cost * low, cost * high).sum()
    return float(least - chosen @ problem.target - conjugate)


def _fits(problem: Problem, relaxed: NDArray[Any]) -> bool:
    """Whether a point of the relaxation meets every target."""
    inside = (relaxed >= problem.domain.low) & (relaxed <= problem.domain.high)
    return bool(inside.all()) and problem.loss(problem.deviation(relaxed)) <= 1e-9


def weights_of(problem: Problem) -> Real:
    """One weight for each published cell."""
    if problem.weights is None:
        return np.ones(problem.design.n_published)
    return np.asarray(problem.weights, dtype=np.float64)


def _entries(design: Design) -> int:
    return int(design.row_sums().sum())


def box(problem: Problem, loss: float) -> tuple[Real, Real]:
    """Bounds of the inner cells that every point with at most this loss keeps."""
    weights = weights_of(problem)
    heavy = weights > 0
    reach = np.full(problem.design.n_published, np.inf)
    reach[heavy] = problem.target[heavy] + (loss / weights[heavy]) ** (1 / problem.power)
    high = problem.domain.high.astype(np.float64)
    for where, _ in problem.design.member_blocks():
        inside = where >= 0
        high[inside] = np.minimum(high[inside], reach[where[inside]])
    low = problem.domain.low.astype(np.float64)
    return low, np.maximum(high, low)


def _by_program(problem: Problem, low: Real, high: Real) -> Real:
    """Optimal multipliers of least absolute deviation, by linear programming (HiGHS)."""
    from scipy import sparse
    from scipy.optimize import linprog

    X, weights = problem.design.matrix().astype(np.float64), weights_of(problem)
    identity = sparse.identity(problem.design.n_published, format="csr")
    rest = np.zeros(2 * len(weights))
    bounds: Any = np.column_stack(
        [np.concatenate([low, rest]), np.concatenate([high, rest + np.inf])]
    )
    found = linprog(
        np.concatenate([np.zeros(len(low)), weights, weights]),
        A_eq=sparse.hstack([X.T, -identity, identity], format="csc"),
        b_eq=problem.target,
        bounds=bounds,
        method="highs",
    )
    if found.x is None:
        return np.zeros(problem.design.n_published)
    multipliers: Real = -np.asarray(found.eqlin.marginals, dtype=np.float64)
    return multipliers


def _by_descent(problem: Problem, low: Real, high: Real, start: NDArray[Any]) -> Real:
    """Multipliers from an approximate minimum of the (smoothed) relaxation."""
    from scipy.optimize import Bounds, minimize

    weights, p = weights_of(problem), problem.power

    def slopes(y: Real) -> tuple[Real, Real]:
        deviation = problem.design.aggregate(y) - problem.target
        size = np.sqrt(deviation**2 + (_SMOOTHING**2 if p == 1 else 0.0))
        grown = np.where(size > 0, size, 1.0) ** (p - 2)
        return weights * size**p, weights * p * grown * deviation

    def objective(y: Real) -> tuple[float, Real]:
        losses, slope = slopes(y)
        return float(losses.sum()), problem.design.adjoint(slope)

    found = minimize(
        objective,
        np.clip(start.astype(np.float64), low, high),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(low, high),
        options={"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS},
    )
    return slopes(found.x)[1]
