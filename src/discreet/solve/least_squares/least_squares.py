"""Minimum-norm least squares (Method A of Langsrud 2019b)."""

from __future__ import annotations

import enum
import itertools
import math
import time
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Array, Real
from discreet.design.base import Design
from discreet.design.incidence import Incidence
from discreet.design.product import ProductDesign
from discreet.design.support import LARGEST_DENSE, Embedding
from discreet.progress import report
from discreet.solve.fit import Fit, FitterBase, Prepared, Status, check_options
from discreet.solve.least_squares.basis import (
    Basis,
    Effects,
    Operator,
    crossing_basis,
    is_crossing,
    pseudo_inverse,
)
from discreet.solve.least_squares.conjugate import conjugate_gradients, solve_on_cells
from discreet.solve.least_squares.dense import DenseFactors, is_small
from discreet.solve.least_squares.dual_fit import NEVER_STORED, UnstoredFit, suits_dual_fit
from discreet.solve.least_squares.problem import (
    Accuracy,
    LeastSquaresProblem,
    Prior,
    Targets,
    block_means,
    certify_least_squares,
)

# Share of the inner cells up to which published ones are few enough for passes that store nothing;
# with more, their vectors are long and their systems hard.
FEW_PUBLISHED = 0.125
# Share of the full crossing that chosen cells must be for its basis to help.
_CHOSEN = 0.25
# Part of what a certificate allows that a fit may leave.
_SAFELY = 0.1
# Counts beyond which rounding errors of a fit, some 10⁻¹³ of them, are fitted once more.
_REFINED = 1e10
# How small tables are fitted.
_DENSE = "dense factors"


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
    a few passes over the inner cells. On large tables with structural zeros or a starting table,
    and on those too large to store, some hundred passes that store nothing else of the table's
    size. Small tables, up to a million inner times published cells, take a dense factor that is
    right at any weight. Otherwise conjugate gradients, one pass there and one back for each step.

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

    name = "least-squares"
    tolerance: float = 1e-6
    max_steps: int = 20_000
    start: ArrayLike | None = None
    variance: ArrayLike | None = None
    count: float = 1.0

    def __post_init__(self) -> None:
        check_options(self.tolerance, self.max_steps, self.count)

    def prepare(self, design: Design) -> Prepared:
        """Find the structure of the design once for many right-hand sides."""
        prior = Prior.of(design, self.start, self.variance)
        return partial(_fit, self, analyse(design), prior)


def _fit(
    options: LeastSquares,
    structure: Structure,
    prior: Prior,
    z: Array,
    *,
    weights: Array | None = None,
) -> Fit:
    began, accuracy = time.perf_counter(), Accuracy(options.tolerance, options.count)
    if (unstored := _fit_unstored(structure, prior, z, weights, accuracy)) is not None:
        return unstored
    design = structure.design
    problem = LeastSquaresProblem.of(design, z, weights, prior, accuracy)
    y, row_space, steps, how = nearest_solution(problem, structure, options.max_steps)
    if prior.is_plain and np.abs(problem.z).max(initial=0.0) > _REFINED * options.count:
        # A fit is linear in its targets: what rounding errors left is fitted once more.
        rest = problem.with_targets(
            np.where(problem.weights > 0, problem.z - design.aggregate(y), 0.0)
        )
        more, more_row_space, again, _ = nearest_solution(rest, structure, options.max_steps)
        y, row_space, steps = y + more, row_space + more_row_space, max(steps, again)
    if how == _DENSE:
        certificate = structure.dense(problem).certify(problem.z, y)
    else:
        certificate = certify_least_squares(problem, y, row_space)
    if not certificate.holds and problem.serves_worse(y):
        y = problem.prior.starts(np.arange(design.n_inner))
        certificate = certify_least_squares(problem, y, y)
    status = Status.max_steps if steps >= options.max_steps else Status.stalled
    status = Status.converged if certificate.holds else status
    notes = {"structure": structure.kind.value, "solver": how}
    y = problem.complete(y)
    fitted, seconds = design.aggregate(y), time.perf_counter() - began
    return Fit(y, fitted, status, certificate, steps, seconds, notes, design)


