r"""Linear and integer programs around a search over whole numbers.

`Nearest` finds the additive table of least weighted absolute deviations,

.. math:: \min_y \sum_k w_k\,|x_k^\top y - t_k|,\qquad y_j \in \mathcal D_j,\qquad
          l_k \le x_k^\top y - t_k \le u_k.

Without the gaps of the domains this is a linear program; in a two-way table a network one, whose
vertices are whole. Its solution is rounded, and integer programs settle the cells that are not
whole; the search goes on from there. All programs are about differences from a whole table, so that
their numbers are small however large the counts are.

`repair_limits` mends limits that a search has left broken. All inner cells but those near a
violated published cell are held; among the points that keep every limit kept so far, an integer
program finds one that breaks the others least, and of these one of small loss. The current point is
one of them, so a repair never makes matters worse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Index, Real, Whole
from discreet.errors import NotConvergedError
from discreet.progress import report
from discreet.solve.integer.problem import LARGEST, FoundTable, LatticeProblem, describe
from discreet.solve.integer.search import LatticeSearch
from discreet.solve.linear.program import highs_model, load_highs

_NEARLY_WHOLE = 1e-6  # how far errors of a program may leave a vertex from whole numbers
# Inner cells up to which linear programs are solved without being asked, in about ten seconds;
# fewer where inner cells are published, since there the search alone comes as near.
_PROGRAM_CELLS, _PUBLISHED_CELLS = 20_000, 2000
# How far a linear program may first move a cell from a fit, besides the largest deviation there.
_FIRST_REACH = 100
# Inner cells that an integer program may move, in growing neighbourhoods: effort grows far faster
# than size, and most breaches need few cells.
_SIZES = (200, 600, 2000, 6000, 20_000)
_NODES = 40_000  # branch-and-bound nodes of one program, times the inner cells it may move
# Simplex iterations times columns, of all programs together: about a minute. A limit in seconds
# would make the result depend on the machine.
_EFFORT = 2e8
# A size is gone through again when no more than this share of the excess is left.
_WORTHWHILE = 0.9
# Steps that a cell may move in a program, besides the largest excess: the smaller this bound, the
# tighter the link between its steps and its switch in the relaxed program.
_RISE = 6
_REACH = 3  # how often weight spreads from published to inner cells and back to find neighbours
# Inner cells up to which one integer program lowers the loss of the whole table in the end. With
# more it takes seconds and finds hardly anything.
_POLISHED_CELLS = 60
# What breaking a limit by one costs, in losses of the heaviest cell, where the loss counts as well.
_BREACH = 1e4
# Share of the loss above its bound that no further program is worth.
_CLOSE = 1e-3
_TIE = 1e-6  # losses this near are the same


@dataclass(frozen=True)
class Nearest:
    """A search for the nearest additive table, exact where linear programs are.

    Promise: the result lies in the domain. Limits that the search leaves broken are repaired by
    integer programs; `FoundTable.violations` counts what is left. It is a best one whenever the
    linear program has a whole solution without a gap, as in most tables of large counts; in a
    network (a two-way table) otherwise the best one among those with the same cells at zero.
    Cost: the search, linear programs for up to 20,000 inner cells (2,000 where these are published
    and the table is no network), and an integer program for up to 60.

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
        if is_network and few:
            # With the same cells at zero there are no gaps left to choose: a network again.
            filled = tables[0] > 0
            low = np.where(filled, problem.domain.first, 0.0)
            high = np.where(filled, _ceiling(problem), 0.0)
            vertex = least_absolute(problem, tables[0], low, high, limited=True)
            if vertex is not None and (y := _whole(problem, tables[0], vertex)) is not None:
                tables.append(y)
        best = min(tables, key=lambda table: _rank(problem, table))
        if len(problem.rows) <= _POLISHED_CELLS and _rank(problem, best) > (0, bound + _TIE):
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
    found = linprog(
        np.concatenate([np.zeros(n), weights, weights]),
        A_eq=sparse.hstack([X.T, -identity, identity], format="csc"),
        b_eq=-problem.deviation(start),
        bounds=np.column_stack([least, most]),
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
    state = _Repair(problem, y)
    moved = np.flatnonzero(np.abs(start - y + change)[state.rows] > _NEARLY_WHOLE)
    if len(moved):
        state.improve(moved)
    y = repair_limits(problem, state.y)
    return _polish(problem, y, moved) if len(moved) else y


def _polish(problem: LatticeProblem, y: Whole, places: Index) -> Whole:
    """A table of less loss within a few steps of some cells, as far as one program finds it."""
    state = _Repair(problem, y)
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


def repair_limits(problem: LatticeProblem, y: Whole) -> Whole:
    """A point that keeps the limits, or breaks them less, near a point of the domain.

    Neighbourhoods grow until all limits are kept or a program over all cells has ended. Cells
    with a gap above zero are switched on and off; cells move by a few steps at most. Absolute
    deviations, which are linear, are kept small meanwhile.

    Promise: the result lies in the domain and breaks limits by no more in sum; the same input
    gives the same result whatever the number of threads and the speed of the machine.
    Cost: seconds for a hundred violated cells; no new program is begun after about a minute's
    worth of simplex iterations.
    """
    if not problem.violations(problem.deviation(y)).any():
        return y
    state = _Repair(problem, y)
    for size in _SIZES:
        while state.excess.any() and state.spent < _EFFORT and _sweep(state, size):
            pass
        if size >= len(state.rows):
            break
    return state.y


def _sweep(state: _Repair, size: int) -> bool:
    """Repair around each violated cell in turn; says whether to do it once more."""
    before = np.abs(state.excess).sum()
    for k in np.flatnonzero(state.excess).tolist():
        if state.excess[k] and state.spent < _EFFORT:  # an earlier program may have mended it
            state.improve(_around(state, k, size))
        if size >= len(state.rows):
            return False
    report("repair", state.spent / _EFFORT)
    return bool(np.abs(state.excess).sum() <= _WORTHWHILE * before)


class _Repair:
    """The point, its published cells, and what the program needs to know of the problem.

    `rows` are the inner cells that may move, `members` their published cells (a step of an inner
    cell adds an entry of its row), `cells` the same by published cell. `weights` is nothing where
    the loss is not linear.
    """

    def __init__(self, problem: LatticeProblem, y: Whole) -> None:
        self.rows = problem.rows
        part = problem.domain.take(self.rows)
        self.first, self.step = part.first.astype(np.int64), part.step.astype(np.int64)
        self.most = (part.high - self.first) // self.step
        self.gapped = part.zero & (self.first > 0)
        self.y = y.copy()
        self.z = problem.design.aggregate(y).astype(np.float64)
        X = problem.design.matrix()[self.rows].astype(np.float64)
        self.members = X.multiply(self.step[:, None].astype(np.float64)).tocsr()
        self.cells = self.members.T.tocsr()
        self.size = np.maximum(np.diff(self.cells.indptr), 1)
        low, high = problem.limits
        self.target = np.asarray(problem.target, dtype=np.float64)
        self.weights = problem.all_weights if problem.power == 1 else None
        # Sums of whole cells are whole: limits are rounded inwards, which tightens programs.
        self.low = np.ceil(problem.target + low - 1e-9)
        self.high = np.floor(problem.target + high + 1e-9)
        self.excess = _excess(self.z, self.low, self.high)
        self.spent = 0.0

    def improve(self, places: Index) -> None:
        """Move some of the rows so that limits are broken least, and of such moves the best."""
        chosen, switch = self.rows[places], _Switches(self, places)
        A = switch.columns(self.members[places]).T.tocsr()
        touched = np.flatnonzero(np.diff(A.indptr))
        A, now = A[touched], switch.point(self.y[chosen])
        goal = _Goal.of(self, touched, A @ now)
        found, effort = _program(A, goal, switch, now)
        self.spent += effort
        y = switch.inner(found)
        z = self.z[touched] + A @ (found - now)
        excess = _excess(z, self.low[touched], self.high[touched])
        before, after = np.abs(self.excess[touched]).sum(), np.abs(excess).sum()
        if after < before or (after == before and goal.loss(A @ found) < goal.loss(A @ now)):
            self.y[chosen], self.z[touched], self.excess[touched] = y, z, excess


@dataclass(frozen=True, eq=False)
class _Goal:
    """What is asked of the rows of a program: their limits, and what deviations from a target cost.

    Attributes:
      low: Lower limits.
      high: Upper limits.
      excess: How far the present point lies above, or below, its limits.
      target: Where a row costs nothing.
      weights: What a deviation by one costs; nothing where deviations do not count.
    """

    low: Real
    high: Real
    excess: Real
    target: Real
    weights: Real | None

    @classmethod
    def of(cls, state: _Repair, touched: Index, present: Real) -> _Goal:
        """The goal of some published cells, less what cells outside the program add to them."""
        rest = state.z[touched] - present
        given = (state.low[touched] - rest, state.high[touched] - rest, state.excess[touched])
        weights = None if state.weights is None else state.weights[touched]
        return cls(*given, state.target[touched] - rest, weights)

    def loss(self, values: Real) -> float:
        """What the deviations of the rows cost."""
        return 0.0 if self.weights is None else float(self.weights @ np.abs(values - self.target))


class _Switches:
    """Some of the rows as columns of a program: their steps, then switches of those with a gap.

    An inner cell is its first value, while its switch is on, and whole steps, none while it is
    off. Cells far above their gap cannot reach it: their first value is one that they can.
    """

    def __init__(self, state: _Repair, places: Index) -> None:
        self.first, self.step = state.first[places], state.step[places]
        present = np.maximum((state.y[state.rows[places]] - self.first) // self.step, 0)
        room = int(np.abs(state.excess).max()) + _RISE
        skipped = np.maximum(present - room, 0)
        self.first = self.first + skipped * self.step
        self.gapped = state.gapped[places] & (skipped == 0)
        self.most = np.minimum(state.most[places], present + room) - skipped

    @property
    def bounds(self) -> tuple[Whole, Whole]:
        """The smallest and the largest value of each column."""
        on = np.ones(int(self.gapped.sum()), dtype=np.int64)
        return np.zeros(len(self.first) + len(on)), np.append(self.most, on)

    def columns(self, members: Any) -> Any:
        """Rows of members for steps, followed by those for switches."""
        from scipy import sparse

        part = np.flatnonzero(self.gapped)
        lifted = members[part].multiply((self.first / self.step)[part, None])
        return sparse.vstack([members, lifted], format="csr")

    def links(self) -> Any:
        """A row for each switch: steps less what the switch allows, which is zero at most."""
        from scipy import sparse

        part = np.flatnonzero(self.gapped)
        steps = sparse.identity(len(self.first), format="csr")[part]
        return sparse.hstack([steps, sparse.diags_array(-self.most[part].astype(np.float64))])

    def point(self, y: Whole) -> Whole:
        """The columns of a point."""
        on = ~self.gapped | (y > 0)
        return np.append(np.where(on, (y - self.first) // self.step, 0), on[self.gapped])

    def inner(self, point: Whole) -> Whole:
        """The point of columns."""
        on, steps = np.ones(len(self.first), dtype=np.int64), point[: len(self.first)]
        on[self.gapped] = point[len(steps) :]
        return self.first * on + self.step * steps


def _excess(z: Real, low: Real, high: Real) -> Real:
    """How far published cells lie above (or, negative, below) their limits."""
    excess: Real = np.maximum(z - high, 0.0) + np.minimum(z - low, 0.0)
    return excess


def _around(state: _Repair, k: int, size: int) -> Index:
    """The rows nearest to a published cell: weight spreads from it, thinly through large cells."""
    weight, near = np.zeros(len(state.size)), np.zeros(len(state.rows))
    weight[k] = 1.0
    for _ in range(_REACH):
        near += state.members @ (weight / state.size)
        weight = state.cells @ near / state.size
    return np.sort(np.argsort(-near, kind="stable")[:size])


def _program(A: Any, goal: _Goal, switch: _Switches, point: Whole) -> tuple[Whole, float]:
    """A point no worse than the given one, and the effort; no clock has a say in it."""
    highspy = load_highs("mending limits")
    from scipy import sparse

    # Broken limits get a column of relief each, at most as large as the breach is now and the only
    # thing that costs; limits that are kept get none, and so stay kept.
    broken, n, links = np.flatnonzero(goal.excess), A.shape[1], switch.links()
    signs = (-np.sign(goal.excess[broken]), (broken, np.arange(len(broken))))
    parts = [A, sparse.csc_array(signs, shape=(len(goal.excess), len(broken)))]
    size = np.abs(goal.excess[broken])
    least, most = switch.bounds
    low, high, least = goal.low, goal.high, np.append(least, np.zeros(len(broken)))
    most, cost, known = (
        np.append(most, size),
        np.repeat([0.0, 1.0], [n, len(broken)]),
        [point, size],
    )
    heaviest, breach = 1.0, 1.0
    if goal.weights is not None:
        heaviest = float(goal.weights.max(initial=0.0)) or 1.0
        breach = _BREACH * heaviest
        # Two columns more for each row: how far it lies above its target, and how far below.
        each = sparse.identity(len(low), format="csr")
        parts += [-each, each]
        cost = np.concatenate([breach * cost, goal.weights, goal.weights])
        beyond = np.maximum([high - goal.target, goal.target - low], 0.0)
        most = np.concatenate([most, *beyond])
        least = np.append(least, np.zeros(2 * len(low)))
        above = A @ point - goal.excess - goal.target
        known += [np.maximum(above, 0.0), np.maximum(-above, 0.0)]
        low = high = goal.target
    none = sparse.csr_array((links.shape[0], len(cost) - n))
    matrix = sparse.vstack([sparse.hstack(parts), sparse.hstack([links, none])], format="csc")
    ends = np.full(links.shape[0], -np.inf), np.zeros(links.shape[0])
    rows = np.append(low, ends[0]), np.append(high, ends[1])
    lp = highs_model(matrix, rows=rows, columns=(least, most))
    lp.col_cost_ = cost
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger] * n + [kinds.kContinuous] * (len(cost) - n)
    solver: Any = highspy.Highs()
    options = {
        "output_flag": False,
        "parallel": "off",
        "mip_max_nodes": _NODES // max(2 * len(switch.first), 1) + 1,
        "mip_rel_gap": 0.0,
        # Excess is a whole number: within half of one the bound is met, and below it all is kept.
        # The loss then is that of the first such point, and programs without excess lower it.
        "mip_abs_gap": 0.5 * breach,
        "objective_target": 0.5 * breach,
    }
    if goal.weights is None:
        # Presolve finds hardly anything in zeros and ones, and heuristics search longer after it.
        options["presolve"] = "off"
    elif not len(broken):
        options |= {"mip_abs_gap": 0.5 * heaviest, "mip_rel_gap": _CLOSE}
        options["objective_target"] = -np.inf
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solution = highspy.HighsSolution()
    solution.col_value = np.concatenate(known).astype(np.float64).tolist()
    solver.setSolution(solution)
    if solver.run() == highspy.HighsStatus.kError:
        raise NotConvergedError("the integer program of a repair could not be run (HiGHS).")
    iterations = max(int(solver.getInfo().simplex_iteration_count), 0)
    found = np.array(solver.getSolution().col_value)
    return np.rint(found[:n]).astype(np.int64), float(iterations + 1) * lp.num_col_
