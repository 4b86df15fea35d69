r"""Non-negative least squares by splitting, where :math:`XWX^\top + \rho I` is solved directly.

The alternating direction method keeps two copies of the inner table, one that fits and one that is
not negative, and draws them together (Boyd et al. 2011):

.. math:: y \leftarrow (XWX^\top + \rho I)^{-1}(XWz + \rho(x - v)), \quad
          x \leftarrow \max(0, y + v), \quad v \leftarrow v + y - x.

When every inner cell is published the fit is unique and the method converges linearly at a rate
that does not depend on the size of the table; Anderson's method makes it faster, and Newton steps
on the cells that are positive finish it. The state of the method is the one table
:math:`u = x + v`. Support that is not complete is only another bound:
cells outside it are held at zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.progress import report
from discreet.solve.acceleration import Anderson
from discreet.solve.least_squares.conjugate import Operator, preconditioned
from discreet.solve.least_squares.problem import Problem
from discreet.solve.least_squares.structure import Basis

Vector = NDArray[np.float64]

_RELAXATION = 1.7
_CHECK_EVERY = 10
_IMBALANCE = 1.5  # factor by which the penalty must be off before it is changed
_LARGEST_CHANGE = 5.0
_LAST_BALANCE = 60  # rounds after which the penalty stays
_MEMORY = 10  # rounds the extrapolation looks back on
_WORSE = 1.5  # times the smallest step so far: beyond it the extrapolation starts afresh
_TINY = 1e-300
_MARGIN = 0.9  # of what a certificate allows
_PATIENCE, _GAIN = 1_000, 0.5  # rounds after which this gain is overdue
_INNER_STEPS = 50
_NEWTON_AFTER, _NEWTON_ROUNDS = (60, 500), 30  # rounds before Newton steps, and most of these
_NEWTON_STEPS, _NEWTON_GAIN = 300, 0.03  # steps in each, and share of the violation it leaves
_INNER_GAIN = 0.1


@dataclass(eq=False)
class Splitting:
    """The state of the method.

    Attributes:
      problem: Targets and weights.
      basis: In which the sums of squares are diagonal, exactly or for a preconditioner.
      is_exact: Whether they are exactly.
      support: Ones where cells may differ from zero, zeros elsewhere.
      held: Published positions whose targets are shifted in every round.
      missing: By how much, given their fitted values and present targets.
      steps: Rounds taken.
    """

    problem: Problem
    basis: Basis
    is_exact: bool
    support: Vector | None
    held: NDArray[np.int64]
    missing: Callable[[Vector, Vector], Vector]

    def __post_init__(self) -> None:
        n = self.problem.design.n_inner
        self.y = np.zeros(n)
        self._state = np.concatenate([np.zeros(n), self.problem.z[self.held]])
        curvature = float(self.problem.design.adjoint(self.problem.weights).mean())
        self.penalty = math.sqrt(self.basis.smallest * curvature)
        self.steps = 0
        self._anderson = Anderson(_MEMORY, np.ones(len(self._state)))
        self._residual = math.inf
        self._pull = self.problem.pull
        self._factorise()

    @property
    def _u(self) -> Vector:
        return self._state[: self.problem.design.n_inner]

    @property
    def targets(self) -> Vector:
        """The targets of the margins that are held."""
        return self._state[self.problem.design.n_inner :]

    @property
    def x(self) -> Vector:
        """The copy that is not negative."""
        x = np.maximum(self._u, 0.0)
        return x if self.support is None else x * self.support

    def run(self, max_steps: int) -> None:
        """Go on until the projected gradient is small and held margins are met, or in vain.

        Args:
          max_steps: Rounds after which to give up.
        """
        best, since = math.inf, 0
        while self.steps < max_steps and self.steps - since < _PATIENCE:
            before = self.x
            self._round()
            if self.steps % _CHECK_EVERY == 0:
                self._aim()
                reached = self._violation()
                if reached <= _MARGIN:
                    return
                if self.steps in _NEWTON_AFTER and self._finish(max_steps):
                    return
                if reached < _GAIN * best:
                    best, since = reached, self.steps
                report("fit", 1.0 / (1.0 + math.log10(reached / _MARGIN)))
                self._balance(before)

    def _finish(self, max_steps: int) -> bool:
        """Newton steps: solve on the cells that are positive, guess them anew; returns whether.

        The state stays what it was if they do not arrive.
        """
        state = self._state
        inverse = self.basis.function(lambda eigenvalue: 1.0 / eigenvalue)
        for _ in range(_NEWTON_ROUNDS):
            self._aim()
            if (reached := self._violation()) <= _MARGIN:
                return True
            if self.steps >= max_steps:
                break
            self._solve_on(self._free(), inverse, max(_INNER_GAIN, _NEWTON_GAIN * reached))
        self._state = state
        self._aim()
        return False

    def _free(self) -> NDArray[np.bool_]:
        """Cells that are positive, or at zero and pushed up."""
        x, goal = self.x, self.problem.goal
        push = self.problem.design.adjoint(self.problem.misfit(self.problem.design.aggregate(x)))
        free = (x > 0) | (push > _INNER_GAIN * goal.gradient)
        return free if self.support is None else free & (self.support > 0)

    def _solve_on(self, free: NDArray[np.bool_], inverse: Operator, share: float) -> None:
        """The fit in which just these cells differ from zero becomes the state."""
        design, weights = self.problem.design, self.problem.weights

        def apply(y: Vector) -> Vector:
            product: Vector = design.adjoint(weights * design.aggregate(y))
            return np.where(free, product, 0.0)

        y, steps = preconditioned(
            apply,
            np.where(free, self._pull, 0.0),
            np.where(free, self.x, 0.0),
            lambda r: np.where(free, inverse(r), 0.0),
            limits=share * self.problem.goal.gradient,
            max_steps=_NEWTON_STEPS,
        )
        self.y, self.steps = y, self.steps + steps
        self._state = np.concatenate([y, self.targets + self._shift()])

    def _factorise(self) -> None:
        rho = self.penalty
        self._inverse = self.basis.function(lambda eigenvalue: 1.0 / (eigenvalue + rho))

    def _round(self) -> None:
        """One step of the plain method, extrapolated while that helps."""
        x = self.x
        v = self._u - x
        self._aim()
        self.y = self._fitting(self._pull + self.penalty * (x - v))
        u = _RELAXATION * self.y + (1.0 - _RELAXATION) * x + v
        image = np.concatenate([u, self.targets + self._shift()])
        residual = _norm(image - self._state)
        proposal = self._anderson.propose(self._state, image)
        if residual > _WORSE * self._residual:
            self._start_afresh()
            proposal = None
        self._state = image if proposal is None else proposal
        self._residual = min(residual, self._residual)
        self.steps += 1

    def _aim(self) -> None:
        """Bring the present targets of held margins into the problem."""
        if len(self.held):
            z = self.problem.z.copy()
            z[self.held] = self.targets
            self.problem = self.problem.aiming(z)
            self._pull = self.problem.pull

    def _shift(self) -> Vector:
        if len(self.held) == 0:
            return np.zeros(0)
        return self.missing(self.problem.design.aggregate(self.y)[self.held], self.targets)

    def _start_afresh(self) -> None:
        self._anderson.forget()
        self._residual = math.inf

    def _fitting(self, rhs: Vector) -> Vector:
        if self.is_exact:
            return self._inverse(rhs)
        design, weights, rho = self.problem.design, self.problem.weights, self.penalty

        def apply(y: Vector) -> Vector:
            product: Vector = design.adjoint(weights * design.aggregate(y)) + rho * y
            return product

        start = np.abs(rhs - apply(self.y)).max()
        y, _ = preconditioned(
            apply, rhs, self.y, self._inverse, limits=_INNER_GAIN * start, max_steps=_INNER_STEPS
        )
        return y

    def _violation(self) -> float:
        """Largest projected gradient or deviation of a held margin at x, in units of its limit."""
        x = self.x
        fitted = self.problem.design.aggregate(x)
        g = -self.problem.design.adjoint(self.problem.misfit(fitted))
        g = np.minimum(g, self.problem.goal.curvature * x)
        if self.support is not None:
            g *= self.support
        off = self.missing(fitted[self.held], self.targets) / self.problem.goal.margin[self.held]
        gradient = np.abs(g) / self.problem.goal.gradient
        return float(max(gradient.max(initial=0.0), np.abs(off).max(initial=0.0)))

    def _balance(self, before: Vector) -> None:
        """Change the penalty when one relative residual is much larger than the other."""
        x = self.x
        v = self._u - x
        apart = _norm(self.y - x) / max(_norm(self.y), _norm(x), _TINY)
        moved = _norm(x - before) / max(_norm(v), _TINY)
        factor = math.sqrt(max(apart, _TINY) / max(moved, _TINY))
        if self.steps > _LAST_BALANCE or 1 / _IMBALANCE < factor < _IMBALANCE:
            return
        factor = min(max(factor, 1 / _LARGEST_CHANGE), _LARGEST_CHANGE)
        self.penalty *= factor
        self._state = np.concatenate([x + v / factor, self.targets])
        self._start_afresh()
        self._factorise()


def _norm(values: Vector) -> float:
    return float(np.linalg.norm(values))
