"""Proof that no table without negative cells has given margins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.incidence import Restrictor
from discreet.solve.least_squares.problem import Problem
from discreet.solve.non_negative.active_set import RidgePath

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class InfeasibilitySchedule:
    """The constants of the proof.

    Attributes:
      accuracy: Of the fit from which the proof is taken.
      tries: Misfits that are carried over before it is given up.
      rounding: Share of the terms of a sum that may be a rounding error.
    """

    accuracy: float = 1e-5
    tries: int = 10
    rounding: float = 1e-12


SCHEDULE = InfeasibilitySchedule()


def is_infeasible(
    problem: Problem, exact: NDArray[np.int64], restrict: Restrictor, max_steps: int
) -> bool:
    """Whether it can be proven, by fitting these margins alone; `False` may also mean unknown."""
    alone = problem.among(exact, 1.0, SCHEDULE.accuracy)
    path = RidgePath(alone, restrict, problem.right_hand_side > 0, max_steps)
    path.follow(None)
    for _ in range(SCHEDULE.tries):
        if proves_infeasible(problem, alone.misfit(path.fitted)):
            return True
        path.carry(path.ridge)
        path.settle(exactly=True)
    return False


def proves_infeasible(problem: Problem, f: Vector) -> bool:
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