def _fit_unstored(
    structure: Structure, prior: Prior, z: Array, weights: Array | None, accuracy: Accuracy
) -> Fit | None:
    """The fit by fused passes, where there is no closed form.

    That is so for large tables with zeros or a starting table, and for those too large to store.
    """
    design = structure.design
    has_closed_form = prior.is_plain and design.is_complete
    is_large = design.n_inner >= NEVER_STORED and not has_closed_form
    are_few = design.n_published <= FEW_PUBLISHED * design.n_inner
    if not (is_large and are_few) and design.n_inner < LARGEST_DENSE:
        return None
    targets = Targets.from_values(design, z, weights, np.zeros(0, dtype=np.int64))
    if not suits_dual_fit(design, targets.weights):
        return None
    fit = UnstoredFit(design, "linear", targets, accuracy, prior).run()
    if fit is not None:
        fit.notes["structure"] = structure.kind.value
    return fit


def nearest_solution(
    problem: LeastSquaresProblem, structure: Structure, max_steps: int
) -> tuple[Real, Real, int, str]:
    """The fit, its row space form for the certificate, the steps taken, and how it was found."""
    basis = structure.basis(problem.weights) if problem.prior.is_plain else None
    is_exact = structure.is_exact_for(problem.weights)
    if is_small(problem) and not (is_exact and basis is not None):
        y = structure.dense(problem).fit(problem.z)
        return y, y, 1, _DENSE
    # Where published cells are left out the row space is a smaller one than that of the basis, and
    # what the basis finds would not be the fit of smallest norm.
    if basis is not None and (is_exact or (problem.weights > 0).all()):
        y, steps = _refine(problem, basis.function(pseudo_inverse), max_steps)
        how = "closed form" if is_exact else "preconditioned conjugate gradients"
        if basis.smallest > 0:
            return y, y, steps, how
        onto_row_space = basis.function(lambda eigenvalues: (eigenvalues > 0).astype(np.float64))
        return y, onto_row_space(y), steps, how
    inverse = _inverse_on_chosen_cells(problem, structure)
    if inverse is not None:
        y, steps = _refine(problem, inverse, max_steps)
        return y, y, steps, "preconditioned by the complete table"
    cells = np.flatnonzero(problem.prior.movable(problem.design.n_inner))
    y, dual = np.zeros(problem.design.n_inner), np.zeros(problem.design.n_published)
    solved = solve_on_cells(
        problem,
        Incidence.of(problem.design, cells),
        cells,
        dual,
        ridge=0.0,
        limits=_SAFELY * problem.limits.gradient[cells],
        max_steps=max_steps,
    )
    y[cells] = solved.y
    row_space = problem.prior.table_after(problem.design.adjoint(dual))
    return y, row_space, solved.steps, "conjugate gradients"


def _refine(problem: LeastSquaresProblem, inverse: Operator, max_steps: int) -> tuple[Real, int]:
    """Conjugate gradients from an approximate solution, which a true inverse leaves no work."""
    design, steps = problem.design, itertools.count(1)
    y = inverse(problem.right_hand_side)

    def residual(y: Real) -> Real:
        left: Real = design.adjoint(problem.misfit(design.aggregate(y)))
        return left

    def apply(y: Real) -> Real:
        report("fit", 1.0 - 20.0 / (20.0 + next(steps)))
        product: Real = design.adjoint(problem.weights * design.aggregate(y))
        return product

    limits = _SAFELY * problem.limits.gradient
    return y, conjugate_gradients(residual, apply, inverse, y, limits, max_steps)


def _inverse_on_chosen_cells(problem: LeastSquaresProblem, structure: Structure) -> Operator | None:
    """The inverse for the full crossing, on chosen cells all of which are published."""
    if not problem.prior.is_plain or structure.completion is None:
        return None
    embedding, whole = structure.completion
    basis = whole.basis(problem.on_full_crossing(embedding).weights)
    if basis is None or basis.smallest <= 0:
        return None
    if not publishes_every_cell(problem.design, problem.weights):
        return None
    inverse = basis.function(pseudo_inverse)
    return lambda r: inverse(embedding.to_public_support(r))[embedding.inner]


