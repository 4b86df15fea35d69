r"""Integer programs that mend limits which a search over whole numbers has left broken.

All inner cells but those near a violated published cell are held; among the points that keep every
limit kept so far, an integer program finds one that breaks the others least, and of these one of
small loss. The current point is one of them, so a repair never makes matters worse.

Where cells are 0 or 1, a feasibility pump goes first: the rounding nearest to a start `s` that
keeps all limits. The linear program

.. math:: \min_u \sum_j |u_j - s_j| \quad\text{with}\quad 0 \le u_j \le 1,\quad
          l_k \le x_k^\top u \le h_k

has a solution, for the fractions that are rounded are a point of it, and most of its cells are
whole. What is not is settled by itself, and the result is the next start (Fischetti, Glover & Lodi,
2005). Whole vertices, as in two-way tables, end it at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Index, Real, Whole
from discreet.errors import InfeasibleError, NotConvergedError
from discreet.progress import report
from discreet.solve.integer.problem import Domain, LatticeProblem
from discreet.solve.linear.program import Program, highs_model, load_highs, solver_with

# Inner cells that an integer program may move, in growing neighbourhoods: effort grows far faster
# than size, and most breaches need few cells.
SIZES = (200, 600, 2000, 6000, 20_000)
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
# What breaking a limit by one costs, in losses of the heaviest cell, where the loss counts as well.
_BREACH = 1e4
# Share of the loss above its bound that no further program is worth.
_CLOSE = 1e-3


def repair_limits(problem: LatticeProblem, y: Whole, sizes: Sequence[int] = SIZES) -> Whole:
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
    state = Repair(problem, y)
    for size in sizes:
        while state.excess.any() and state.spent < _EFFORT and _sweep(state, size):
            pass
        if size >= len(state.rows):
            break
    return state.y


def _sweep(state: Repair, size: int) -> bool:
    """Repair around each violated cell in turn; says whether to do it once more."""
    before = np.abs(state.excess).sum()
    for k in np.flatnonzero(state.excess).tolist():
        if state.excess[k] and state.spent < _EFFORT:  # an earlier program may have mended it
            state.improve(around(state, k, size))
        if size >= len(state.rows):
            return False
    report("repair", state.spent / _EFFORT)
    return bool(np.abs(state.excess).sum() <= _WORTHWHILE * before)


class Repair:
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
    """What is asked of the rows of a program: limits, and what deviations from a target cost."""

    low: Real  # lower limits
    high: Real  # upper limits
    excess: Real  # how far the present point lies above, or below, its limits
    target: Real  # where a row costs nothing
    weights: Real | None  # what a deviation by one costs; nothing where deviations do not count

    @classmethod
    def of(cls, state: Repair, touched: Index, present: Real) -> _Goal:
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

    def __init__(self, state: Repair, places: Index) -> None:
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
        most = np.append(self.most, on)
        return np.zeros_like(most), most

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


def around(state: Repair, k: int, size: int) -> Index:
    """The rows nearest to a published cell: weight spreads from it, thinly through large cells."""
    weight, near = np.zeros(len(state.size)), np.zeros(len(state.rows))
    weight[k] = 1.0
    for _ in range(_REACH):
        near += state.members @ (weight / state.size)
        weight = state.cells @ near / state.size
    return np.sort(np.argsort(-near, kind="stable")[:size])


def _program(A: Any, goal: _Goal, switch: _Switches, point: Whole) -> tuple[Whole, float]:
    """A point no worse than the given one, and the effort; no clock has a say in it."""
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
    is_whole, bounds = np.arange(len(cost)) < n, (least, most)
    lp = highs_model(matrix, rows=rows, columns=bounds, cost=cost, is_whole=is_whole)
    options: dict[str, Any] = {
        "output_flag": False,
        "parallel": "off",
        "mip_max_nodes": _NODES // max(2 * len(switch.first), 1) + 1,
        "mip_rel_gap": 0.0,
        # Excess is a whole number: within half of one the bound is met, and below it all is kept.
        # The loss then is that of the first such point, and programs without excess lower it.
        "mip_abs_gap": 0.5 * breach,
        "objective_target": 0.5 * breach,
    }
    # Presolve stays on: without it a census table by region, age and sex took 79 s and left 11
    # exceptions, with it 36 s and 4; of five tables one is faster without.
    if goal.weights is not None and not len(broken):
        options |= {"mip_abs_gap": 0.5 * heaviest, "mip_rel_gap": _CLOSE}
        options["objective_target"] = -np.inf
    found, effort = _solve(lp, options, np.concatenate(known))
    return found[:n], effort


def _solve(lp: Any, options: dict[str, Any], known: Real) -> tuple[Whole, float]:
    """The best point that HiGHS finds from a known one, as whole numbers, and the effort."""
    highspy, solver = load_highs("mending limits"), solver_with(lp, options)
    solution = highspy.HighsSolution()
    solution.col_value = known.astype(np.float64).tolist()
    solver.setSolution(solution)
    if solver.run() == highspy.HighsStatus.kError:
        raise NotConvergedError("the integer program of a repair could not be run (HiGHS).")
    iterations = max(int(solver.getInfo().simplex_iteration_count), 0)
    found = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64)
    return found, float(iterations + 1) * lp.num_col_


_NEARLY_WHOLE = 1e-6  # how far errors of a program may leave a vertex from whole numbers
# Rounds, entries of all programs together (a million take some ten seconds), and rounds without
# fewer breaches, after which integer programs take over. Census tables by three variables took two
# to six rounds; linked tables of 14,000 cells, which cannot keep all limits, still gained after 16.
_MOST_ROUNDS, _MOST_ENTRIES, _PATIENCE = 16, 4_000_000, 4
# Costs differ by this much at random, so that vertices do not favour cells by their place. Where a
# round did not help they differ by four times as much, lest the same vertex be found again.
_NOISE, _LOUDER, _LOUDEST = 0.01, 4.0, 2.0
# Cells that an integer program settles in a second, and their share of all. More are searched with
# so many proposals, and what that leaves is for the next round; where more than a quarter is not
# whole (four-way tables), programs took ten seconds and left twice as many breaches as the search.
_SETTLED, _SETTLED_SHARE, _PROPOSALS = 600, 0.25, 3e6
# Neighbourhoods of the integer programs around what is left. Larger ones took 25 seconds of a
# four-way table, and mended nothing.
_REPAIRED = (200, 600)
_NEAR = 200  # cells around a breach that may move beside those that are not whole


def keep_limits_near(problem: LatticeProblem, start: Whole, rng: np.random.Generator) -> Whole:
    """A point of 0 and 1 near a start that keeps the limits, as far as programs find one.

    Promise: limits are broken by no more in sum than at the start; all are kept where the limits
    form a network. The random numbers decide, not the clock.
    Cost: one linear program a round; about a second for 6,000 cells with a choice.
    """
    rows, pump = problem.rows, _Pump(problem)
    best, point, waited, noise = start, start, 0, _NOISE
    fewest = _breaches(problem, start)
    rounds = min(_MOST_ROUNDS, 1 + _MOST_ENTRIES // max(pump.matrix.nnz, 1))
    for done in range(rounds):
        vertex = pump.nearest(point, 1 + noise * rng.random(len(rows)))
        if vertex is None:
            break
        point = point.copy()
        point[rows] = np.rint(vertex)
        open_cells = np.flatnonzero(np.abs(vertex - point[rows]) > _NEARLY_WHOLE)
        point = _move_and_mend(problem, point, open_cells, rng)
        left = _breaches(problem, point)
        report("rounding", (done + 1) / rounds)
        if left < fewest:
            best, fewest, waited, noise = point, left, 0, _NOISE
        else:
            waited, noise = waited + 1, min(_LOUDER * noise, _LOUDEST)
        if not fewest or waited > _PATIENCE:
            break
    return repair_limits(problem, best, _REPAIRED)


class _Pump:
    """The linear program of a problem; sums that no point can break are left out."""

    def __init__(self, problem: LatticeProblem) -> None:
        self.rows = problem.rows
        X = problem.design.matrix()[self.rows].astype(np.float64).T.tocsr()
        low, high = (np.rint(problem.target + limit) for limit in problem.limits)
        size = np.diff(X.indptr)
        able = np.flatnonzero((low > 0) | (high < size))
        self.matrix, self.low, self.high = X[able].T.tocsr(), low[able], high[able]

    def nearest(self, point: Whole, cost: Real) -> Real | None:
        """A vertex nearest to a point; nothing where no real point keeps the limits."""
        n = len(self.rows)
        limits = (self.low, self.high, np.zeros(n), np.ones(n))
        program = Program(self.matrix, *limits, changing="all")
        try:
            return program.minimise(np.where(point[self.rows] > 0, -cost, cost))
        except InfeasibleError:  # sums of reals that are whole but for rounding errors may clash
            return None


def _move_and_mend(
    problem: LatticeProblem, y: Whole, places: Index, rng: np.random.Generator
) -> Whole:
    """A point with fewer breaches in which some rows, or cells around breaches, have moved."""
    from discreet.solve.integer.search import LatticeSearch  # start-up time: compiled kernels

    if len(places) > min(_SETTLED, _SETTLED_SHARE * len(problem.rows)):
        free = np.zeros(len(y), dtype=np.bool_)
        free[problem.rows[places]] = True
        among = replace(problem, domain=Domain.interval(np.where(free, 0, y), np.where(free, 1, y)))
        return LatticeSearch(_PROPOSALS, chains=1, hot=0.1)(among, y, rng=rng).y
    state = Repair(problem, y)
    if len(places):
        state.improve(places)
    for k in np.flatnonzero(state.excess).tolist():
        if state.excess[k]:  # an earlier program may have mended it
            state.improve(np.union1d(around(state, k, _NEAR), places))
    return state.y


def _breaches(problem: LatticeProblem, y: Whole) -> int:
    return int(problem.violations(problem.deviation(y)).sum())
