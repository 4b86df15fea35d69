r"""Non-negative least squares without a table: Newton's method on the dual.

For a ridge :math:`\rho` the fit :math:`\min_{y \ge 0} \tfrac12 \sum_k w_k (x_k^\top y - z_k)^2
+ \tfrac\rho2 \|y\|^2` has the form :math:`y = \max(0, X\nu)`, where :math:`\nu` solves

.. math:: F(\nu) = \rho\, W^{-1} \nu + X^\top \max(0, X\nu) - z = 0,

the gradient of a convex function with one value for each published cell. Its Hessian
:math:`\rho W^{-1} + X^\top D X` (:math:`D` marks the positive cells) is met by conjugate gradients,
and every product is one pass over a table that is never stored. The ridge is lowered until the
gradient of the fit without it, :math:`\rho\, y`, is small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.design.fused.contradictions import Contradictions
from discreet.design.fused.passes import FusedPass

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Schedule:
    """The constants of the method.

    Attributes:
      lower: Factor by which the ridge falls from stage to stage; smaller factors need more Newton
        steps each, larger ones more stages.
      forcing: Conjugate gradients stop when the preconditioned residual has fallen by this factor;
        the next step corrects what is left.
      most_gradients: Conjugate gradient steps of one Newton step.
      most_steps: Newton steps of one stage.
      loose: A stage ends when no entry of F exceeds this part of the largest residual; the next
        stage starts from there.
      sufficient: Part of the predicted decrease that a step must reach.
    """

    lower: float = 0.25
    forcing: float = 1e-2
    most_gradients: int = 1000
    most_steps: int = 60
    loose: float = 0.01
    sufficient: float = 1e-4


@dataclass(eq=False)
class DualNewton:
    """The iteration: a point, and what is known there.

    Attributes:
      passes: Margins of the table, one pass each.
      null: Published values that no table has.
      z: Targets.
      variances: One over the weights.
      limits: What an entry of F may be at the end.
      schedule: Constants.
    """

    passes: FusedPass
    null: Contradictions
    z: Vector
    variances: Vector
    limits: Vector
    schedule: Schedule = Schedule()
    start: Vector | None = None

    def __post_init__(self) -> None:
        self.nu = np.zeros_like(self.z) if self.start is None else self.start
        self.centre = np.zeros_like(self.z)
        self.at = self.passes.table(self.nu)
        self.steps = self.gradients = 0

    def solve(self, ridge: float) -> bool:
        """Newton steps until F is within its limits for this ridge; whether it is."""
        for _ in range(self.schedule.most_steps):
            force = self._force(ridge)
            pull = ridge * np.abs(self.variances * (self.nu - self.centre)).max()
            if (np.abs(force) <= np.maximum(self.limits, self.schedule.loose * pull)).all():
                return True
            if not self._newton(ridge, force):
                return False
        return False

    def _force(self, ridge: float) -> Vector:
        return ridge * self.variances * (self.nu - self.centre) + self.at.margins - self.z

    def _newton(self, ridge: float, force: Vector) -> bool:
        """One step with backtracking; whether the objective fell."""
        direction = self._direction(ridge, force)
        slope, before, size = (
            float(force @ direction),
            self._objective(ridge, self.nu, self.at.potential),
            1.0,
        )
        self.steps += 1
        while size > 1e-6:
            point = self.nu + size * direction
            at = self.passes.table(point)
            reached = self._objective(ridge, point, at.potential)
            allowed = self.schedule.sufficient * size * slope
            if reached <= before + allowed + 1e-14 * abs(before):
                self.nu, self.at = point, at
                return True
            size /= 2
        return False

    def _objective(self, ridge: float, nu: Vector, potential: float) -> float:
        moved = nu - self.centre
        return float(0.5 * ridge * (self.variances * moved) @ moved + potential - self.z @ nu)

    def _direction(self, ridge: float, force: Vector) -> Vector:
        """The Newton direction, by conjugate gradients."""
        kept = ridge * self.variances
        inverse = 1.0 / (kept + self._diagonal())
        x, residual = np.zeros_like(force), -force
        scaled = self._preconditioned(residual, kept, inverse)
        direction, norm = scaled, float(residual @ scaled)
        enough = self.schedule.forcing**2 * norm
        for _ in range(self.schedule.most_gradients):
            if norm <= enough:
                break
            self.gradients += 1
            turned = kept * direction + self.passes.change(self.nu, direction)
            size = norm / float(direction @ turned)
            x = x + size * direction
            residual = residual - size * turned
            scaled = self._preconditioned(residual, kept, inverse)
            last, norm = norm, float(residual @ scaled)
            direction = scaled + (norm / last) * direction
        return x

    def _diagonal(self) -> Vector:
        """The diagonal of the Hessian but for the ridge; an exponential is its own derivative."""
        if self.passes.link.name == "exponential":
            return self.at.margins
        return self.passes.slope(self.nu)

    def _preconditioned(self, residual: Vector, kept: Vector, inverse: Vector) -> Vector:
        """Exact on what no table can answer, by the diagonal on the rest."""
        lost = self.null.part(residual)
        rest = inverse * (residual - lost)
        answer = rest - self.null.part(rest)
        return answer + self.null.part(lost / kept) if kept.any() else answer
