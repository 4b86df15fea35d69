r"""Minimum-norm least squares (Method A of Langsrud 2019b)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.design.base import Design
from discreet.design.incidence import Restrictor
from discreet.design.product import LARGEST_DENSE
from discreet.progress import report
from discreet.solve.fit import Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import check_options
from discreet.solve.least_squares.anova import pseudo_inverse
from discreet.solve.least_squares.certificate import certify_least_squares
from discreet.solve.least_squares.conjugate import Operator, preconditioned, solve_on_cells
from discreet.solve.least_squares.dual_fit import suits
from discreet.solve.least_squares.goal import Accuracy
from discreet.solve.least_squares.problem import Prior, Problem, Targets
from discreet.solve.least_squares.structure import Basis, Structure, analyse
from discreet.solve.least_squares.unstored import UnstoredFit

Vector = NDArray[np.float64]

_MARGIN = 0.1  # residuals are brought this far below the tolerance
_NEVER_STORED = 50_000  # inner cells from which passes that store nothing beat gathered cells


@dataclass(frozen=True, eq=False)
class LeastSquares(FitterBase):
    r"""The least squares fit of smallest norm.

    .. math:: \hat y = \arg\min_y \sum_k w_k (x_k^\top y - z_k)^2, \quad
              \text{of these the one with the smallest } \sum_i \frac{(y_i - s_i)^2}{q_i}

    With `s = 0` and `q = 1` this is :math:`\hat y = (X^\top)^+ z`, the generalised inverse. With a
    starting table it is linear calibration.

    Promise: published cells that add up are met exactly; the result is unique and linear in `z`;
    inner cells may be negative. Certified by the normal equations and by :math:`y = s + qX\nu`.

    Cost: on complete designs with flat variables, or with every combination of levels published,
    a few passes over the inner cells. On large tables with structural zeros, and on those too large
    to store, some hundred passes that store nothing of the table's size. Otherwise conjugate
    gradients, one pass there and one back for each step.

    Args:
      tolerance: Largest deviation of a published cell from what the normal equations demand, in
        counts.
      max_steps: Conjugate gradient steps after which the fit gives up.
      start: Starting table `s`, one value per inner cell; zeros by default.
      variance: How far each cell may move, `q`; the starting table where there is one, else ones.
        Cells with variance zero keep their starting value.
      count: What one count is in the units of the data.

    See Langsrud (2019b), Deville & Särndal (1992).
    """

    tolerance: float = 1e-6
    max_steps: int = 20_000
    start: ArrayLike | None = None
    variance: ArrayLike | None = None
    count: float = 1.0

    def __post_init__(self) -> None:
        check_options(self.tolerance, self.max_steps, self.count)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "least-squares"

    def prepare(self, design: Design) -> Prepared:
        """Find the structure of the design once for many right-hand sides."""
        prior = Prior.of(design, self.start, self.variance)
        return partial(_fit, self, analyse(design), Restrictor(design), prior)


def _fit(
    options: LeastSquares,
    structure: Structure,
    restrict: Restrictor,
    prior: Prior,
    z: NDArray[Any],
    *,
    weights: NDArray[Any] | None = None,
) -> Fit:
    began, accuracy = time.perf_counter(), Accuracy(options.tolerance, options.count)
    if prior.is_plain and (unstored := _unstored(structure, z, weights, accuracy)) is not None:
        return unstored
    problem = Problem.of(structure.design, z, weights, prior, accuracy)
    y, row_space, steps, how = nearest_solution(problem, structure, restrict, options.max_steps)
    certificate = certify_least_squares(problem, y, row_space)
    status = _status(certificate.holds, steps, options.max_steps)
    notes = {"structure": structure.kind.value, "solver": how}
    y = problem.complete(y)
    seconds = time.perf_counter() - began
    return Fit(
        y,
        structure.design.aggregate(y),
        status,
        certificate,
        steps,
        seconds,
        notes,
        structure.design,
    )


def _unstored(
    structure: Structure, z: NDArray[Any], weights: NDArray[Any] | None, accuracy: Accuracy
) -> Fit | None:
    """The fit by fused passes, where there is no closed form: large tables with zeros, or huge."""
    design = structure.design
    if design.n_inner < (LARGEST_DENSE if design.is_complete else _NEVER_STORED):
        return None
    targets = Targets.of(design, z, weights, np.zeros(0, dtype=np.int64))
    if not suits(design, targets.weights):
        return None
    return UnstoredFit.of(design, "linear", targets, accuracy)()


def _status(holds: bool, steps: int, max_steps: int) -> Status:
    if holds:
        return Status.converged
    return Status.max_steps if steps >= max_steps else Status.stalled


def nearest_solution(
    problem: Problem, structure: Structure, restrict: Restrictor, max_steps: int
) -> tuple[Vector, Vector, int, str]:
    """The fit, its row space form for the certificate, the steps taken, and how it was found."""
    basis = structure.basis(problem.weights) if problem.prior.is_plain else None
    if basis is not None and structure.is_exact_for(problem.weights):
        y = _in_closed_form(problem, basis.function(pseudo_inverse))
        return y, row_space_part(basis, y), 0, "closed form"
    if basis is not None and (problem.weights > 0).all():
        y, steps = _by_preconditioning(problem, basis.function(pseudo_inverse), max_steps)
        return y, row_space_part(basis, y), steps, "preconditioned conjugate gradients"
    found = _by_completion(problem, structure, max_steps)
    if found is not None:
        return found[0], found[0], found[1], "preconditioned by the complete table"
    cells = np.flatnonzero(problem.prior.movable(problem.design.n_inner))
    dual = np.zeros(problem.design.n_published)
    y, steps = _on_support(problem, restrict, cells, dual, max_steps)
    row_space = problem.prior.moved(problem.design.adjoint(dual))
    return y, row_space, steps, "conjugate gradients"


def _in_closed_form(problem: Problem, inverse: Operator) -> Vector:
    """The pseudo-inverse applied, and once more to what rounding errors left over."""
    y = inverse(problem.pull)
    left = problem.design.adjoint(problem.misfit(problem.design.aggregate(y)))
    if (np.abs(left) > _MARGIN * problem.goal.gradient).any():
        y += inverse(left)
    return y


def _on_support(
    problem: Problem,
    restrict: Restrictor,
    cells: NDArray[np.int64],
    dual: Vector,
    max_steps: int,
) -> tuple[Vector, int]:
    """The nearest least squares solution in which only some cells move; `dual` is updated."""
    y = np.zeros(problem.design.n_inner)
    if len(cells) == 0:
        return y, 0
    solved = solve_on_cells(
        problem,
        restrict(cells),
        cells,
        dual,
        ridge=0.0,
        limits=_MARGIN * problem.goal.gradient[cells],
        max_steps=max_steps,
    )
    y[cells] = solved.y
    return y, solved.steps


def row_space_part(basis: Basis, y: Vector) -> Vector:
    """The projection of a table on the row space of the design."""
    return basis.function(lambda eigenvalues: (eigenvalues > 0).astype(np.float64))(y)


def _by_preconditioning(problem: Problem, inverse: Operator, max_steps: int) -> tuple[Vector, int]:
    design, weights = problem.design, problem.weights

    def apply(y: Vector) -> Vector:
        product: Vector = design.adjoint(weights * design.aggregate(y))
        return product

    return preconditioned(
        apply,
        problem.pull,
        np.zeros(design.n_inner),
        inverse,
        limits=_MARGIN * problem.goal.gradient,
        max_steps=max_steps,
        watch=lambda step: report("fit", step / (step + 20)),
    )


def _by_completion(
    problem: Problem, structure: Structure, max_steps: int
) -> tuple[Vector, int] | None:
    """Conjugate gradients on chosen cells all of which are published."""
    if not problem.prior.is_plain or structure.completed is None:
        return None
    completion, whole = structure.completed
    basis = whole.basis(completion.problem(problem).weights)
    if basis is None or basis.smallest <= 0 or not structure.sees_every_cell(problem.weights):
        return None
    inverse = basis.function(pseudo_inverse)

    def on_chosen(r: Vector) -> Vector:
        return inverse(completion.embedded(r))[completion.inner]

    return _by_preconditioning(problem, on_chosen, max_steps)
