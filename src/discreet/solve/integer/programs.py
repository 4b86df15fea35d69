r"""Linear and integer programs around a search over whole numbers.

`Nearest` finds the additive table of least weighted absolute deviations,

.. math:: \min_y \sum_k w_k\,|x_k^\top y - t_k|,\qquad y_j \in \mathcal D_j,\qquad
          l_k \le x_k^\top y - t_k \le u_k.

Without the gaps of the domains this is a linear program; in a two-way table a network one, whose
vertices are whole. The search chooses which cells are zero, the program does the rest exactly.

`repair_limits` mends limits that a search has left broken. All inner cells but those near a
violated published cell are held; among the points that keep every limit kept so far, an integer
program finds one that breaks the others least. The current point is one of them, so a repair never
makes matters worse.
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
from discreet.solve.linear.program import highs_model

_NEARLY_WHOLE = 1e-6  # how far errors of a program may leave a vertex from whole numbers
# Inner cells up to which networks are solved exactly without being asked: about ten seconds.
_NETWORK_CELLS = 20_000
# Inner cells that an integer program may move, in growing neighbourhoods: effort grows far faster
# than size, and most breaches need few cells.
_SIZES = (200, 600, 2000, 6000, 20_000)
_NODES = 40_000  # branch-and-bound nodes of one program, times the inner cells it may move
# Simplex iterations times columns, of all programs together: about a minute. A limit in seconds
# would make the result depend on the machine.
_EFFORT = 2e8
# A size is gone through again when no more than this share of the excess is left.
_WORTHWHILE = 0.9
# Steps that a cell with a gap may rise in a program, besides the largest excess: the smaller this
# bound, the tighter the link between its steps and its switch in the relaxed program.
_RISE = 6
_REACH = 3  # how often weight spreads from published to inner cells and back to find neighbours


@dataclass(frozen=True)
class Nearest:
    """A search for the nearest additive table, exact where linear programs are.

    Promise: the result lies in the domain. Limits that the search leaves broken are repaired by
    integer programs; `FoundTable.violations` counts what is left. In a network (a two-way table)
    it is a best one whenever the linear program needs no gap, and otherwise the best one among
    those with the same cells at zero.
    Cost: the search, and for networks two linear programs.

    Args:
      search: The search over whole numbers.
      bounded: Whether to compute a lower bound on the loss of tables that keep the limits; by
        default in networks of up to 20,000 inner cells.
    """

    search: LatticeSearch
    bounded: bool | None = None

    def __call__(
        self, problem: LatticeProblem, start: Whole, *, is_network: bool, rng: np.random.Generator
    ) -> FoundTable:
        """The best table found."""
        if not len(start):
            return describe(problem, start, is_optimal=True)
        exact = is_network and len(start) <= _NETWORK_CELLS
        bounded = exact if self.bounded is None else self.bounded
        relaxed = None
        if bounded:
            low, high = problem.domain.low.astype(np.float64), _ceiling(problem)
            # Limits that no point keeps are left out: the bound then holds for all tables.
            relaxed = least_absolute(problem, low, high, limited=True)
            relaxed = least_absolute(problem, low, high) if relaxed is None else relaxed
        bound = 0.0 if relaxed is None else problem.loss(problem.deviation(relaxed))
        if relaxed is not None and (y := _whole(problem, relaxed)) is not None:
            return describe(problem, y, bound, is_optimal=True)
        found = self.search(problem, start, rng=rng)
        best = repair_limits(problem, found.y) if found.violations else found.y
        if exact:
            # With the same cells at zero there are no gaps left to choose: a network again.
            low = np.where(best > 0, problem.domain.first, 0.0)
            high = np.where(best > 0, _ceiling(problem), 0.0)
            vertex = least_absolute(problem, low, high, limited=True)
            if vertex is not None and (y := _whole(problem, vertex)) is not None:
                best = min(best, y, key=lambda table: _rank(problem, table))
        again = describe(problem, best, bound)
        return replace(again, proposals=found.proposals, is_repeatable=found.is_repeatable)


def least_absolute(
    problem: LatticeProblem, low: Real, high: Real, *, limited: bool = False
) -> Real | None:
    """A vertex of the linear program over `low <= y <= high`, if there is a point at all.

    The problem's power must be 1; the limits of published cells are kept if `limited` says so.
    Cost: about 10 s for 20,000 inner cells in a three-way table (HiGHS, interior points).
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


def _ceiling(problem: LatticeProblem) -> Real:
    """Largest values of the inner cells; infinite where any number is allowed."""
    return np.where(problem.domain.last == LARGEST, np.inf, problem.domain.high)


def _whole(problem: LatticeProblem, y: Real) -> Whole | None:
    """A point as whole numbers, when it is a point of the problem."""
    rounded: Whole = np.rint(y).astype(np.int64)
    is_whole = np.abs(y - rounded).max(initial=0) <= _NEARLY_WHOLE
    if not is_whole or not problem.domain.contains(rounded).all():
        return None
    return None if _rank(problem, rounded)[0] else rounded


def _rank(problem: LatticeProblem, y: Whole) -> tuple[int, float]:
    deviation = problem.deviation(y)
    return int(problem.violations(deviation).sum()), problem.loss(deviation)


