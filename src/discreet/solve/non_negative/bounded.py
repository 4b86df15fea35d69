r"""Non-negative least squares by conjugate gradients that respect the bounds.

Where few of many cells are positive, these are gathered, and conjugate gradients run on them until
a step would make cells negative: then it is cut off at zero and the directions start afresh. After
some hundred steps the cells are gathered anew. The method needs no ridge, so its equations are only
as ill-conditioned as the problem.

Margins that are held are met by shifting their targets. A shift is made as soon as the gradient is
as small as the deviation of these margins, so that no fit is more accurate than its targets. Cells
in an exact margin of zero are zero; they are left out, and any large force holds them there.

The fit starts at the table of smallest norm for some ridge. Among tables that fit equally well it
ends near the smallest, and the dual vector of that ridge proves how near (`smallest_norm`).

See Moré & Toraldo (1991); Dostál (2009), also for held margins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.incidence import Restrictor
from discreet.progress import report
from discreet.solve.least_squares.problem import Problem
from discreet.solve.non_negative.bounded_kernels import bounded_steps
from discreet.solve.non_negative.stiff import StiffMargins

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class BoundedSchedule:
    """The constants of the method.

    Attributes:
      share: Part of the largest gradient that one run of steps may leave.
      steps: Steps of one run at most; then cells that became zero are left out.
      safely: Part of what a certificate allows at which the method ends.
      held: Gradient, in units of the deviation of held margins, at which their targets are shifted.
      same: A deviation of which this part is left after a shift did not answer to it.
      most_times: Most multiples of a deviation that are shifted at once.
      patience: Runs without a gain before the method gives up.
      gain: Factor by which the violation must fall to count as a gain.
    """

    share: float = 0.1
    steps: int = 1000
    safely: float = 0.8
    held: float = 1.0
    same: float = 0.8
    most_times: float = 64.0
    patience: int = 40
    gain: float = 0.9


SCHEDULE = BoundedSchedule()


class BoundedFit:
    """The state of the method.

    Args:
      stiff: The problem, and the margins that it holds.
      restrict: The design's sums over chosen cells.
      y: Where to start; changed in place.
      ridge: A ridge that is part of the objective, or zero.
      schedule: Constants.
    """

    def __init__(
        self,
        stiff: StiffMargins,
        restrict: Restrictor,
        y: Vector,
        ridge: float,
        schedule: BoundedSchedule = SCHEDULE,
    ) -> None:
        self.stiff, self.y, self.ridge, self.steps = stiff, y, ridge, 0
        self._restrict, self._schedule = restrict, schedule
        self._missing = np.zeros(len(stiff.at))
        self._times = np.ones(len(stiff.at))
        self._is_zero, self._blocked = exact_zeros(stiff.given)
        y[self._blocked] = 0.0
        self.fitted = stiff.problem.design.aggregate(y)

    def run(self, max_steps: int) -> None:
        """Go on until the certificate would hold, or in vain.

        Args:
          max_steps: Steps after which to give up.
        """
        best, in_vain = np.inf, 0
        while self.steps < max_steps and in_vain < self._schedule.patience:
            force = self._force()
            violation = self._violation(force)
            off = self.stiff.deviation(self.fitted) if self.stiff else 0.0
            worst = max(violation, off) / self._schedule.safely
            if worst <= 1.0:
                return
            in_vain += 1
            if worst < self._schedule.gain * best:
                best, in_vain = worst, 0
            if self.stiff and violation <= max(self._schedule.safely, self._schedule.held * off):
                self._shift()
                force = self._force()
                violation = self._violation(force)
            allowed = min(violation, self._schedule.held * off) if off > 1.0 else violation
            self._improve(force, max(self._schedule.share * allowed, self._schedule.safely / 2))
            report("fit", 1.0 / (1.0 + np.log10(max(worst, 1.0))))

    @property
    def multipliers(self) -> Vector:
        """The forces on held margins; those on zeros are large enough for all of their cells."""
        found, push = self.stiff.multipliers(self.fitted), self._push()[self._blocked]
        found[self._is_zero] -= push.max(initial=0.0)
        return found

    def _push(self) -> Vector:
        """What pushes each inner cell up: the negative gradient."""
        problem = self.stiff.problem
        push: Vector = problem.design.adjoint(problem.misfit(self.fitted)) - self.ridge * self.y
        return push

    def _force(self) -> Vector:
        """The same, but for cells that zeros hold down."""
        force = self._push()
        force[self._blocked] = 0.0
        return force

    def _violation(self, force: Vector) -> float:
        """The largest gradient that would still move a cell, in units of its limit."""
        goal = self.stiff.problem.goal
        moving = np.minimum(-force, goal.curvature * self.y)
        return float((np.abs(moving) / goal.gradient).max(initial=0.0))

    def _shift(self) -> None:
        """Shift the targets of held margins, by more where the last shift had no answer.

        Cells at zero answer to a force only when it exceeds what keeps them there.
        """
        missing = self.stiff.missing_in(self.fitted)
        same = missing * self._missing > self._schedule.same * self._missing**2
        self._times = np.where(same, np.minimum(2 * self._times, self._schedule.most_times), 1.0)
        self._missing = missing
        self.stiff.shift(self.fitted, self._times)

    def _improve(self, force: Vector, share: float) -> None:
        """A run of steps on the cells that are positive, or pushed up by more than it may leave."""
        problem = self.stiff.problem
        cells = np.flatnonzero((self.y > 0) | (force > share * problem.goal.gradient))
        incidence = self._restrict(cells)
        at, x = incidence.position, self.y[cells]
        taken = bounded_steps(
            incidence.sums,
            problem.weights[at],
            problem.z[at],
            self.ridge,
            x,
            problem.goal.curvature[cells],
            share * problem.goal.gradient[cells],
            self._schedule.steps,
        )
        self.steps += taken
        self.y[:] = 0.0
        self.y[cells] = x
        self.fitted = problem.design.aggregate(self.y)


def exact_zeros(problem: Problem) -> tuple[Marks, Marks]:
    """Which of the held margins must be zero, and which inner cells are zero for that reason."""
    is_zero = (problem.slack == 0) & (problem.z[problem.held] == 0)
    marks = np.zeros(len(problem.z))
    marks[problem.held[is_zero]] = 1.0
    return is_zero, np.asarray(problem.design.adjoint(marks) > 0)
