"""A proven optimum of small problems by mixed integer programming (HiGHS).

This is what the results of the search are measured against.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Real
from discreet.errors import InfeasibleError, NotConvergedError
from discreet.solve import LatticeProblem
from discreet.solve.integer.problem import FoundTable, describe

if TYPE_CHECKING:
    from scipy import sparse

_GENEROUS = 10.0  # how much more loss is allowed where limits leave no point with less
_HOPELESS = 1e7


@dataclass(frozen=True, eq=False)
class Program:
    """A mixed integer program in whole columns: steps and switches of inner cells, and more.

    Attributes:
      inner: Inner cells × whole columns; with `offset` it gives the inner cells.
      offset: What the inner cells are when all whole columns are zero.
      high: Upper bounds of the whole columns.
      cuts: Pairs of a matrix over all columns and a vector that its product must not fall below.
    """

    inner: sparse.csr_array
    offset: Real
    high: Real
    cuts: list[tuple[Any, Real]]


def solve_exactly(
    problem: LatticeProblem, start: NDArray[Any], *, nodes: int = 100_000
) -> FoundTable:
    r"""A proven optimum, with the limits kept.

    An inner cell is :math:`y = f b + s v` with a switch :math:`b \in \{0, 1\}` and whole steps
    :math:`0 \le v \le c\,b`. The loss of a published cell is convex and its value whole, so the
    chords between neighbouring whole numbers describe it exactly. Groups are lowered one after
    the other before the loss is minimised.

    Cost: exponential in the worst case; meant for tables of up to a few hundred cells.

    Args:
      problem: The problem.
      start: Any feasible point, used for bounds only.
      nodes: Branch-and-bound nodes of each program, at most.

    Raises:
      InfeasibleError: No point of the domain keeps the limits.
      NotConvergedError: The nodes were used up before the optimum was proven.
    """
    problem.domain.require(start)
    most = problem.loss(problem.deviation(start)) + 1.0
    tightened = _lowered(problem, most * _GENEROUS, nodes)
    while True:
        y = _optimum(tightened, most, nodes)
        loss = np.inf if y is None else problem.loss(problem.deviation(y))
        if y is not None and loss <= most + 1e-6:
            return describe(problem, y, loss, is_optimal=True)
        if y is None and most > _HOPELESS:
            raise InfeasibleError(
                "no whole numbers of the domain keep the limits. Widen the bounds."
            )
        most = most * _GENEROUS if y is None else loss


def adjust_exactly(
    problem: LatticeProblem, around: NDArray[np.int64], *, seconds: float = 10.0
) -> tuple[float, float]:
    """The least absolute deviations that one program finds, and its bound; `nan` for no table.

    Whole steps of at most 25 from a table, or from zero where that is near; gaps have switches.
    Slow and obvious, but at home with counts of any size.
    """
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    X, domain = problem.design.matrix().astype(np.float64).T.tocsr(), problem.domain
    base = np.where(around > 50, around - 25, 0)
    small, (m, n) = np.flatnonzero(base == 0), X.shape
    most, rest = np.where(base == 0, 100.0, 50.0), -problem.deviation(base).astype(float)
    each, own = sparse.identity(m), sparse.identity(n, format="csr")[small]
    sums = sparse.hstack([X, sparse.csr_array((m, len(small))), -each, each])
    none = sparse.csr_array((len(small), 2 * m))
    above = sparse.hstack([own, -sparse.diags_array(1.0 * domain.first[small]), none])
    below = sparse.hstack([own, -100.0 * sparse.identity(len(small)), none])
    rules = [LinearConstraint(sums, rest, rest), LinearConstraint(above, 0, np.inf)]
    low, high = problem.limits
    weights = problem.all_weights
    found = milp(
        np.concatenate([np.zeros(n + len(small)), weights, weights]),
        constraints=[*rules, LinearConstraint(below, -np.inf, 0)],
        bounds=Bounds(0, np.concatenate([most, np.ones(len(small)), high, -low])),
        integrality=np.repeat([1, 0], [n + len(small), 2 * m]),
        options={"time_limit": seconds, "mip_rel_gap": 1e-3},
    )
    bound = np.nan if found.mip_dual_bound is None else found.mip_dual_bound
    return (np.nan if found.x is None else float(found.fun)), float(bound)


def _optimum(problem: LatticeProblem, most: float, nodes: int) -> NDArray[np.int64] | None:
    """The best point with at most this loss; a worse one, or none, when there is no such point."""
    program = _program(problem, most)
    chords = _chords(problem, program, most)
    return _solve(problem, replace(program, cuts=[*program.cuts, chords]), nodes)


def _lowered(problem: LatticeProblem, most: float, nodes: int) -> LatticeProblem:
    """The problem with the least possible limits of its groups."""
    if problem.groups is None:
        return problem
    low, high = (limit.copy() for limit in problem.limits)
    for group in range(int(problem.groups.max(initial=-1)) + 1):
        inside = problem.groups == group
        present = replace(problem, groups=None, low=low, high=high)
        least = _least_maximum(present, most, inside, nodes)
        least = max(least, problem.goal(group))
        low[inside] = np.maximum(low[inside], -least)
        high[inside] = np.minimum(high[inside], least)
    return replace(problem, groups=None, low=low, high=high)


def _least_maximum(
    problem: LatticeProblem, most: float, inside: NDArray[np.bool_], nodes: int
) -> float:
    """The least largest deviation of some published cells, under the limits."""
    from scipy import sparse

    program = _program(problem, most)
    X = problem.design.matrix().T.tocsr()[np.flatnonzero(inside)].astype(np.float64)
    steps, base = X @ program.inner, X @ program.offset - problem.target[inside]
    ones = sparse.csr_array(np.ones((len(base), 1)))
    above = (sparse.hstack([-steps, ones], format="csr"), base)
    below = (sparse.hstack([steps, ones], format="csr"), -base)
    plain = replace(program, cuts=[*program.cuts, above, below])
    y = _solve(problem, plain, nodes, extra=np.ones(1))
    if y is None:
        raise InfeasibleError("no whole numbers of the domain keep the limits. Widen the bounds.")
    return float(np.abs(problem.deviation(y)[inside]).max(initial=0))


def _program(problem: LatticeProblem, most: float) -> Program:
    """Steps and switches of the inner cells, for points with at most a given loss."""
    from scipy import sparse

    domain, n = problem.domain, problem.design.n_inner
    _, top = box(problem, most)
    gap = domain.zero & (domain.first > 0)
    ceiling = np.minimum(domain.high, np.floor(top + 1e-9))
    count = np.maximum((ceiling - domain.first) // domain.step, 0)
    usable = ~gap | (ceiling >= domain.first)
    steps = sparse.diags_array(domain.step.astype(np.float64), format="csr")
    switches = sparse.diags_array(np.where(gap, domain.first, 0).astype(np.float64), format="csr")
    inner = sparse.hstack([steps, switches], format="csr")
    offset = np.where(gap, 0, domain.first).astype(np.float64)
    high = np.concatenate([np.where(usable, count, 0), (gap & usable).astype(np.int64)])
    switched = sparse.hstack(
        [-sparse.identity(n), sparse.diags_array(count.astype(np.float64))], format="csr"
    )
    linked = (switched[np.flatnonzero(gap)], np.zeros(int(gap.sum())))
    program = Program(inner, offset, high.astype(np.float64), [linked])
    return _without_blocked(problem, program) if problem.blocked else program


def _without_blocked(problem: LatticeProblem, program: Program) -> Program:
    """A switch for each published cell: it is zero, or at least the smallest allowed value."""
    from scipy import sparse

    m, n = problem.design.n_published, program.inner.shape[1]
    X = problem.design.matrix().T.tocsr().astype(np.float64)
    base = 0 if problem.base is None else problem.base
    constant = X @ program.offset + base
    steps = X @ program.inner
    most = constant + steps @ program.high
    on = sparse.identity(m, format="csr")
    above = sparse.hstack([steps, -problem.blocked * on], format="csr")
    below = sparse.hstack([-steps, sparse.diags_array(most)], format="csr")
    inner = sparse.hstack(
        [program.inner, sparse.csr_array((problem.design.n_inner, m))], format="csr"
    )
    cuts = [(_padded(matrix, n + m), right) for matrix, right in program.cuts]
    cuts += [(above, -constant), (below, constant)]
    return Program(inner, program.offset, np.append(program.high, np.ones(m)), cuts)


def _chords(problem: LatticeProblem, program: Program, most: float) -> tuple[Any, Real]:
    """Rows that keep each loss above the chords between neighbouring whole values."""
    from scipy import sparse

    weights, p = problem.all_weights, problem.power
    heavy = np.flatnonzero(weights > 0)
    reach = np.minimum((most / weights[heavy]) ** (1 / p), 1e9)
    lowest = np.floor(problem.target[heavy] - reach).astype(np.int64) - 1
    knots = np.ceil(2 * reach).astype(np.int64) + 4 if p != 1 else np.full(len(heavy), 4)
    if p == 1:
        lowest = np.floor(problem.target[heavy]).astype(np.int64) - 2
    cell = np.repeat(heavy, knots)
    left = (
        np.repeat(lowest, knots) + np.arange(len(cell)) - np.repeat(np.cumsum(knots) - knots, knots)
    )
    at_left, at_right = (
        weights[cell] * np.abs(value - problem.target[cell]) ** p for value in (left, left + 1)
    )
    slope = at_right - at_left
    X = problem.design.matrix().T.tocsr().astype(np.float64)
    rows = sparse.diags_array(-slope) @ (X[cell] @ program.inner)
    pick = sparse.csr_array(
        (np.ones(len(cell)), (np.arange(len(cell)), cell)), shape=(len(cell), len(weights))
    )
    right = at_left + slope * ((X @ program.offset)[cell] - left)
    return sparse.hstack([rows, pick], format="csr"), right


def _solve(
    problem: LatticeProblem, program: Program, nodes: int, extra: Real | None = None
) -> NDArray[np.int64] | None:
    """Minimise the sum of the loss columns under the program's rows and the limits, if possible."""
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    losses = np.ones(problem.design.n_published) if extra is None else extra
    n = len(program.high)
    rows = [_padded(matrix, n + len(losses)) for matrix, _ in program.cuts]
    right = [bound for _, bound in program.cuts]
    constraints = [
        LinearConstraint(sparse.vstack(rows, format="csc"), np.concatenate(right), np.inf)
    ]
    low, high = problem.limits
    X = problem.design.matrix().T.astype(np.float64)
    base = X @ program.offset - problem.target
    limited = _padded(X @ program.inner, n + len(losses))
    constraints.append(LinearConstraint(limited, low - base - 1e-9, high - base + 1e-9))
    found = milp(
        np.concatenate([np.zeros(n), losses]),
        integrality=np.concatenate([np.ones(n), np.zeros(len(losses))]),
        bounds=Bounds(0, np.concatenate([program.high, np.full(len(losses), np.inf)])),
        constraints=constraints,
        options={"node_limit": nodes, "mip_rel_gap": 0.0},
    )
    return _read(problem, program, found)


