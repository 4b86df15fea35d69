r"""The rounding nearest to a start that keeps all limits, by a feasibility pump.

Cells are 0 or 1. The linear program

.. math:: \min_u \sum_j |u_j - s_j| \quad\text{with}\quad 0 \le u_j \le 1,\quad
          l_k \le x_k^\top u \le h_k

has a solution, for the fractions that are rounded are a point of it, and most of its cells are
whole. What is not is settled by itself, and the result is the next start (Fischetti, Glover & Lodi,
2005). Whole vertices, as in two-way tables, end it at once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.arrays import Index, Real, Whole
from discreet.errors import InfeasibleError
from discreet.progress import report
from discreet.solve.integer.problem import Domain, LatticeProblem
from discreet.solve.integer.repair import Repair, around, repair_limits
from discreet.solve.linear.program import Program

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
        point = _settle(problem, point, open_cells, rng)
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


def _settle(problem: LatticeProblem, y: Whole, places: Index, rng: np.random.Generator) -> Whole:
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
