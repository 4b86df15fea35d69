r"""The minimiser of smallest norm, and the dual vector that proves it.

Two runs of the primal-dual iteration share the work. One has a ridge,
:math:`\tfrac{\rho}{2}\|y\|^2`, and few of its inner cells are ever positive, so that its steps are
cheap. The other has none; it shows how small the loss can be, and its dual vector bounds the loss
from below. The ridge falls as soon as it is to blame for a loss above the smallest one seen. Where
the first run has ended, the second goes on from there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.membership import Membership
from discreet.progress import report
from discreet.solve.absolute.gaps import own_gaps, ridge_gap
from discreet.solve.absolute.kernels import ABSOLUTE
from discreet.solve.absolute.primal_dual import PrimalDual
from discreet.solve.absolute.schedule import SCHEDULE
from discreet.solve.fit import Status
from discreet.solve.least_squares.goal import Goal

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class _Losses:
    """A point of the run with a ridge.

    Attributes:
      loss: The loss.
      excess: Duality gap of the loss with the ridge.
      size: The loss with the ridge.
    """

    loss: float
    excess: float
    size: float


class Search:
    """One fit.

    Args:
      members: Published cells of the inner cells.
      z: Published values.
      weights: Weights of the absolute deviations.
      goal: What is asked for.
      max_steps: Steps of both runs together.

    Attributes:
      y: The table found.
      dual: A dual vector of the loss.
      ridge: The ridge that singles out the table; zero until there is one.
      ridge_dual: A dual vector of the loss with that ridge.
      steps: Steps taken.
      status: Why the search has ended, unless the certificate holds.
    """

    def __init__(
        self, members: Membership, z: Vector, weights: Vector, goal: Goal, max_steps: int
    ) -> None:
        self._z, self._weights, self._goal, self._max_steps = z, weights, goal, max_steps
        self._tolerance = goal.accuracy.tolerance
        self._path = PrimalDual(members, z, weights, ABSOLUTE, goal.size)
        self._free = self._path.without_ridge()
        self.y = np.zeros(members.n_inner)
        self.dual = self.ridge_dual = np.zeros(len(z))
        self.ridge, self.steps, self.status = 0.0, 0, Status.stalled
        self._bound, self._least = 0.0, float(weights @ np.abs(z))
        self._floor = SCHEDULE.small_loss * self._least or 1.0

    def run(self) -> None:
        """Lower the ridge until it costs no more than the tolerance, and prove it."""
        top = float(self._weights.max(initial=0.0)) or 1.0
        largest = float(self._goal.size.max(initial=0.0)) or 1.0
        ridge = SCHEDULE.first_ridge * top / largest
        fall, above = SCHEDULE.ridge_falls[1], 0.0
        while ridge * largest >= SCHEDULE.last_ridge * top:
            self._path.set_ridge(ridge)
            if self._has_ended_with(ridge):
                return
            before, above = above, self._loss_of(self._path) - self._least
            fall = self._next_fall(fall, above / before if before else 0.0, above)
            ridge *= fall

    def _next_fall(self, fall: float, gained: float, above: float) -> float:
        """Factor of the next ridge: the loss above the least one falls as a power of the ridge."""
        lowest, highest = SCHEDULE.ridge_falls
        if not 0.0 < gained < 1.0:
            return highest
        power: float = math.log(gained) / math.log(fall)
        wanted = self._tolerance / 2 * max(self._least, self._floor) / above
        return min(max(math.exp(min(math.log(wanted) / power, 0.0)), lowest), highest)

    def _has_ended_with(self, ridge: float) -> bool:
        """Iterate with one ridge until the search has ended, or the ridge has to fall."""
        next_look = SCHEDULE.check_every
        while self._iterate(self._path, SCHEDULE.check_every):
            at = self._losses()
            if self._is_reached(at):
                self._keep(ridge)
                if self._is_proven(at):
                    return True
            elif self._path.steps >= next_look:
                if next_look <= SCHEDULE.follows and at.loss < self._loss_of(self._free):
                    self._free = self._path.without_ridge()
                for _ in range(int(SCHEDULE.bound_share * next_look / SCHEDULE.check_every)):
                    if self._gap(self._least) > SCHEDULE.known * self._tolerance:
                        self._prove(SCHEDULE.check_every)
                next_look = 2 * self._path.steps
            if self._is_to_blame(at):
                return False
        return True

    def _is_proven(self, at: _Losses) -> bool:
        """Raise the bound until the gap is narrow, or due to the table more than to the bound."""
        while (gap := self._gap(at.loss)) > self._tolerance or self._own_gap() > self._tolerance:
            if self._least - self._bound <= at.loss - self._least:
                return False
            if not self._prove(SCHEDULE.check_every) or gap <= self._tolerance:
                return False
        return True

    def _iterate(self, run: PrimalDual, steps: int) -> bool:
        """Take some steps, unless there are none left."""
        left = self._max_steps - self.steps
        if left <= 0:
            self.status = Status.max_steps
            return False
        self.steps += run.iterate(min(steps, left))
        return True

    def _prove(self, steps: int) -> bool:
        """Raise the bound and look for a smaller loss, unless there are no steps left."""
        if not self._iterate(self._free, steps):
            return False
        self._least = min(self._least, self._loss_of(self._free))
        for dual in self._free.feasible_duals(self._weights):
            if (value := float(self._z @ dual)) > self._bound:
                self._bound, self.dual = value, dual
        return True

    def _losses(self) -> _Losses:
        run, loss = self._path, self._loss_of(self._path)
        self._least = min(self._least, loss)
        gap = ridge_gap(loss, self._z, run.ridge, run.y, run.u, run.current_slopes)
        return _Losses(loss, *gap)

    def _is_reached(self, at: _Losses) -> bool:
        """Whether the ridge problem is solved, and its loss is the smallest one seen."""
        worst = max(at.excess / at.size, (at.loss - self._least) / max(at.loss, self._floor))
        known = max(worst, self._gap(at.loss))
        report("least absolute deviation", math.log(max(known, 1e-300)) / math.log(self._tolerance))
        return worst <= self._tolerance

    def _is_to_blame(self, at: _Losses) -> bool:
        """Whether a smaller loss was seen than unfinished steps could lead to with this ridge."""
        above = at.loss - self._least
        if self._gap(at.loss) <= self._tolerance:  # so it is a single cell whose gap is too wide
            return at.excess <= SCHEDULE.settled * self._tolerance * at.size
        harmless = self._tolerance / 2 * max(at.loss, self._floor)
        return above > max(SCHEDULE.blame * at.excess, harmless)

    def _own_gap(self) -> float:
        run, y = self._path, self.y
        slopes = run.slopes(np.append(self.dual, 0.0))
        residual = self._z - run.margins(y)
        return own_gaps(self._goal, self._weights, residual, y, self.dual, slopes)[0]

    def _gap(self, loss: float) -> float:
        return (loss - self._bound) / max(loss, self._floor)

    def _loss_of(self, run: PrimalDual) -> float:
        return float(self._weights @ np.abs(run.current_margins() - self._z))

    def _keep(self, ridge: float) -> None:
        self.y, self.ridge = self._path.y.copy(), ridge
        self.ridge_dual = self._path.u[:-1].copy()
