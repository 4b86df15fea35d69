"""Proof that no table without negative cells has given margins."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Real, Whole
from discreet.solve.least_squares.problem import LeastSquaresProblem
from discreet.solve.non_negative.ridge_path import RidgePath
from discreet.solve.non_negative.schedule import DIRECT, LIGHT
from discreet.solve.non_negative.schedule import INFEASIBILITY as SCHEDULE
from discreet.solve.non_negative.schedule import SCHEDULE as LIMITS


def is_infeasible(problem: LeastSquaresProblem, exact: Whole, max_steps: int) -> bool:
    """Whether it can be proven, by fitting these margins alone; `False` may also mean unknown."""
    alone = problem.among(exact, 1.0, SCHEDULE.accuracy)
    entries = problem.design.n_inner * problem.design.n_published
    path = RidgePath(alone, DIRECT if entries <= LIMITS.dense else LIGHT, max_steps)
    for _ in range(SCHEDULE.tries):
        if proves_infeasible(problem, alone.misfit(path.fitted)):
            return True
        path.stage()
    return False


def proves_infeasible(problem: LeastSquaresProblem, f: Real) -> bool:
    r"""Whether `f` shows that no table without negative cells has the margins it is not zero on.

    One that has them would have :math:`f^\top z = (Xf)^\top y \le \max(Xf)_+ \sum_i y_i`, and the
    cells they count sum to no more than they do. What a fit of the margins leaves over is such a
    vector (the lemma of Farkas 1902).
    """
    movable = problem.prior.movable(problem.design.n_inner)
    steepest = float(problem.design.adjoint(f)[movable].max(initial=0.0))
    most = float(np.maximum(problem.z[f != 0], 0.0).sum())
    slack = float(f @ problem.z) - steepest * most
    return slack > SCHEDULE.rounding * float(np.abs(f * problem.z).sum())
