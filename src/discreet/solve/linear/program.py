"""One linear program with many objectives, solved by HiGHS from where the last one ended."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InfeasibleError, NotConvergedError

Vector = NDArray[np.float64]

FEASIBLE = 1e-9
"""How far a solution may violate a row or a bound."""

LARGEST = 1e4
"""Values above this are scaled down, so that the tolerance stays above rounding errors."""

_ONCE: dict[str, Any] = {"presolve": "on", "simplex_strategy": 1}
_DUAL: dict[str, Any] = {"simplex_strategy": 1}
_NO_LIMIT = 2**31 - 1
_OTHER_WAYS: tuple[dict[str, Any], ...] = (
    {"simplex_strategy": 1},
    {"presolve": "on"},
    {"solver": "ipm"},
)
"""What is tried, from the start, where the simplex method gets stuck."""
_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",
    "solver": "simplex",
    "simplex_strategy": 4,  # primal: the last solution stays feasible when the objective changes
    "primal_feasibility_tolerance": FEASIBLE,
    "dual_feasibility_tolerance": FEASIBLE,
}


class Program:
    """Variables within bounds, and rows within theirs.

    Args:
      matrix: Variables × rows, sparse.
      low: Smallest value of each row.
      high: Largest value of each row.
      floor: Smallest value of each variable.
      ceiling: Largest value of each variable.
      presolve: Whether the program is simplified first, for one that has a single objective.
      dual: Whether bounds change rather than the objective, so that the last solution stays best
        but not feasible.
    """

    def __init__(
        self,
        matrix: Any,
        low: Vector,
        high: Vector,
        floor: Vector,
        ceiling: Vector,
        *,
        presolve: bool = False,
        dual: bool = False,
    ) -> None:
        import highspy

        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._options = _OPTIONS | (_ONCE if presolve else {}) | (_DUAL if dual else {})
        for name, value in self._options.items():
            self._highs.setOptionValue(name, value)
        by_variable = matrix.T.tocsc()
        model = highspy.HighsLp()
        self._scale = max(1.0, _largest(low, high, floor, ceiling) / LARGEST)
        model.num_row_, model.num_col_ = by_variable.shape
        model.col_cost_ = np.zeros(model.num_col_)
        model.col_lower_, model.col_upper_ = floor / self._scale, ceiling / self._scale
        model.row_lower_, model.row_upper_ = low / self._scale, high / self._scale
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = by_variable.indptr
        model.a_matrix_.index_ = by_variable.indices
        model.a_matrix_.value_ = by_variable.data.astype(np.float64)
        self._highs.passModel(model)
        self._status = highspy.HighsModelStatus
        self._all = np.arange(model.num_col_, dtype=np.int32)
        self._cost, self._floor, self._ceiling = np.zeros(model.num_col_), floor, ceiling
        self.solved = 0

    def minimise(self, cost: Vector) -> Vector | None:
        """A solution with the smallest cost; `None` when the cost has no lower limit."""
        self._highs.changeColsCost(len(self._all), self._all, cost)
        return self._run()

    def afresh(self, cost: Vector, floor: Vector, ceiling: Vector) -> Vector | None:
        """A solution with the smallest cost within bounds, from where all variables are zero."""
        self._highs.setBasis()
        changed = np.flatnonzero((floor != self._floor) | (ceiling != self._ceiling))
        self.bound(changed, floor[changed], ceiling[changed])
        self._floor, self._ceiling = floor, ceiling
        other = np.flatnonzero(cost != self._cost).astype(np.int32)
        self._highs.changeColsCost(len(other), other, cost[other])
        self._cost = cost
        return self._run()

    def improve(self, cost: Vector, steps: int) -> tuple[Vector | None, bool]:
        """A solution after some steps towards a smaller cost, and whether it is the smallest."""
        self._highs.setOptionValue("simplex_iteration_limit", steps)
        solution = self.minimise(cost)
        self._highs.setOptionValue("simplex_iteration_limit", _NO_LIMIT)
        return solution, self._highs.getModelStatus() != self._status.kIterationLimit

    def prices(self) -> Vector:
        """The price of each row in the last solution: costs less priced rows are reduced costs."""
        return np.asarray(self._highs.getSolution().row_dual)

    def bound(self, variables: NDArray[Any], floor: Vector, ceiling: Vector) -> None:
        """Change the bounds of some variables."""
        chosen = np.asarray(variables, dtype=np.int32)
        self._highs.changeColsBounds(
            len(chosen), chosen, floor / self._scale, ceiling / self._scale
        )

    def _run(self) -> Vector | None:
        self._highs.run()
        self.solved += 1
        status = self._highs.getModelStatus()
        if status == self._status.kUnknown:
            status = self._run_otherwise()
        if status == self._status.kUnbounded:
            return None
        if status in (self._status.kInfeasible, self._status.kUnboundedOrInfeasible):
            raise InfeasibleError(
                "no table has these published values within the bounds; they contradict each other."
            )
        if status not in (self._status.kOptimal, self._status.kIterationLimit):
            raise NotConvergedError(
                f"a linear program was not solved: {self._highs.modelStatusToString(status)}."
            )
        return np.asarray(self._highs.getSolution().col_value) * self._scale

    def _run_otherwise(self) -> Any:
        status = self._status.kUnknown
        for change in _OTHER_WAYS:
            self._highs.clearSolver()
            for name, value in change.items():
                self._highs.setOptionValue(name, value)
            self._highs.run()
            for name in change:
                self._highs.setOptionValue(name, self._options[name])
            status = self._highs.getModelStatus()
            if status != self._status.kUnknown:
                break
        return status


def _largest(*parts: Vector) -> float:
    """The largest finite number."""
    return max(float(np.abs(p[np.isfinite(p)]).max(initial=0.0)) for p in parts)
