r"""The nearest additive table: least weighted absolute deviations over whole numbers.

.. math:: \min_y \sum_k w_k\,|x_k^\top y - t_k|,\qquad y_j \in \mathcal D_j,\qquad
          l_k \le x_k^\top y - t_k \le u_k.

Without the gaps of the domains this is a linear program; in a two-way table a network one, whose
vertices are whole. The search chooses which cells are zero, the program does the rest exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.solve.integer.domain import LARGEST
from discreet.solve.integer.neighbourhood import repaired
from discreet.solve.integer.problem import Found, Problem, describe
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
        bounded = exact if self.bounded is None else self.bounded
        relaxed = _relaxed(problem) if bounded else None
        bound = 0.0 if relaxed is None else problem.loss(problem.deviation(relaxed))
        if relaxed is not None and (y := _whole(problem, relaxed)) is not None:
            return describe(problem, y, bound, is_optimal=True)
        found = self.search(problem, start, rng=rng)
        best = repaired(problem, found.y) if found.violations else found.y
        best = _polished(problem, best) if exact else best
        again = describe(problem, best, bound)
        return replace(again, proposals=found.proposals, is_repeatable=found.is_repeatable)


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


def _relaxed(problem: Problem) -> Real | None:
    """The best point without gaps, with the limits kept where that is possible."""
    low, high = _range(problem)
    limited = least_absolute(problem, low, high, limited=True)
    return least_absolute(problem, low, high) if limited is None else limited


def _range(problem: Problem) -> tuple[Real, Real]:
    """Bounds of the inner cells, without gaps."""
    domain = problem.domain
    high = np.where(domain.last == LARGEST, np.inf, domain.high)
    return domain.low.astype(np.float64), high


def _whole(problem: Problem, y: Real) -> Whole | None:
    """A point as whole numbers, when it is a point of the problem."""
    rounded: Whole = np.rint(y).astype(np.int64)
    if np.abs(y - rounded).max(initial=0) > _WHOLE or not problem.domain.contains(rounded).all():
        return None
    return None if _rank(problem, rounded)[0] else rounded


def _polished(problem: Problem, y: Whole) -> Whole:
    """The best table with the same cells at zero, when it is better than the given one."""
    low = np.where(y > 0, problem.domain.first, 0.0)
    high = np.where(y > 0, _range(problem)[1], 0.0)
    vertex = least_absolute(problem, low, high, limited=True)
    better = None if vertex is None else _whole(problem, vertex)
    return y if better is None else min(y, better, key=lambda table: _rank(problem, table))


def _rank(problem: Problem, y: Whole) -> tuple[int, float]:
    deviation = problem.deviation(y)
    return int(problem.violations(deviation).sum()), problem.loss(deviation)
