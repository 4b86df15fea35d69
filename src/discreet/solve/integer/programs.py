r"""Linear and integer programs around a search over whole numbers.

`Nearest` finds the additive table of least weighted absolute deviations,

.. math:: \min_y \sum_k w_k\,|x_k^\top y - t_k|,\qquad y_j \in \mathcal D_j,\qquad
          l_k \le x_k^\top y - t_k \le u_k.

Without the gaps of the domains this is a linear program; in a two-way table a network one, whose
vertices are whole. Its solution is rounded, and integer programs settle the cells that are not
whole; the search goes on from there. All programs are about differences from a whole table, so that
their numbers are small however large the counts are.

`nearest_apart` adds the disjunctions of tabular adjustment, for each protected sum `k`

.. math:: x_k^\top y \le a_k \quad\text{or}\quad x_k^\top y \ge b_k .

With a side chosen for each of them it is a problem with limits for `Nearest`. Sides are chosen by
rounds, and in small tables by one integer program with a switch for each sum, whose bound certifies
the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Index, Mask, Real, Whole
from discreet.errors import InfeasibleError, NotConvergedError
from discreet.solve.integer.problem import LARGEST, FoundTable, Gaps, LatticeProblem, describe
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
            settled = _round_beside(problem, start, change) if y is None else y
            if _rank(problem, settled) <= (0, bound + _TIE):
                return describe(problem, settled, bound, is_optimal=True)
        found = self.search(problem, start, rng=rng)
        tables = [repair_limits(problem, found.y), settled]
        if settled is not start:
            found = self.search(problem, settled, rng=rng)
            tables.append(repair_limits(problem, found.y))
        if change is not None and not hides_cells and _rank(problem, tables[0])[0]:
            tables.append(_round_beside(problem, start, change))
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


def _round_beside(problem: LatticeProblem, start: Whole, change: Real) -> Whole:
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


# Inner cells with a choice, and protected sums, up to which the integer program is run; nodes times
# cells of 20,000 take some seconds. No clock has a say in it, so that a secret decides alone.
_EXACT_CELLS, _EXACT_SUMS, _NODES = 1_000, 400, 20_000
# What a program may be off, and the share of the loss within which a bound proves it.
_ROUNDING, _PROOF = 1e-6, 1e-5
# Rounds of choosing sides: those chosen in one round push a few other sums into their intervals,
# whose turn comes in the next. Tables needed two or three.
_MOST_ROUNDS = 8


def nearest_apart(
    nearest: Nearest,
    problem: LatticeProblem,
    gaps: Gaps,
    start: Whole,
    *,
    is_network: bool,
    rng: np.random.Generator,
) -> FoundTable:
    """The nearest table found in which every protected sum has left its interval.

    Promise: no protected sum lies inside its interval and limits are kept, or an error says that no
    such table was found. `lower_bound` holds for all such tables; `is_optimal` says that none is
    nearer.
    """

    def solve(sides: Whole, y: Whole) -> FoundTable:
        return nearest(_with_sides(problem, gaps, sides), y, is_network=is_network, rng=rng)

    sides = np.where(gaps.below < 0, 1, 0)  # +1 up, -1 down, 0 still open
    tables, y = [], start
    for _ in range(_MOST_ROUNDS):
        found = solve(sides, y)
        still, y = gaps.inside(found.z) & (sides == 0), found.y
        if not still.any():
            tables.append(y)
            break
        sides = _choose_sides(gaps, sides, still, found.z)
    bound = 0.0
    if len(problem.rows) <= _EXACT_CELLS and len(gaps.cells) <= _EXACT_SUMS:
        exact, bound = _by_program(problem, gaps, start)
        if exact is not None:
            up = problem.design.aggregate(exact)[gaps.cells] >= gaps.above
            tables += [exact, solve(np.where(up, 1, -1), exact).y]
    tables = [table for table in tables if _keeps_all(problem, gaps, table)]
    if not tables:
        raise InfeasibleError(
            "no table was found in which every protected cell leaves its interval and all bounds "
            "are kept. Widen the bounds, or make the intervals shorter."
        )
    best = min(tables, key=lambda table: problem.loss(problem.deviation(table)))
    again = describe(problem, best, bound)
    return replace(again, is_optimal=again.loss <= bound + _PROOF * (1 + again.loss))


def _keeps_all(problem: LatticeProblem, gaps: Gaps, y: Whole) -> bool:
    """Whether a table lies in the domain, keeps the limits, and leaves no sum inside."""
    is_broken = problem.violations(problem.deviation(y)).any()
    is_inside = gaps.inside(problem.design.aggregate(y)).any()
    return bool(problem.domain.contains(y).all() and not is_broken and not is_inside)


def _choose_sides(gaps: Gaps, sides: Whole, which: Mask, z: Whole) -> Whole:
    """Sides of sums inside their interval, so that all moves together come to nothing.

    The nearer side for each would move all ones down and all twos up, and their sums with them.
    """
    new, place = sides.copy(), np.flatnonzero(which)
    drift = 0
    for k in place:
        up = int(gaps.above[k] - z[gaps.cells[k]])
        down = int(z[gaps.cells[k]] - gaps.below[k])
        new[k] = 1 if abs(drift + up) < abs(drift - down) or gaps.below[k] < 0 else -1
        drift += up if new[k] > 0 else -down
    return new


def _with_sides(problem: LatticeProblem, gaps: Gaps, sides: Whole) -> LatticeProblem:
    """The problem with a limit for every sum whose side is chosen.

    A target beyond the limit moves to it: deviations cost the same, less a constant.
    """
    low, high = (problem.target + limit for limit in problem.limits)
    up, down = gaps.cells[sides > 0], gaps.cells[sides < 0]
    low[up] = np.maximum(low[up], gaps.above[sides > 0])
    high[down] = np.minimum(high[down], gaps.below[sides < 0])
    target = np.clip(problem.target, low, high).astype(np.int64)
    return replace(problem, target=target, low=low - target, high=high - target)


def _by_program(problem: LatticeProblem, gaps: Gaps, start: Whole) -> tuple[Whole | None, float]:
    """A table by one integer program, if it finds one, and a bound of the loss of all."""
    from scipy import sparse
    from scipy.optimize import Bounds, milp

    domain, (m, n), s = problem.domain, problem.design.matrix().T.shape, len(gaps.cells)
    # Nothing moves further than all protected sums together have to, and what was wrong before.
    room = float((gaps.above - gaps.below).sum() + np.abs(problem.deviation(start)).sum())
    top = np.where(domain.last == LARGEST, start + room, domain.high)
    steps = np.maximum(top - domain.first, 0)
    # Columns: steps above the first value, switches of cells, deviations up and down, sides.
    first = sparse.diags_array(domain.first.astype(np.float64))
    inner = sparse.hstack([sparse.identity(n), first], format="csr")
    is_on = np.where(domain.zero & (domain.first > 0), 0.0, 1.0)
    found: Any = milp(
        np.concatenate([np.zeros(2 * n), problem.all_weights, problem.all_weights, np.zeros(s)]),
        constraints=_rows(problem, gaps, inner, steps, room),
        bounds=Bounds(
            np.concatenate([np.zeros(n), is_on, np.zeros(2 * m + s)]),
            np.concatenate([steps, np.ones(n), np.full(2 * m, np.inf), np.ones(s)]),
        ),
        integrality=np.repeat([1, 0, 1], [2 * n, 2 * m, s]),
        options={"node_limit": 1 + _NODES // n, "mip_rel_gap": 0.0},
    )
    bound = 0.0 if found.mip_dual_bound is None else float(found.mip_dual_bound) - _ROUNDING
    bound = bound if np.isfinite(bound) else 0.0
    if found.x is None:
        return None, max(bound, 0.0)
    y: Whole = np.rint(inner @ np.rint(found.x[: 2 * n])).astype(np.int64)
    return y, max(bound, 0.0)


def _rows(problem: LatticeProblem, gaps: Gaps, inner: Any, steps: Real, room: float) -> list[Any]:
    """Deviations, limits, switches and sides as rows of the program."""
    from scipy import sparse
    from scipy.optimize import LinearConstraint

    X = problem.design.matrix().astype(np.float64).T.tocsr()
    (m, n), s, target = X.shape, len(gaps.cells), problem.target.astype(np.float64)
    least, most = (target + limit for limit in problem.limits)
    least, most = np.maximum(least, target - room), np.minimum(most, target + room)
    each = sparse.identity(m)
    values = sparse.hstack([X @ inner, sparse.csr_array((m, 2 * m + s))], format="csr")
    balance = sparse.hstack([X @ inner, -each, each, sparse.csr_array((m, s))])
    rest = sparse.csr_array((n, 2 * m + s))
    switched = sparse.hstack([sparse.identity(n), -sparse.diags_array(steps), rest])
    places = (np.arange(s), 2 * n + 2 * m + np.arange(s))
    shape, sums = (s, 2 * n + 2 * m + s), values[gaps.cells]
    # One switch a sum: off, it is at most what lies below; on, at least what lies above.
    down, up = most[gaps.cells] - gaps.below, gaps.above - least[gaps.cells]
    return [
        LinearConstraint(balance, target, target),
        LinearConstraint(values, least, most),
        LinearConstraint(switched, -np.inf, 0.0),
        LinearConstraint(sums - sparse.csr_array((down, places), shape), -np.inf, gaps.below),
        LinearConstraint(sums - sparse.csr_array((up, places), shape), least[gaps.cells], np.inf),
    ]
