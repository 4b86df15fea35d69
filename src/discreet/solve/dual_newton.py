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
from discreet.design.fused.links import CellLink
from discreet.design.fused.null_space import NullSpace
from discreet.design.fused.passes import MarginSums


class TablePasses(Protocol):
    """What Newton's method asks of a table: margins, each in one pass."""

    link: CellLink

    def dot(self, a: Real, b: Real) -> float:
        """A scalar product."""

    def table(self, nu: Real) -> MarginSums:
        """Margins and potential."""

    def slope(self, nu: Real) -> Real:
        """Margins of the derivative."""

    def change(self, nu: Real, direction: Real) -> Real:
        """Margins of the change along a direction."""


# Part of the predicted decrease that a step must reach (Armijo).
_SUFFICIENT = 1e-4
# Steps that are cut below this length make no progress.
_SHORTEST = 1e-6
# Curvature of a direction, relative to that by the diagonal, below which no table answers to it;
# where there is no ridge, the targets then contradict each other.
_FLAT = 1e-11
# Flat directions are looked for after so many steps of conjugate gradients: each look costs a
# scalar product.
_LOOK_EVERY = 10
# What double precision leaves of the sum of the terms of the objective.
_ROUNDING = 1e-14


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
      forcing: Conjugate gradients stop when the preconditioned residual has fallen by this factor;
        the next step corrects what is left, and tighter solves cost more than they save.
      most_steps: Newton steps for one ridge.
      most_gradients: Conjugate gradient steps of one Newton step.
      most_in_all: Conjugate gradient steps after which the method gives up.
      gradients: Conjugate gradient steps taken.
    """

    passes: TablePasses
    z: Real
    variances: Real
    null: NullSpace | None
    nu: Real
    used: Real | None = None
    centre: Real = field(init=False)
    forcing: float = 0.1
    most_steps: int = 60
    most_gradients: int = 1000
    most_in_all: int = 1_000_000
    gradients: int = 0

    def __post_init__(self) -> None:
        self.centre = np.zeros_like(self.nu)
        self.at = self.passes.table(self.nu)

    def solve(self, ridge: float, within: Any) -> bool:
        """Newton steps until no entry of F exceeds a bound; whether that was reached."""
        for _ in range(self.most_steps):
            drawn = ridge * self.variances * (self.nu - self.centre)
            gradient = self._mask(drawn + self.at.margins - self.z)
            if bool((np.abs(gradient) <= within).all()):
                return True
            if self.gradients > self.most_in_all or not self._step(ridge, gradient):
                return False
        return False

    def try_at(self, point: Real, ridge: float) -> None:
        """Go to a point if the objective is lower there."""
        at = self.passes.table(point)
        if self._objective(ridge, point, at) < self._objective(ridge, self.nu, self.at):
            self.nu, self.at = point, at

    def _step(self, ridge: float, gradient: Real) -> bool:
        """One Newton step with backtracking; whether the objective fell."""
        direction = self._direction(ridge, gradient)
        if direction is None:
            return False
        terms = self.at.potential + self.passes.dot(np.abs(self.z), np.abs(self.nu))
        # Near the optimum the decrease drowns in the rounding errors of the objective's terms.
        # Without this allowance the last steps are cut until they count as no progress: the fit of
        # a log-linear table of 240 million people in 120,000 cells is given up.
        before = self._objective(ridge, self.nu, self.at) + _ROUNDING * terms
        slope = _SUFFICIENT * self.passes.dot(gradient, direction)
        size = 1.0
        while size > _SHORTEST:
            point = self.nu + size * direction
            at = self.passes.table(point)
            if self._objective(ridge, point, at) <= before + size * slope:
                self.nu, self.at = point, at
                return True
            size /= 2
        return False

    def _objective(self, ridge: float, nu: Real, at: MarginSums) -> float:
        moved = nu - self.centre
        drawn = 0.5 * ridge * self.passes.dot(self.variances * moved, moved) if ridge else 0.0
        return drawn + at.potential - self.passes.dot(self.z, nu)

    def _direction(self, ridge: float, gradient: Real) -> Real | None:
        """The Newton direction, by conjugate gradients; `None` where targets contradict."""
        kept = ridge * self.variances
        # An exponential is its own derivative, which saves a pass.
        is_own_slope = self.passes.link.name == "exponential"
        diagonal = kept + (self.at.margins if is_own_slope else self.passes.slope(self.nu))
        inverse = 1.0 / np.where(diagonal > 0, diagonal, np.inf)
        x, residual = np.zeros_like(gradient), -gradient
        scaled = self._precondition(residual, ridge, inverse)
        direction = scaled.copy()
        norm = self.passes.dot(residual, scaled)
        enough = self.forcing**2 * norm
        for _ in range(self.most_gradients):
            if norm <= enough:
                break
            self.gradients += 1
            turned = self.passes.change(self.nu, direction)
            if ridge:
                turned += kept * direction
            turned = self._mask(turned)
            curvature = self.passes.dot(direction, turned)
            if not ridge and self._is_flat(curvature, direction, diagonal):
                return None
            size = norm / curvature
            x += size * direction
            turned *= size
            residual -= turned
            scaled = self._precondition(residual, ridge, inverse)
            last, norm = norm, self.passes.dot(residual, scaled)
            direction *= norm / last
            direction += scaled
        return x

    def _is_flat(self, curvature: float, direction: Real, diagonal: Real) -> bool:
        """Whether no table answers to a direction; looked at now and then."""
        if curvature > 0 and self.gradients % _LOOK_EVERY:
            return False
        return curvature <= _FLAT * self.passes.dot(direction, diagonal * direction)

    def _precondition(self, residual: Real, ridge: float, inverse: Real) -> Real:
        """Exact, or nearly so, on what no table can answer, by the diagonal on the rest."""
        if self.null is None:
            return inverse * residual
        return self._mask(self.null.precondition(residual, inverse, ridge))

    def _mask(self, values: Real) -> Real:
        return values if self.used is None else self.used * values
