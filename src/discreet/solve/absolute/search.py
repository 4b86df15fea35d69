r"""The minimiser of smallest norm of a large table, and the dual vector that proves it.

Two runs of the primal-dual iteration share the work. One has a ridge,
:math:`\tfrac{\rho}{2}\|y\|^2`, and few of its inner cells are ever positive, so that its steps are
cheap. The other has none; it shows how small the loss can be, and its dual vector bounds the loss
from below. The ridge falls as soon as it is to blame for a loss above the smallest one seen, or for
the gap of a single cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from discreet.arrays import Real, Whole
from discreet.design.base import dot
from discreet.design.incidence import Incidence
from discreet.progress import report
from discreet.solve.absolute.certificate import Answer, Gaps, Inner, largest, ridge_size
from discreet.solve.absolute.kernels import ABSOLUTE
from discreet.solve.absolute.primal_dual import PrimalDual
from discreet.solve.absolute.schedule import SCHEDULE
from discreet.solve.fit import Status
from discreet.solve.least_squares.problem import Accuracy, gradient_limits, smallest_sizes


def search(
    members: Incidence, z: Real, weights: Real, accuracy: Accuracy, max_steps: int
) -> Answer:
    """The best table and dual vectors that steps of both runs, so many together, lead to."""
    state = _Search(members, z, weights, accuracy, max_steps)
    state.run()
    if not state.ridge:
        state.keep()
    cells, values = state.table
    y = np.zeros(members.n_inner)
    y[cells] = values
    return Answer(y, state.dual, state.ridge, state.ridge_dual, state.steps, state.status)


class _Search:
    """The state of both runs, and the best that they have found.

    Attributes:
      table: Positions and values of the inner cells that are not zero.
      dual: The dual vector that bounds the loss.
      ridge: The ridge of the table.
      ridge_dual: The dual vector of the loss with that ridge.
      steps: Steps of both runs.
      status: How the search has ended.
    """

    def __init__(
        self, members: Incidence, z: Real, weights: Real, accuracy: Accuracy, max_steps: int
    ) -> None:
        self._z, self._weights, self._accuracy, self._max_steps = z, weights, accuracy, max_steps
        self._tolerance = accuracy.tolerance
        sizes = smallest_sizes(members, z, weights, accuracy.count)
        self._largest = largest(sizes)
        seen = int(np.count_nonzero(sizes))
        self._small = SCHEDULE.far_below * (float(sizes.sum()) / seen if seen else 1.0)
        differ = bool((sizes[sizes > 0] < self._small).any())
        del sizes
        self._path = PrimalDual(members, z, weights, ABSOLUTE, self._lengths if differ else None)
        self._free = self._path  # until it goes its own way, from a table that is sparse already
        self.table: tuple[Whole | slice, Real] = (slice(0), np.zeros(0))
        self.dual = self.ridge_dual = np.zeros(len(z))
        self.ridge, self.steps, self.status = 0.0, 0, Status.stalled
        self._bound, self._least = 0.0, dot(weights, np.abs(z))
        self._floor = SCHEDULE.small_loss * self._least or 1.0

    def _lengths(self, members: Incidence) -> Real:
        """Ones, less for cells far smaller than others; cells of size zero are not seen at all."""
        sizes = smallest_sizes(members, self._z, self._weights, self._accuracy.count)
        return np.where(sizes > 0, np.minimum(1.0, sizes / self._small), 1.0)

    def run(self) -> None:
        """Lower the ridge until it costs no more than the tolerance, and prove it."""
        unit = largest(self._weights) / self._largest
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
        self.table = (run.cells, run.point.copy())
        self.ridge, self.ridge_dual = run.ridge, run.u[:-1].copy()

    def _look(self, loss: float, steps: int) -> None:
        """Let the run without a ridge show how small the loss can be."""
        if steps <= SCHEDULE.follows and loss <= self._loss_of(self._free):
            self._free = self._path.without_ridge()
        for _ in range(0, steps, SCHEDULE.check_every):
            if self._gap(self._least) > SCHEDULE.known * self._tolerance:
                self._prove()

    def _is_reached(self, at: Gaps) -> bool:
        """Whether the ridge problem is solved, and its loss is the smallest one seen."""
        solved = at.total / ridge_size(at.loss, self._path.ridge, self._path.point)
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
        unfinished = at.own(self._accuracy, self._limits)
        return max(unfinished, self._own(self._free)) <= own

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
        return True

    def _iterate(self, run: PrimalDual) -> bool:
        """Take some steps, unless there are none left."""
        left = self._max_steps - self.steps
        if left <= 0:
            self.status = Status.max_steps
            return False
        other = self._path if run is self._free else self._free
        other.forget_slopes()
        self.steps += run.iterate(min(SCHEDULE.check_every, left))
        return True

    def _ridge_gaps(self) -> Gaps:
        run = self._path
        residual = self._z - run.current_margins()
        return Gaps.of(self._weights, residual, run.u[:-1], run.touched(), run.ridge)

    def _own(self, run: PrimalDual) -> float:
        """The widest gap of a cell of its own between a run's table and the best dual vector."""
        residual, (cells, y) = self._z - run.current_margins(), run.positive()
        inner = Inner(cells, y, self._by_pieces(cells, lambda members: members.adjoint(self.dual)))
        gaps = Gaps.of(self._weights, residual, self.dual, inner)
        return gaps.own(self._accuracy, self._limits)

    def _limits(self, cells: Whole) -> Real:
        """The largest gradients of some inner cells."""
        given = (self._z, self._weights, self._accuracy)
        return self._by_pieces(cells, lambda members: gradient_limits(members, *given))

    def _by_pieces(self, cells: Whole, of: Callable[[Incidence], Real]) -> Real:
        """A value for each of some inner cells, from lists of the published cells of a few."""
        pieces = np.array_split(cells, len(cells) // SCHEDULE.piece + 1)
        return np.concatenate([of(self._path.members.restricted(piece)) for piece in pieces])

    def _gap(self, loss: float) -> float:
        return (loss - self._bound) / self._size(loss)

    def _size(self, loss: float) -> float:
        """What losses are relative to."""
        return max(loss, self._floor)

    def _loss_of(self, run: PrimalDual) -> float:
        return dot(self._weights, np.abs(run.current_margins() - self._z))
