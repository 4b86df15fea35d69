r"""The minimiser of smallest norm of a large table, and the dual vector that proves it.

Two runs of the primal-dual iteration share the work. One has a ridge,
:math:`\tfrac{\rho}{2}\|y\|^2`, and few of its inner cells are ever positive, so that its steps are
cheap. The other has none; it shows how small the loss can be, and its dual vector bounds the loss
from below. The ridge falls as soon as it is to blame for a loss above the smallest one seen, or for
the gap of a single cell.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.design.incidence import Incidence
from discreet.design.products import dot
from discreet.progress import report
from discreet.solve.absolute.certificate import Answer, Gaps, largest, ridge_size
from discreet.solve.absolute.kernels import ABSOLUTE
from discreet.solve.absolute.primal_dual import PrimalDual
from discreet.solve.absolute.schedule import SCHEDULE
from discreet.solve.fit import Status
from discreet.solve.least_squares.goal import Goal

Vector = NDArray[np.float64]


def search(members: Incidence, z: Vector, weights: Vector, goal: Goal, max_steps: int) -> Answer:
    """The best table and dual vectors that steps of both runs, so many together, lead to."""
    used, none = weights > 0, np.zeros(len(members.nested), dtype=bool)
    groups = members if used.all() else members.using(used, none)
    state = _Search(groups, z, weights, goal, max_steps)
    state.run()
    if not state.ridge:
        state.keep()
    return Answer(state.y, state.dual, state.ridge, state.ridge_dual, state.steps, state.status)


class _Search:
    """The state of both runs, and the best that they have found."""

    def __init__(
        self, members: Incidence, z: Vector, weights: Vector, goal: Goal, max_steps: int
    ) -> None:
        self._z, self._weights, self._goal, self._max_steps = z, weights, goal, max_steps
        self._tolerance = goal.accuracy.tolerance
        self._path = PrimalDual(members, z, weights, ABSOLUTE, goal.size)
        self._free = self._path  # until it goes its own way, from a table that is sparse already
        self.y, self._slopes = np.zeros((2, members.n_inner))
        self.dual = self.ridge_dual = np.zeros(len(z))
        self.ridge, self.steps, self.status = 0.0, 0, Status.stalled
        self._bound, self._least = 0.0, dot(weights, np.abs(z))
        self._floor = SCHEDULE.small_loss * self._least or 1.0

    def run(self) -> None:
        """Lower the ridge until it costs no more than the tolerance, and prove it."""
        unit = largest(self._weights) / largest(self._goal.size)
        ridge = SCHEDULE.first_ridge * unit
        while ridge >= SCHEDULE.last_ridge * unit:
            self._path.set_ridge(ridge)
            if self._has_ended():
                return
            ridge *= SCHEDULE.ridge_fall

    def _has_ended(self) -> bool:
        """Iterate with one ridge until the search has ended, or the ridge has to fall."""
        next_look = SCHEDULE.check_every
        while self._iterate(self._path):
            at = self._ridge_gaps()
            self._least = min(self._least, at.loss)
            if self._is_reached(at):
                self.keep()
                if self._is_proven(at.loss):
                    return True
            elif self._path.steps >= next_look:
                self._look(at.loss, next_look)
                next_look = 2 * self._path.steps
            if self._is_to_blame(at):
                return False
        return True

    def keep(self) -> None:
        """Keep the table with the present ridge, and the dual vector that goes with it."""
        run = self._path
        self.y, self.ridge, self.ridge_dual = run.y.copy(), run.ridge, run.u[:-1].copy()

    def _look(self, loss: float, steps: int) -> None:
        """Let the run without a ridge show how small the loss can be."""
        if steps <= SCHEDULE.follows and loss <= self._loss_of(self._free):
            self._free = self._path.without_ridge()
        for _ in range(0, steps, SCHEDULE.check_every):
            if self._gap(self._least) > SCHEDULE.known * self._tolerance:
                self._prove()

    def _is_reached(self, at: Gaps) -> bool:
        """Whether the ridge problem is solved, and its loss is the smallest one seen."""
        solved = at.total / ridge_size(at.loss, self._path.ridge, self._path.y)
        worst = max(solved, (at.loss - self._least) / self._size(at.loss))
        known = max(worst, self._gap(at.loss))
        report("least absolute deviation", math.log(max(known, 1e-300)) / math.log(self._tolerance))
        return worst <= self._tolerance

    def _is_proven(self, loss: float) -> bool:
        """Raise the bound until the gap is narrow, or due to the table more than to the bound."""
        while self._gap(loss) > self._tolerance:
            if self._least - self._bound <= loss - self._least or not self._prove():
                return False
        while (own := self._own(self._path)) > self._tolerance:
            if self._own(self._free) <= SCHEDULE.settled * own or not self._prove():
                return False
        return True

    def _is_to_blame(self, at: Gaps) -> bool:
        """Whether less was seen than unfinished steps could lead to with this ridge."""
        if self._gap(at.loss) > self._tolerance:
            harmless = self._tolerance / 2 * self._size(at.loss)
            return at.loss - self._least > max(SCHEDULE.blame * at.total, harmless)
        own = SCHEDULE.settled * self._own(self._path)
        return max(at.own(self._goal), self._own(self._free)) <= own

    def _prove(self) -> bool:
        """Raise the bound and look for a smaller loss, unless there are no steps left."""
        if self._free is self._path:
            self._free = self._path.without_ridge()
        if not self._iterate(self._free):
            return False
        self._least = min(self._least, self._loss_of(self._free))
        dual = self._free.feasible_dual(self._weights)
        if (value := dot(self._z, dual)) > self._bound:
            self._bound, self.dual = value, dual
            self._slopes = self._free.slopes(np.append(dual, 0.0))
        return True

    def _iterate(self, run: PrimalDual) -> bool:
        """Take some steps, unless there are none left."""
        left = self._max_steps - self.steps
        if left <= 0:
            self.status = Status.max_steps
            return False
        self.steps += run.iterate(min(SCHEDULE.check_every, left))
        return True

    def _ridge_gaps(self) -> Gaps:
        run = self._path
        residual = self._z - run.current_margins()
        return Gaps.of(self._weights, residual, run.y, run.u[:-1], run.current_slopes, run.ridge)

    def _own(self, run: PrimalDual) -> float:
        """The widest gap of a cell of its own between a run's table and the best dual vector."""
        residual = self._z - run.current_margins()
        gaps = Gaps.of(self._weights, residual, run.y, self.dual, self._slopes)
        return gaps.own(self._goal)

    def _gap(self, loss: float) -> float:
        return (loss - self._bound) / self._size(loss)

    def _size(self, loss: float) -> float:
        """What losses are relative to."""
        return max(loss, self._floor)

    def _loss_of(self, run: PrimalDual) -> float:
        return dot(self._weights, np.abs(run.current_margins() - self._z))
