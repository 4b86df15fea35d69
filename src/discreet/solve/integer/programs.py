r"""Linear and integer programs around a search over whole numbers.

`Nearest` finds the additive table of least weighted absolute deviations,

.. math:: \min_y \sum_k w_k\,|x_k^\top y - t_k|,\qquad y_j \in \mathcal D_j,\qquad
          l_k \le x_k^\top y - t_k \le u_k.

Without the gaps of the domains this is a linear program; in a two-way table a network one, whose
vertices are whole. Its solution is rounded, and integer programs settle the cells that are not
whole; the search goes on from there. All programs are about differences from a whole table, so that
their numbers are small however large the counts are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Index, Real, Whole
from discreet.errors import NotConvergedError
from discreet.solve.integer.problem import LARGEST, FoundTable, LatticeProblem, describe
from discreet.solve.integer.repair import Repair, repair_limits
from discreet.solve.integer.search import LatticeSearch

_NEARLY_WHOLE = 1e-6  # how far errors of a program may leave a vertex from whole numbers
# Inner cells up to which linear programs are solved without being asked, in about ten seconds;
# fewer where inner cells are published, since there the search alone comes as near.
_PROGRAM_CELLS, _PUBLISHED_CELLS = 20_000, 2000
# How far a linear program may first move a cell from a fit, besides the largest deviation there.
_FIRST_REACH = 100
# Inner cells up to which one integer program lowers the loss of the whole table in the end, in a
# second or two; fewer where inner cells are published, since there it finds hardly anything.
_POLISHED_CELLS, _POLISHED_PUBLISHED_CELLS = 240, 60
_TIE = 1e-6  # losses this near are the same


@dataclass(frozen=True)
class Nearest:
    """A search for the nearest additive table, exact where linear programs are.

    Promise: the result lies in the domain. Limits that the search leaves broken are repaired by
    integer programs; `FoundTable.violations` counts what is left. It is a best one whenever the
    linear program has a whole solution without a gap, as in most tables of large counts; in a
    network (a two-way table) otherwise the best one among those with the same cells at zero.
    Cost: the search, linear programs for up to 20,000 inner cells (2,000 where these are published
    and the table is no network), and an integer program for up to 240 (60).

    Args:
      search: The search over whole numbers.
      bounded: Whether to solve the linear program, which bounds the loss of tables that keep the
        limits from below; by default as said under cost.
    """

    search: LatticeSearch
    bounded: bool | None = None

    def __call__(
        self, problem: LatticeProblem, start: Whole, *, is_network: bool, rng: np.random.Generator
    ) -> FoundTable:
        """The best table found."""
        if not len(start):
            return describe(problem, start, is_optimal=True)
        hides_cells = bool((problem.design.inner_in_published() < 0).any())
        most = _PROGRAM_CELLS if is_network or hides_cells else _PUBLISHED_CELLS
        few, bound, settled, change = len(start) <= most, 0.0, start, None
        if few if self.bounded is None else self.bounded:
            change = _relax(problem, start)
            bound = _least_loss(problem, start, change)
        # Of equally good tables with published inner cells the search finds one in the middle.
        if change is not None and (is_network or hides_cells):
            y = _whole(problem, start, change)
            settled = _settle(problem, start, change) if y is None else y
            if _rank(problem, settled) <= (0, bound + _TIE):
                return describe(problem, settled, bound, is_optimal=True)
        found = self.search(problem, start, rng=rng)
        tables = [repair_limits(problem, found.y), settled]
        if settled is not start:
            found = self.search(problem, settled, rng=rng)
            tables.append(repair_limits(problem, found.y))
        if change is not None and not hides_cells and _rank(problem, tables[0])[0]:
            tables.append(_settle(problem, start, change))
        best = min(tables, key=lambda table: _rank(problem, table))
        if is_network and few:
            # With the same cells at zero there are no gaps left to choose: a network again.
            low = np.where(best > 0, problem.domain.first, 0.0)
            high = np.where(best > 0, _ceiling(problem), 0.0)
            vertex = least_absolute(problem, best, low, high, limited=True)
            if vertex is not None and (y := _whole(problem, best, vertex)) is not None:
                best = min(best, y, key=lambda table: _rank(problem, table))
        polished = _POLISHED_CELLS if hides_cells else _POLISHED_PUBLISHED_CELLS
        if len(problem.rows) <= polished and _rank(problem, best) > (0, bound + _TIE):
            best = _polish(problem, best, np.arange(len(problem.rows)))
        again = describe(problem, best, bound, is_optimal=_rank(problem, best) <= (0, bound + _TIE))
        return replace(again, proposals=found.proposals, is_repeatable=found.is_repeatable)


def least_absolute(
    problem: LatticeProblem, start: Whole, low: Real, high: Real, *, limited: bool = False
) -> Real | None:
    """What a vertex of the linear program over `low <= y <= high` adds to a whole table.

    Nothing where there is no point at all. The problem's power must be 1; the limits of published
    cells are kept if `limited` says so.
    Cost: about 10 s for 20,000 inner cells in a three-way table (HiGHS, interior points).
    """
    from scipy import sparse
    from scipy.optimize import linprog

    weights, n = problem.all_weights, problem.design.n_inner
    identity = sparse.identity(len(weights), format="csr")
    X = problem.design.matrix().astype(np.float64)
    under, over = problem.limits if limited else (np.full(len(weights), -np.inf),) * 2
    most = np.concatenate([high - start, np.abs(over), np.abs(under)])
    least = np.concatenate([low - start, np.zeros(2 * len(weights))])
    bounds: Any = np.column_stack([least, most])
    found = linprog(
        np.concatenate([np.zeros(n), weights, weights]),
        A_eq=sparse.hstack([X.T, -identity, identity], format="csc"),
        b_eq=-problem.deviation(start),
        bounds=bounds,
        method="highs-ipm",
    )
    return None if found.x is None else np.asarray(found.x[:n], dtype=np.float64)


def _relax(problem: LatticeProblem, start: Whole) -> Real:
    """What the best real table without gaps adds to a whole one."""
    low, high = problem.domain.low.astype(np.float64), _ceiling(problem)
    reach = _FIRST_REACH + np.abs(problem.deviation(start)).max(initial=0)
    near = np.maximum(low, start - reach), np.minimum(high, start + reach)
    # A solution inside these bounds is the best one without them, too, since the loss is convex.
    change = least_absolute(problem, start, *near, limited=True)
    if change is None or (np.abs(change) >= reach - _NEARLY_WHOLE).any():
        change = least_absolute(problem, start, low, high, limited=True)
    # Limits that no point keeps are left out: the bound then holds for all tables.
    change = least_absolute(problem, start, low, high) if change is None else change
    if change is None:
        raise NotConvergedError("the linear program of an adjustment could not be run (HiGHS).")
    return change


def _least_loss(problem: LatticeProblem, start: Whole, change: Real) -> float:
    """The loss of the best real table, rounded up where losses of whole tables are whole."""
    loss = problem.loss(problem.deviation(start) + problem.design.aggregate(change))
    weight, whole = problem.all_weights.max(initial=0.0), np.rint(problem.target)
    if weight > 0 and (problem.all_weights == weight).all() and (problem.target == whole).all():
        return float(weight * np.ceil(loss / weight - _NEARLY_WHOLE))
    return loss


def _settle(problem: LatticeProblem, start: Whole, change: Real) -> Whole:
    """A table beside a real solution: integer programs settle what is not whole there."""
    near = start + np.rint(change).astype(np.int64)
    y = np.where(problem.domain.contains(near), near, problem.domain.nearest(start + change))
    state = Repair(problem, y)
    moved = np.flatnonzero(np.abs(start - y + change)[state.rows] > _NEARLY_WHOLE)
    if len(moved):
        state.improve(moved)
    y = repair_limits(problem, state.y)
    return _polish(problem, y, moved) if len(moved) else y


def _polish(problem: LatticeProblem, y: Whole, places: Index) -> Whole:
    """A table of less loss within a few steps of some cells, as far as one program finds it."""
    state = Repair(problem, y)
    state.improve(places)
    return state.y


def _ceiling(problem: LatticeProblem) -> Real:
    """Largest values of the inner cells; infinite where any number is allowed."""
    return np.where(problem.domain.last == LARGEST, np.inf, problem.domain.high)


def _whole(problem: LatticeProblem, start: Whole, change: Real) -> Whole | None:
    """A whole table and what is added to it as whole numbers, when it is a point of the problem."""
    rounded: Whole = np.rint(change).astype(np.int64)
    y = start + rounded
    is_whole = np.abs(change - rounded).max(initial=0) <= _NEARLY_WHOLE
    if not is_whole or not problem.domain.contains(y).all():
        return None
    return None if _rank(problem, y)[0] else y


def _rank(problem: LatticeProblem, y: Whole) -> tuple[int, float]:
    deviation = problem.deviation(y)
    return int(problem.violations(deviation).sum()), problem.loss(deviation)
