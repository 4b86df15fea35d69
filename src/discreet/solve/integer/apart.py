r"""Tables in which some sums must leave an interval: the disjunctions of tabular adjustment.

To a problem of least weighted absolute deviations each protected sum `k` adds

.. math:: x_k^\top y \le a_k \quad\text{or}\quad x_k^\top y \ge b_k .

With a side chosen for each of them it is a problem with limits, which `Nearest` solves. Sides are
chosen by rounds, and in small tables by one integer program with a switch for each sum, whose bound
certifies the result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.errors import InfeasibleError
from discreet.solve.integer.problem import LARGEST, FoundTable, Gaps, LatticeProblem, describe
from discreet.solve.integer.programs import Nearest

# Inner cells with a choice, and protected sums, up to which the integer program is run; nodes times
# cells of 20,000 take some seconds. No clock has a say in it, so that a secret decides alone.
_PROGRAM_CELLS, _PROGRAM_SUMS, _NODES = 1_000, 400, 20_000
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
    if len(problem.rows) <= _PROGRAM_CELLS and len(gaps.cells) <= _PROGRAM_SUMS:
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
