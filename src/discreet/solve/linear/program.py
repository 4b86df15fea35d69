"""One linear program with many objectives, solved by HiGHS from where the last one ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole32
from discreet.errors import InfeasibleError, MissingDependencyError, NotConvergedError

Changing = Literal["objective", "bounds", "nothing", "all"]

_NO_LIMIT = 2**31 - 1
# How far a solution may violate a row or a bound. Values above 10⁴ are scaled down, so that this
# tolerance stays above rounding errors.
_FEASIBLE, LARGEST_VALUE = 1e-9, 1e4
_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",
    "solver": "simplex",
    "primal_feasibility_tolerance": _FEASIBLE,
    "dual_feasibility_tolerance": _FEASIBLE,
}
_DUAL, _PRIMAL = {"simplex_strategy": 1}, {"simplex_strategy": 4}
_ALGORITHM: dict[Changing, dict[str, Any]] = {
    "objective": _PRIMAL,  # the last solution stays feasible
    "bounds": _DUAL,  # the last solution stays best
    "nothing": {"presolve": "on", **_DUAL},
    # The last solution is of no use: interior points take half the time of the simplex method.
    "all": {"presolve": "on", "solver": "ipm"},
}
# What is tried, from the start, where the simplex method gets stuck and says "unknown".
_OTHER_WAYS: tuple[dict[str, Any], ...] = (_DUAL, {"presolve": "on"}, {"solver": "ipm"})


class Program:
    """Variables (`floor` to `ceiling`), and rows (`low` to `high`): a matrix of variables × rows.

    `changing` says what differs from one solution to the next.

    Attributes:
      solved: How often it was solved.
      steps: Steps of the simplex method, all solutions together. They are the same on every
        machine, which seconds are not.
      is_best: Whether the last solution is optimal, not only what a number of steps led to.
    """

    def __init__(
        self,
        matrix: Any,
        low: Real,
        high: Real,
        floor: Real,
        ceiling: Real,
        *,
        changing: Changing = "objective",
    ) -> None:
        highspy = load_highs("a linear program")
        self._highs: Any = highspy.Highs()
        self._status, self._options = highspy.HighsModelStatus, _OPTIONS | _ALGORITHM[changing]
        self._set(self._options)
        bounds = np.concatenate([low, high, floor, ceiling])
        most = float(np.abs(bounds[np.isfinite(bounds)]).max(initial=0.0))
        self._scale = max(1.0, most / LARGEST_VALUE)
        rows = (low / self._scale, high / self._scale)
        columns = (floor / self._scale, ceiling / self._scale)
        self._cost, self._floor, self._ceiling = np.zeros(len(floor)), floor, ceiling
        model = highs_model(matrix.T.tocsc(), rows=rows, columns=columns, cost=self._cost)
        self._highs.passModel(model)
        self.solved, self.steps, self.is_best = 0, 0, False

    def minimise(self, cost: Real, *, steps: int = _NO_LIMIT) -> Real | None:
        """A solution with the smallest cost; `None` when the cost has no lower limit.

        After so many steps of the simplex method the solution is taken as it is.
        """
        self._price(cost)
        self._set({"simplex_iteration_limit": steps})
        return self._run()

    def afresh(self, cost: Real, floor: Real, ceiling: Real) -> Real | None:
        """A solution with the smallest cost within bounds, from where all variables are zero."""
        # A change moves few sums, so that zero is nearer than the solution of another goal.
        self._highs.setBasis()
        changed = _different(floor, self._floor, ceiling, self._ceiling)
        bounds = floor[changed] / self._scale, ceiling[changed] / self._scale
        self._highs.changeColsBounds(len(changed), changed, *bounds)
        self._floor, self._ceiling = floor, ceiling
        self._price(cost)
        return self._run()

    def prices(self) -> Real:
        """The price of each row in the last solution: costs less priced rows are reduced costs."""
        return np.asarray(self._highs.getSolution().row_dual)

    def _price(self, cost: Real) -> None:
        changed = _different(cost, self._cost)
        self._highs.changeColsCost(len(changed), changed, cost[changed])
        self._cost = cost

    def _set(self, options: dict[str, Any]) -> None:
        for name, value in options.items():
            self._highs.setOptionValue(name, value)

    def _count_steps(self) -> None:
        self.steps += max(int(self._highs.getInfo().simplex_iteration_count), 0)

    def _run(self) -> Real | None:
        self._highs.run()
        self.solved += 1
        self._count_steps()
        known, status = self._status, self._highs.getModelStatus()
        for change in _OTHER_WAYS:
            if status == known.kUnknown:
                self._highs.clearSolver()
                self._set(change)
                self._highs.run()
                self._count_steps()
                self._set({name: self._options[name] for name in change})
                status = self._highs.getModelStatus()
        self.is_best = status == known.kOptimal
        if status == known.kUnbounded:
            return None
        if status in (known.kInfeasible, known.kUnboundedOrInfeasible):
            raise InfeasibleError(
                "no table has these published values within the bounds; they contradict each other."
            )
        if status not in (known.kOptimal, known.kIterationLimit):
            raise NotConvergedError(
                f"a linear program was not solved: {self._highs.modelStatusToString(status)}."
            )
        return np.asarray(self._highs.getSolution().col_value) * self._scale


class MixedSolution(NamedTuple):
    """What a mixed program came to."""

    x: Real | None  # the best point found; `None` where none was
    bound: float  # a cost that no point is below
    nodes: int  # nodes of the search


def solve_mixed(
    cost: Real, matrix: Any, rows: tuple[Real, Real], is_whole: Mask, nodes: int, gap: float = 1e-4
) -> MixedSolution:
    """A mixed program over numbers that are not negative, some of them whole, without a word.

    SciPy's own HiGHS writes lines to standard output that no option turns off.
    """
    highspy = load_highs("a mixed program")
    columns = np.zeros(len(cost)), np.full(len(cost), np.inf)
    model = highs_model(matrix.tocsc(), rows=rows, columns=columns, cost=cost, is_whole=is_whole)
    options = {"output_flag": False, "threads": 1, "mip_max_nodes": nodes, "mip_rel_gap": gap}
    solver = solver_with(model, options)
    solver.run()
    info = solver.getInfo()
    is_found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    x = np.asarray(solver.getSolution().col_value) if is_found else None
    bound = float(info.mip_dual_bound) if is_whole.any() else -np.inf
    return MixedSolution(x, bound, max(int(info.mip_node_count), 0))


def load_highs(purpose: str) -> Any:
    """The HiGHS solver, or the remedy where it is absent."""
    try:
        import highspy  # optional package
    except ImportError as error:
        raise MissingDependencyError(purpose, "highspy") from error
    return highspy


def highs_model(
    matrix: Any,
    *,
    rows: tuple[Array, Array],
    columns: tuple[Array, Array],
    cost: Real | None = None,
    is_whole: Mask | None = None,
) -> Any:
    """A program of HiGHS: rows × columns, sparse by columns, with bounds of both."""
    highspy = load_highs("a linear program")
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.row_lower_, model.row_upper_ = rows
    model.col_lower_, model.col_upper_ = columns
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data.astype(np.float64)
    if cost is not None:
        model.col_cost_ = cost
    if is_whole is not None:
        kinds = highspy.HighsVarType
        model.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in is_whole]
    return model


def solver_with(model: Any, options: Mapping[str, Any]) -> Any:
    """A solver of HiGHS that is about to run."""
    solver = load_highs("a linear program").Highs()
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(model)
    return solver


def _different(*pairs: Real) -> Whole32:
    """Where one of some vectors differs from the one behind it."""
    differ = [one != other for one, other in zip(pairs[::2], pairs[1::2], strict=True)]
    return np.flatnonzero(np.any(differ, axis=0)).astype(np.int32)
