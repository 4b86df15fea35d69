r"""The nearest additive table: least weighted absolute deviations over whole numbers.

.. math:: \min_y \sum_k w_k\,|x_k^\top y - t_k|,\qquad y_j \in \mathcal D_j,\qquad
          l_k \le x_k^\top y - t_k \le u_k.

Without the gaps of the domains this is a linear program; in a two-way table a network one, whose
vertices are whole. The search chooses which cells are zero, the program does the rest exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.solve.integer.bound import box, least_absolute
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
            return describe(problem, start, 0.0, is_optimal=True)
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
            seconds=found.seconds,
            chain_losses=found.chain_losses,
            is_repeatable=found.is_repeatable,
        )


def _relaxed(problem: Problem, most: float) -> Real | None:
    """The best point without gaps, with the limits kept where that is possible.

    Points with more than the given loss are left out.
    """
    low, high = box(problem, most)
    limited = least_absolute(problem, low, high, limited=True)
    solved = least_absolute(problem, low, high) if limited is None else limited
    return None if solved is None else solved[0]


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
    solved = least_absolute(problem, low, high, limited=True)
    better = None if solved is None else _whole(problem, solved[0])
    if better is None or _rank(problem, better) >= _rank(problem, y):
        return None
    return better


def _breaches(problem: Problem, y: Whole) -> int:
    return int(problem.violations(problem.deviation(y)).sum())


def _rank(problem: Problem, y: NDArray[np.int64]) -> tuple[int, float]:
    return _breaches(problem, y), problem.loss(problem.deviation(y))
