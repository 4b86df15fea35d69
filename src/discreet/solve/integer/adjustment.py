r"""The nearest additive table: least weighted absolute deviations over whole numbers.

.. math:: \min_y \sum_k w_k\,|x_k^\top y - t_k|,\qquad y_j \in \mathcal D_j,\qquad
          l_k \le x_k^\top y - t_k \le u_k.

Without the gaps of the domains this is a linear program; in a two-way table a network one, whose
vertices are whole. The search chooses which cells are zero, the program does the rest exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.solve.integer.domain import Whole
from discreet.solve.integer.neighbourhood import repaired
from discreet.solve.integer.problem import Found, Problem, Real, describe
from discreet.solve.integer.schedule import SCHEDULE
from discreet.solve.integer.search import Search

_WHOLE = 1e-6


@dataclass(frozen=True)
class Nearest:
    """A search for the nearest additive table, exact where linear programs are.

    Promise: the result lies in the domain. Limits that the search leaves broken are repaired by
    integer programs; `Found.violations` counts what is left. In a network (a two-way table) it is
    a best one whenever the linear program needs no gap, and otherwise the best one among those
    with the same cells at zero.
    Cost: the search, and for networks two linear programs.

    Args:
      search: The search over whole numbers.
      bounded: Whether to compute a lower bound on the loss of tables that keep the limits; by
        default in networks of up to 20,000 inner cells.
    """

    search: Search
    bounded: bool | None = None

    def __call__(
        self, problem: Problem, start: Whole, *, is_network: bool, rng: np.random.Generator
    ) -> Found:
        """The best table found."""
        if not len(start):
            return describe(problem, start, is_optimal=True)
        exact = is_network and len(start) <= SCHEDULE.network_cells
        most = problem.loss(problem.deviation(start))
        bounded = exact if self.bounded is None else self.bounded
        relaxed = _relaxed(problem, most) if bounded else None
        bound = 0.0 if relaxed is None else min(problem.loss(problem.deviation(relaxed)), most)
        if relaxed is not None and (y := _whole(problem, relaxed)) is not None:
            return describe(problem, y, bound, is_optimal=bound < most or not most)
        found = self.search(problem, start, rng=rng)
        best = repaired(problem, found.y) if found.violations else found.y
        polished = _polished(problem, best) if exact else None
        best = best if polished is None else polished
        return describe(
            problem,
            best,
            bound,
            proposals=found.proposals,
            chain_losses=found.chain_losses,
            is_repeatable=found.is_repeatable,
        )


def least_absolute(
    problem: Problem, low: Real, high: Real, *, limited: bool = False
) -> Real | None:
    """A vertex of the linear program over `low <= y <= high`, if there is a point at all.

    Cost: about 10 s for 20,000 inner cells in a three-way table (HiGHS, interior points).

    Args:
      problem: The problem; its power must be 1.
      low: Lower bounds of the inner cells.
      high: Upper bounds of the inner cells.
      limited: Whether the limits of the published cells are kept.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    weights, n = problem.all_weights, problem.design.n_inner
    identity = sparse.identity(len(weights), format="csr")
    X = problem.design.matrix().astype(np.float64)
    under, over = problem.limits if limited else (np.full(len(weights), -np.inf),) * 2
    most = np.concatenate([high, np.abs(over), np.abs(under)])
    bounds: Any = np.column_stack([np.concatenate([low, np.zeros(2 * len(weights))]), most])
    found = linprog(
        np.concatenate([np.zeros(n), weights, weights]),
        A_eq=sparse.hstack([X.T, -identity, identity], format="csc"),
        b_eq=problem.target,
        bounds=bounds,
        method="highs-ipm",
    )
    return None if found.x is None else np.asarray(found.x[:n], dtype=np.float64)


def box(problem: Problem, loss: float) -> tuple[Real, Real]:
    """Bounds of the inner cells that every point with at most this loss keeps."""
    weights = problem.all_weights
    heavy = weights > 0
    reach = np.full(problem.design.n_published, np.inf)
    reach[heavy] = problem.target[heavy] + (loss / weights[heavy]) ** (1 / problem.power)
    high = problem.domain.high.astype(np.float64)
    for where, _ in problem.design.member_blocks():
        inside = where >= 0
        high[inside] = np.minimum(high[inside], reach[where[inside]])
    low = problem.domain.low.astype(np.float64)
    return low, np.maximum(high, low)


def _relaxed(problem: Problem, most: float) -> Real | None:
    """The best point without gaps, with the limits kept where that is possible.

    Points with more than the given loss are left out.
    """
    low, high = box(problem, most)
    limited = least_absolute(problem, low, high, limited=True)
    return least_absolute(problem, low, high) if limited is None else limited


def _whole(problem: Problem, y: Real) -> Whole | None:
    """A point as whole numbers, when it is a point of the problem."""
    rounded: Whole = np.rint(y).astype(np.int64)
    if np.abs(y - rounded).max(initial=0) > _WHOLE or not problem.domain.contains(rounded).all():
        return None
    return None if _breaches(problem, rounded) else rounded


def _polished(problem: Problem, y: Whole) -> Whole | None:
    """The best table with the same cells at zero, when it is better than the given one."""
    low, high = box(problem, problem.loss(problem.deviation(y)))
    low = np.where(y > 0, np.maximum(low, problem.domain.first), 0.0)
    high = np.where(y > 0, high, 0.0)
    vertex = least_absolute(problem, low, high, limited=True)
    better = None if vertex is None else _whole(problem, vertex)
    if better is None or _rank(problem, better) >= _rank(problem, y):
        return None
    return better


def _breaches(problem: Problem, y: Whole) -> int:
    return int(problem.violations(problem.deviation(y)).sum())


def _rank(problem: Problem, y: NDArray[np.int64]) -> tuple[int, float]:
    return _breaches(problem, y), problem.loss(problem.deviation(y))