def repair_limits(problem: LatticeProblem, y: Whole) -> Whole:
    """A point that keeps the limits, or breaks them less, near a point of the domain.

    Neighbourhoods grow until all limits are kept or a program over all cells has ended. Cells
    with a gap above zero are switched on and off, and rise by a few steps at most.

    Promise: the result lies in the domain and breaks limits by no more in sum; the same input
    gives the same result whatever the number of threads and the speed of the machine.
    Cost: seconds for a hundred violated cells; no new program is begun after about a minute's
    worth of simplex iterations.
    """
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
    cell adds an entry of its row), `cells` the same by published cell.
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
        # Sums of whole cells are whole: limits are rounded inwards, which tightens programs.
        self.low = np.ceil(problem.target + low - 1e-9)
        self.high = np.floor(problem.target + high + 1e-9)
        self.excess = _excess(self.z, self.low, self.high)
        self.spent = 0.0

    def improve(self, places: Index) -> None:
        """Move some of the rows so that limits are broken least."""
        chosen, switch = self.rows[places], _Switches(self, places)
        A = switch.columns(self.members[places]).T.tocsr()
        touched = np.flatnonzero(np.diff(A.indptr))
        A, low, high = A[touched], self.low[touched], self.high[touched]
        now = switch.point(self.y[chosen])
        rest = self.z[touched] - A @ now
        limits = low - rest, high - rest
        found, effort = _program(A, limits, switch, self.excess[touched], now)
        self.spent += effort
        z = rest + A @ found
        excess = _excess(z, low, high)
        if np.abs(excess).sum() < np.abs(self.excess[touched]).sum():
            self.y[chosen] = switch.inner(found)
            self.z[touched], self.excess[touched] = z, excess


class _Switches:
    """Some of the rows as columns of a program: their steps, then a switch for each.

    An inner cell is its first value, while its switch is on, and whole steps, none while it is
    off. Switches of cells without a gap above zero are always on.
    """

    def __init__(self, state: _Repair, places: Index) -> None:
        self.first, self.step = state.first[places], state.step[places]
        self.gapped = state.gapped[places]
        present = (state.y[state.rows[places]] - self.first) // self.step
        room = np.maximum(present, 0) + int(np.abs(state.excess).max()) + _RISE
        self.most = np.where(self.gapped, np.minimum(state.most[places], room), state.most[places])

    @property
    def bounds(self) -> tuple[Whole, Whole]:
        """The smallest and the largest value of each column."""
        on = np.ones(len(self.first), dtype=np.int64)
        return np.concatenate([0 * on, on - self.gapped]), np.concatenate([self.most, on])

    def columns(self, members: Any) -> Any:
        """Rows of members for steps, followed by those for switches."""
        from scipy import sparse

        lifted = members.multiply((self.first / self.step)[:, None])
        return sparse.vstack([members, lifted], format="csr")

    def point(self, y: Whole) -> Whole:
        """The columns of a point."""
        on = ~self.gapped | (y > 0)
        return np.concatenate([np.where(on, (y - self.first) // self.step, 0), on])

    def inner(self, point: Whole) -> Whole:
        """The point of columns."""
        steps, on = np.split(point, 2)
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


def _program(
    A: Any, limits: tuple[Real, Real], switch: _Switches, excess: Real, point: Whole
) -> tuple[Whole, float]:
    """A point with less excess than the given one, and the effort; no clock has a say in it."""
    import highspy
    from scipy import sparse

    # Broken limits get a column of relief each, at most as large as the breach is now and the only
    # thing that costs; limits that are kept get none, and so stay kept.
    broken, n = np.flatnonzero(excess), A.shape[1]
    signs = (-np.sign(excess[broken]), (broken, np.arange(len(broken))))
    relief = sparse.csc_array(signs, shape=(len(excess), len(broken)))
    # A row for each switch: steps less what the switch allows, which is zero at most.
    allowed = sparse.diags_array(-switch.most.astype(np.float64))
    none = sparse.csr_array((n // 2, len(broken)))
    links = sparse.hstack([sparse.identity(n // 2), allowed, none], format="csr")
    matrix = sparse.vstack([sparse.hstack([A, relief]), links], format="csc")
    least, most = switch.bounds
    size = np.abs(excess[broken])
    rows = np.append(limits[0], np.full(n // 2, -np.inf)), np.append(limits[1], np.zeros(n // 2))
    columns = np.append(least, np.zeros(len(broken))), np.append(most, size)
    lp = highs_model(matrix, rows=rows, columns=columns)
    lp.col_cost_ = np.repeat([0.0, 1.0], [n, len(broken)])
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger] * n + [kinds.kContinuous] * len(broken)
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {
        "output_flag": False,
        "parallel": "off",
        "mip_max_nodes": _NODES // max(n, 1) + 1,
        # Excess is a whole number: within half of one the bound is met, and below it all is kept.
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.5,
        "objective_target": 0.5,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    known = highspy.HighsSolution()
    known.col_value = np.concatenate([point, size]).astype(np.float64).tolist()
    solver.setSolution(known)
    if solver.run() == highspy.HighsStatus.kError:
        raise NotConvergedError("the integer program of a repair could not be run (HiGHS).")
    iterations = max(int(solver.getInfo().simplex_iteration_count), 0)
    found = np.array(solver.getSolution().col_value)
    return np.rint(found[:n]).astype(np.int64), float(iterations + 1) * lp.num_col_