class Kind(enum.Enum):
    """The structure of a design; the value says what it is good for."""

    anova = "complete, levels of equal groups: solved by axis means"
    crossing = "complete, every combination of levels published: solved axis by axis"
    complete = "complete, other levels: conjugate gradients on index arrays"
    sparse = "chosen inner cells: conjugate gradients on index arrays"
    general = "a general matrix: conjugate gradients on its rows"


@dataclass(frozen=True, eq=False)
class Structure:
    r"""A design with what is known about it, found once for many right-hand sides.

    Fits need functions of :math:`XWX^\top`. On complete designs these are cheap in a basis that
    follows the axes; which one there is depends on the levels that are published.

    Effects are its analysis of variance, where it has one.
    """

    design: Design
    kind: Kind
    effects: Effects | None = None
    _bases: dict[bytes, Basis | None] = field(default_factory=dict, repr=False)
    _dense: dict[bytes, DenseFactors] = field(default_factory=dict, repr=False)

    def basis(self, weights: Real) -> Basis | None:
        r"""The basis for :math:`XWX^\top`; where weights vary within blocks, for their means."""
        product = self.design.product_form
        if product is None or self.kind is Kind.complete:
            return None
        of_block = block_means(product, weights)
        key = of_block.tobytes()
        if key not in self._bases:
            # One basis may be as large as the table, so only the last is kept: replicates share it.
            self._bases.clear()
            effects = self.effects
            self._bases[key] = (
                effects.basis(of_block) if effects else crossing_basis(product, of_block)
            )
        return self._bases[key]

    def dense(self, problem: LeastSquaresProblem) -> DenseFactors:
        """Dense factors of a problem; the last ones are kept, for replicates share them."""
        variance = problem.prior.variance
        key = problem.weights.tobytes() + (b"" if variance is None else variance.tobytes())
        if key not in self._dense:
            self._dense.clear()
            self._dense[key] = DenseFactors(problem)
        return self._dense[key]

    def is_exact_for(self, weights: Real) -> bool:
        r"""Whether the basis diagonalises :math:`XWX^\top` itself; blocks have one weight then."""
        basis, design = self.basis(weights), self.design.over_variables
        if basis is None or design is None or not basis.is_exact:
            return False
        return bool((weights == weights[design.offsets[:-1]][design.block_of_cell()]).all())

    @cached_property
    def completion(self) -> tuple[Embedding[ProductDesign], Structure] | None:
        """The full crossing around chosen cells that are a good part of it, and its structure.

        Structural zeros leave most of a table in place, and held against the basis of the full
        crossing they are only bounds.
        """
        design = self.design.over_variables
        if design is None or design.product_form is not None:
            return None
        n = math.prod(design.shape)
        if n > LARGEST_DENSE or design.n_inner < _CHOSEN * n:
            return None
        embedding = design.crossing_with_inner()
        return embedding, analyse(embedding.design)


def publishes_every_cell(design: Design, weights: Real) -> bool:
    """Whether every inner cell is published by itself and used, so that a fit is unique."""
    single = (design.column_sizes == 1) & (weights > 0)
    # Most tables have too few such cells, and it takes no pass over a large table to see that.
    if np.count_nonzero(single) < design.n_inner:
        return False
    return bool((design.adjoint(single.astype(np.float64)) > 0).all())


def analyse(design: Design) -> Structure:
    """Find the structure of a design.

    Cost: a few operations for each block and level; nothing that grows with the inner cells.
    """
    product = design.product_form
    if product is None:
        return Structure(design, Kind.sparse if design.axes else Kind.general)
    if design.n_inner > LARGEST_DENSE:
        return Structure(design, Kind.complete)
    effects = Effects.of(product)
    if effects is not None:
        return Structure(design, Kind.anova, effects)
    return Structure(design, Kind.crossing if is_crossing(product) else Kind.complete)
