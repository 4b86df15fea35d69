r"""Non-negative least squares by splitting, where :math:`XWX^\top + \rho I` is solved directly.

The alternating direction method keeps two copies of the inner table, one that fits and one that is
not negative, and draws them together (Boyd et al. 2011):

.. math:: y \leftarrow (XWX^\top + \rho I)^{-1}(XWz + \rho(x - v)), \quad
          x \leftarrow \max(0, y + v), \quad v \leftarrow v + y - x.

When every inner cell is published the fit is unique and the method converges linearly at a rate
that does not depend on the size of the table. Support that is not complete is only another bound:
cells outside it are held at zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.progress import report
from discreet.solve.continuous.conjugate import preconditioned
from discreet.solve.continuous.problem import Problem
from discreet.solve.continuous.structure import Basis

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]

_RELAXATION = 1.7
_CHECK_EVERY = 10
_IMBALANCE = 1.5  # factor by which the penalty must be off before it is changed
_LARGEST_CHANGE = 5.0
_TINY = 1e-300
_INNER_STEPS = 50
_INNER_GAIN = 0.1


@dataclass(eq=False)
class Splitting:
    """The state of the method.

    Attributes:
      problem: Targets and weights; replaced by `meet` when margins are exact.
      basis: In which the sums of squares are diagonal, exactly or for a preconditioner.
      is_exact: Whether they are exactly.
      support: Cells that may differ from zero.
      x: The copy that is not negative.
      fitted: Its published cells.
      steps: Rounds taken.
    """

    problem: Problem
    basis: Basis
    is_exact: bool
    support: Marks | None = None

    def __post_init__(self) -> None:
        n = self.problem.design.n_inner
        self.x, self.y, self._v = np.zeros(n), np.zeros(n), np.zeros(n)
        self.fitted = np.zeros(self.problem.design.n_published)
        curvature = float(self.problem.design.adjoint(self.problem.weights).mean())
        self.penalty = math.sqrt(self.basis.smallest * curvature)
        self.steps = 0
        self.aim(self.problem)
        self._factorise()

    def aim(self, problem: Problem) -> None:
        """Take other targets."""
        self.problem, self._pull = problem, problem.pull

    def run(
        self, tolerance: float, max_steps: int, meet: Callable[[Vector], bool] | None = None
    ) -> bool:
        """Go on until the projected gradient is small; returns whether it is.

        Args:
          tolerance: Projected gradient to reach, relative to the problem's scale.
          max_steps: Rounds after which to give up.
          meet: Given the published cells of the fitting copy, may replace `problem` to bring
            exact margins closer; says whether they are met.
        """
        while self.steps < max_steps:
            before = self.x
            self._round()
            is_met = True if meet is None else meet(self.problem.design.aggregate(self.y))
            if self.steps % _CHECK_EVERY == 0:
                self.fitted = self.problem.design.aggregate(self.x)
                reached = self._gradient()
                if reached <= tolerance and is_met:
                    return True
                report("fit", math.log(max(reached, tolerance)) / math.log(tolerance))
                self._balance(before)
        return False

    def _factorise(self) -> None:
        rho = self.penalty
        self._inverse = self.basis.function(lambda eigenvalue: 1.0 / (eigenvalue + rho))

    def _round(self) -> None:
        self.y = self._fitting(self._pull + self.penalty * (self.x - self._v))
        relaxed = _RELAXATION * self.y + (1.0 - _RELAXATION) * self.x
        self.x = np.maximum(relaxed + self._v, 0.0)
        if self.support is not None:
            self.x[~self.support] = 0.0
        self._v += relaxed - self.x
        self.steps += 1

    def _fitting(self, rhs: Vector) -> Vector:
        if self.is_exact:
            return self._inverse(rhs)
        design, weights, rho = self.problem.design, self.problem.weights, self.penalty

        def apply(y: Vector) -> Vector:
            product: Vector = design.adjoint(weights * design.aggregate(y)) + rho * y
            return product

        start = np.abs(rhs - apply(self.y)).max()
        y, _ = preconditioned(
            apply, rhs, self.y, self._inverse, tolerance=_INNER_GAIN * start, max_steps=_INNER_STEPS
        )
        return y

    def _gradient(self) -> float:
        """Largest entry of the projected gradient at x, relative to the scale."""
        g = self.problem.design.adjoint(-self.problem.misfit(self.fitted))
        projected = np.where(self.x > 0, np.abs(g), np.maximum(-g, 0.0))
        if self.support is not None:
            projected = projected[self.support]
        return float(projected.max(initial=0.0)) / self.problem.scale

    def _balance(self, before: Vector) -> None:
        """Change the penalty when one relative residual is much larger than the other."""
        apart = _norm(self.y - self.x) / max(_norm(self.y), _norm(self.x), _TINY)
        moved = _norm(self.x - before) / max(_norm(self._v), _TINY)
        factor = math.sqrt(max(apart, _TINY) / max(moved, _TINY))
        if 1 / _IMBALANCE < factor < _IMBALANCE:
            return
        factor = min(max(factor, 1 / _LARGEST_CHANGE), _LARGEST_CHANGE)
        self.penalty *= factor
        self._v /= factor
        self._factorise()


def _norm(values: Vector) -> float:
    return float(np.linalg.norm(values))