def _read(problem: LatticeProblem, program: Program, found: Any) -> NDArray[np.int64] | None:
    if found.status == 2:
        return None
    if found.status != 0:
        raise NotConvergedError(f"the exact solution was not reached: {found.message}")
    whole = np.rint(found.x[: len(program.high)])
    y: NDArray[np.int64] = np.rint(program.inner @ whole + program.offset).astype(np.int64)
    problem.domain.require(y)
    return y


def box(problem: LatticeProblem, loss: float) -> tuple[Real, Real]:
    """Bounds of the inner cells that every point with at most this loss keeps."""
    weights = problem.all_weights
    heavy = weights > 0
    reach = np.full(problem.design.n_published, np.inf)
    reach[heavy] = problem.target[heavy] + (loss / weights[heavy]) ** (1 / problem.power)
    high = problem.domain.high.astype(np.float64)
    for where, _ in problem.design.member_blocks():
        inside = where >= 0
        high[inside] = np.minimum(high[inside], reach[where[inside]])
    low = problem.domain.low.astype(np.float64)
    return low, np.maximum(high, low)


def _padded(matrix: Any, width: int) -> Any:
    """A matrix with empty columns added on the right."""
    from scipy import sparse

    rest = width - matrix.shape[1]
    if not rest:
        return matrix
    return sparse.hstack([matrix, sparse.csr_array((matrix.shape[0], rest))], format="csr")
