r"""Additivity by clamping and refitting, the scheme the field uses (Langsrud & Lupp 2021)."""

from __future__ import annotations

import numbers
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.incidence import Restrictor
from discreet.errors import ParameterError
from discreet.progress import report
from discreet.solve.fit import Certificate, Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import check_options
from discreet.solve.least_squares.certificate import certify_least_squares
from discreet.solve.least_squares.goal import Accuracy
from discreet.solve.least_squares.least_squares import nearest_solution
from discreet.solve.least_squares.problem import Prior, Problem
from discreet.solve.least_squares.structure import Structure, analyse

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Additive(FitterBase):
    r"""Least squares, with published cells that come out negative set to zero for good.

    The published cells are projected on the tables that add up. Cells that come out below `limit`
    become zero; every published cell that is zero is then dropped together with all inner cells
    that count in it, and the rest is projected again, until no further cell falls below.

    Promise: published cells add up and are not negative. This is not the non-negative least squares
    fit: a cell once set to zero is never released, zeros in the input become structural as soon as
    one fitted cell is negative, and inner cells may be negative. It is here because published
    figures were made with it; `NonNegative` fits better.

    Cost: one least squares fit for each round; a handful of rounds.

    Args:
      limit: Fitted published cells below it count as zero.
      tolerance: Accuracy of each round, as for `LeastSquares`.
      max_steps: Conjugate gradient steps after which a round gives up.
      count: What one count is in the units of the data.

    See Langsrud & Lupp (2021).
    """

    limit: float = 1e-10
    tolerance: float = 1e-6
    max_steps: int = 20_000
    count: float = 1.0

    def __post_init__(self) -> None:
        check_options(self.tolerance, self.max_steps, self.count)
        if not (isinstance(self.limit, numbers.Real) and 0 < self.limit < 1):
            raise ParameterError(f"limit must lie in (0, 1), got {self.limit!r}.")

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "additive"

    def prepare(self, design: Design) -> Prepared:
        """Find the structure of the design once for many right-hand sides."""
        return partial(_fit, self, analyse(design), Restrictor(design))


@dataclass(frozen=True, eq=False)
class _Round:
    """One projection: its result and the proof that it is one."""

    y: Vector
    fitted: Vector
    certificate: Certificate
    steps: int
    solver: str


def _fit(
    options: Additive,
    structure: Structure,
    restrict: Restrictor,
    z: NDArray[Any],
    *,
    weights: NDArray[Any] | None = None,
) -> Fit:
    began = time.perf_counter()
    accuracy = Accuracy(options.tolerance, options.count)
    problem = Problem.of(structure.design, z, weights, Prior(), accuracy)
    now = _project(options, structure, restrict, problem)
    low, rounds, steps = now.fitted < options.limit, 1, now.steps
    while low.any() and now.certificate.holds:
        report("fit", 1.0 - 1.0 / rounds)
        now = _project(options, structure, restrict, _without(problem, low))
        rounds, steps = rounds + 1, steps + now.steps
        more = low | (now.fitted < options.limit)
        if more.sum() == low.sum():
            break
        low = more
    status = Status.converged if now.certificate.holds else Status.max_steps
    notes: dict[str, Any] = {"structure": structure.kind.value, "solver": now.solver}
    notes |= {"rounds": rounds, "zeros": int(low.sum())}
    seconds = time.perf_counter() - began
    return Fit(now.y, now.fitted, status, now.certificate, steps, seconds, notes, structure.design)


def _project(
    options: Additive, structure: Structure, restrict: Restrictor, problem: Problem
) -> _Round:
    y, row_space, steps, how = nearest_solution(problem, structure, restrict, options.max_steps)
    certificate = certify_least_squares(problem, y, row_space)
    return _Round(y, structure.design.aggregate(y), certificate, steps, how)


def _without(problem: Problem, low: Marks) -> Problem:
    """The problem without zero cells, whether they were set or given, and without their members.

    A cell of weight zero has no given value, but can be set to zero as any other.
    """
    design = problem.design
    zero = low | ((problem.z == 0) & (problem.weights > 0))
    members = design.adjoint(zero.astype(np.float64)) > 0
    return Problem.of(
        design,
        np.where(zero, 0.0, problem.z),
        np.where(zero, 0.0, problem.weights),
        Prior(variance=(~members).astype(np.float64)),
        problem.goal.accuracy,
    )
