r"""Newton's method on the dual of smooth fits, for tables that are never stored.

A smooth fit has the form :math:`y = \varphi(s + qX\nu)` with one value of :math:`\nu` for each
published cell, and :math:`\nu` minimises a convex function with the gradient

.. math:: F(\nu) = \rho V (\nu - \nu_0) + X^\top \varphi(s + qX\nu) - z.

Its Hessian :math:`\rho V + X^\top D X`, :math:`D = \operatorname{diag} q\varphi'`, is met by
conjugate gradients, and every product is one pass over the table. The preconditioner is exact on
the values that no table has, where :math:`X` vanishes, and diagonal on the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from discreet.arrays import Real
from discreet.design.fused.links import Link
from discreet.design.fused.null_space import NullSpace
from discreet.design.fused.passes import Sums


class TablePasses(Protocol):
    """What Newton's method asks of a table: margins, each in one pass."""

    link: Link

    def dot(self, a: Real, b: Real) -> float:
        """A scalar product."""

    def table(self, nu: Real) -> Sums:
        """Margins and potential."""

    def slope(self, nu: Real) -> Real:
        """Margins of the derivative."""

    def change(self, nu: Real, direction: Real) -> Real:
        """Margins of the change along a direction."""


@dataclass(frozen=True)
class NewtonSchedule:
    """The constants of Newton's method.

    Attributes:
      forcing: Conjugate gradients stop when the preconditioned residual has fallen by this factor;
        the next step corrects what is left, and tighter solves cost more than they save.
      most_gradients: Conjugate gradient steps of one Newton step.
      most_steps: Newton steps for one ridge.
      sufficient: Part of the predicted decrease that a step must reach (Armijo).
      shortest: Steps that are cut below this length make no progress.
      flat: Curvature of a direction, relative to that by the diagonal, below which no table
        answers to it; where there is no ridge, the targets then contradict each other.
      rounding: Of the terms of the objective: what double precision leaves of their sum.
      look_every: Steps of conjugate gradients after which that is looked at.
      most_in_all: Conjugate gradient steps after which the method gives up.
    """

    forcing: float = 0.1
    most_gradients: int = 1000
    most_steps: int = 60
    sufficient: float = 1e-4
    shortest: float = 1e-6
    flat: float = 1e-11
    rounding: float = 1e-14
    look_every: int = 10
    most_in_all: int = 1_000_000


@dataclass(eq=False)
class DualNewton:
    r"""The iteration: a point, and the table there.

    Attributes:
      passes: Margins of the table, one pass each.
      z: Targets.
      variances: The diagonal of :math:`V`.
      null: How the ridge answers where no table can; targets that some table has need it not.
      nu: The point.
      used: One for each published cell that is used, zero for others, whose :math:`\nu` does not
        move; absent where all are used.
      centre: The point :math:`\nu_0` that the ridge draws to.
      schedule: Constants.
      gradients: Conjugate gradient steps taken.
    """

    passes: TablePasses
    z: Real
    variances: Real
    null: NullSpace | None
    nu: Real
    used: Real | None = None
    centre: Real = field(init=False)
    schedule: NewtonSchedule = NewtonSchedule()
    gradients: int = 0

    def __post_init__(self) -> None:
        self.centre = np.zeros_like(self.nu)
        self.at = self.passes.table(self.nu)

    def solve(self, ridge: float, within: Any) -> bool:
        """Newton steps until no entry of F exceeds a bound; whether that was reached."""
        for _ in range(self.schedule.most_steps):
            gradient = self._masked(self._ridge_gradient(ridge) + self.at.margins - self.z)
            if bool((np.abs(gradient) <= within).all()):
                return True
            if self.gradients > self.schedule.most_in_all or not self._step(ridge, gradient):
                return False
        return False

    def _ridge_gradient(self, ridge: float) -> Real:
        r"""The gradient of the ridge, :math:`\rho V (\nu - \nu_0)`."""
        return ridge * self.variances * (self.nu - self.centre)

    def _step(self, ridge: float, gradient: Real) -> bool:
        """One Newton step with backtracking; whether the objective fell."""
        direction = self._direction(ridge, gradient)
        if direction is None:
            return False
        terms = self.at.potential + self.passes.dot(np.abs(self.z), np.abs(self.nu))
        before = self._objective(ridge, self.nu, self.at) + self.schedule.rounding * terms
        slope = self.schedule.sufficient * self.passes.dot(gradient, direction)
        size = 1.0
        while size > self.schedule.shortest:
            point = self.nu + size * direction
            at = self.passes.table(point)
            if self._objective(ridge, point, at) <= before + size * slope:
                self.nu, self.at = point, at
                return True
            size /= 2
        return False

    def _objective(self, ridge: float, nu: Real, at: Sums) -> float:
        moved = nu - self.centre
        drawn = 0.5 * ridge * self.passes.dot(self.variances * moved, moved) if ridge else 0.0
        return drawn + at.potential - self.passes.dot(self.z, nu)

    def _direction(self, ridge: float, gradient: Real) -> Real | None:
        """The Newton direction, by conjugate gradients; `None` where targets contradict."""
        kept = ridge * self.variances
        diagonal = kept + self._diagonal()
        inverse = 1.0 / np.where(diagonal > 0, diagonal, np.inf)
        x, residual = np.zeros_like(gradient), -gradient
        scaled = self._preconditioned(residual, ridge, inverse)
        direction = scaled.copy()
        norm = self.passes.dot(residual, scaled)
        enough = self.schedule.forcing**2 * norm
        for _ in range(self.schedule.most_gradients):
            if norm <= enough:
                break
            self.gradients += 1
            turned = self.passes.change(self.nu, direction)
            if ridge:
                turned += kept * direction
            turned = self._masked(turned)
            curvature = self.passes.dot(direction, turned)
            if not ridge and self._is_flat(curvature, direction, diagonal):
                return None
            size = norm / curvature
            x += size * direction
            turned *= size
            residual -= turned
            scaled = self._preconditioned(residual, ridge, inverse)
            last, norm = norm, self.passes.dot(residual, scaled)
            direction *= norm / last
            direction += scaled
        return x

    def _is_flat(self, curvature: float, direction: Real, diagonal: Real) -> bool:
        """Whether no table answers to a direction; looked at now and then."""
        if curvature > 0 and self.gradients % self.schedule.look_every:
            return False
        return curvature <= self.schedule.flat * self.passes.dot(direction, diagonal * direction)

    def _diagonal(self) -> Real:
        """The diagonal of the Hessian but for the ridge; an exponential is its own derivative."""
        if self.passes.link.name == "exponential":
            return self.at.margins
        return self.passes.slope(self.nu)

    def _preconditioned(self, residual: Real, ridge: float, inverse: Real) -> Real:
        """Exact, or nearly so, on what no table can answer, by the diagonal on the rest."""
        if self.null is None:
            return inverse * residual
        return self._masked(self.null.preconditioned(residual, inverse, ridge))

    def _masked(self, values: Real) -> Real:
        return values if self.used is None else self.used * values
