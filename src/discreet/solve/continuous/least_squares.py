"""Least squares with the smallest norm."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.errors import ParameterError
from discreet.progress import report
from discreet.solve.continuous.conjugate import preconditioned
from discreet.solve.continuous.problem import Problem
from discreet.solve.continuous.structure import Structure, analyse
from discreet.solve.fit import Certificate, Fit, Status

Vector = NDArray[np.float64]
_ZERO = 1e-12  # relative size below which an eigenvalue is rounding error


@dataclass(frozen=True)
class LeastSquares:
    r"""The table nearest to the published cells, and among such tables the smallest.

    .. math:: \hat y = (X W X^\top)^+ X W z

    minimises :math:`\sum_k w_k (x_k^\top y - z_k)^2` and has the least :math:`\lVert y \rVert`
    of all minimisers. This is linear calibration with equal weights.

    Promise: the fitted cells add up; additive published cells are met exactly. Inner cells may be
    negative. The certificate is the gradient, relative to the largest entry of :math:`XWz`.
    Cost: a few passes over the inner cells where the design is complete with equal groups or with
    every combination of levels published and weights are constant within blocks; otherwise one
    pass for each step of conjugate gradients.

    Args:
      rtol: Largest entry of the gradient, relative to that of :math:`XWz`.
      max_steps: Most steps of conjugate gradients.

    See Langsrud (2019b), method A.
    """

    name: ClassVar[str] = "least-squares"

    rtol: float = 1e-10
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        if not 0 < self.rtol < 1:
            raise ParameterError(f"rtol must lie in (0, 1), got {self.rtol}.")
        if self.max_steps < 1:
            raise ParameterError(f"max_steps must be at least 1, got {self.max_steps}.")

    def __call__(
        self, design: Design, z: NDArray[Any], *, weights: NDArray[Any] | None = None
    ) -> Fit:
        """Fit the design to the published values."""
        return self.prepare(design)(z, weights=weights)

    def prepare(self, design: Design) -> PreparedLeastSquares:
        """Find the structure of the design once, for many right-hand sides."""
        return PreparedLeastSquares(self, analyse(design))


@dataclass(frozen=True, eq=False)
class PreparedLeastSquares:
    """Least squares on one design."""

    options: LeastSquares
    structure: Structure

    def __call__(self, z: NDArray[Any], *, weights: NDArray[Any] | None = None) -> Fit:
        """Fit one right-hand side."""
        started = time.perf_counter()
        problem = Problem.of(self.structure.design, z, weights)
        if self.structure.is_exact_for(problem.weights):
            y, steps = self._closed_form(problem), 0
        else:
            y, steps = self._iterated(problem)
        fitted = problem.design.aggregate(y)
        gradient = problem.design.adjoint(problem.misfit(fitted))
        certificate = Certificate(
            stationarity=float(np.abs(gradient).max(initial=0.0)) / problem.scale,
            tolerance=self.options.rtol,
        )
        return Fit(
            y,
            fitted,
            Status.converged if certificate.holds else Status.max_steps,
            certificate,
            steps,
            time.perf_counter() - started,
            {"structure": self.structure.kind.value},
        )

    def _closed_form(self, problem: Problem) -> Vector:
        basis = self.structure.basis(problem.weights)
        if basis is None:
            raise ParameterError("this design has no basis of axis means.")
        y: Vector = basis.function(_inverse)(problem.pull)
        return y

    def _iterated(self, problem: Problem) -> tuple[Vector, int]:
        """Conjugate gradients from zero stay in the range of X, so their limit is the smallest."""
        design, w = problem.design, problem.weights

        def normal(y: Vector) -> Vector:
            return design.adjoint(w * design.aggregate(y))

        def watch(step: int) -> None:
            report("least squares", step / self.options.max_steps)

        return preconditioned(
            normal,
            problem.pull,
            np.zeros(design.n_inner),
            lambda r: r,
            tolerance=0.5 * self.options.rtol * problem.scale,
            max_steps=self.options.max_steps,
            watch=watch,
        )


def _inverse(eigenvalues: Vector) -> Vector:
    """Reciprocals, zero for eigenvalues that are zero."""
    largest = eigenvalues.max(initial=0.0)
    positive = eigenvalues > _ZERO * largest
    return np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=positive)
