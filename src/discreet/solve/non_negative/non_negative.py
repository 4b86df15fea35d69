r"""Non-negative least squares, ridge and exact margins (Methods B and C of Langsrud 2019b)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.design.base import Design
from discreet.design.fused.devices import check_device, on_processor, require_gpu
from discreet.design.incidence import Restrictor
from discreet.design.product import ProductDesign
from discreet.errors import ParameterError
from discreet.solve.fit import Certificate, Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import check_options
from discreet.solve.least_squares.basis import pseudo_inverse
from discreet.solve.least_squares.certificate import certify_non_negative
from discreet.solve.least_squares.dual_fit import UnstoredFit, suits
from discreet.solve.least_squares.goal import Accuracy
from discreet.solve.least_squares.least_squares import nearest_solution
from discreet.solve.least_squares.problem import (
    Exact,
    Prior,
    Problem,
    Targets,
    frozen_margins,
    positions_of,
)
from discreet.solve.least_squares.structure import Kind, Structure, analyse
from discreet.solve.non_negative.active_set import RidgePath, typical_curvature
from discreet.solve.non_negative.bounded import BoundedFit, exact_zeros
from discreet.solve.non_negative.deflation import Deflation
from discreet.solve.non_negative.infeasibility import is_infeasible
from discreet.solve.non_negative.multipliers import MultiplierFit
from discreet.solve.non_negative.stiff import StiffMargins

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class NonNegativeSchedule:
    """When which method is used, and the constants of corrections.

    Attributes:
      never_stored: Inner cells from which passes that store nothing beat gathered cells.
      large: Inner cells from which other methods beat active sets.
      starts: Shares of the first ridge from which steps within bounds start: the next one where
        the norm of what they led to is not proven to be small enough.
      light: Weight of an exact margin, times that of others, in steps within bounds: a light one
        keeps the equations easy, and shifts do the rest.
      working: The same in active sets, where each shift costs a solve.
      raised: By how much that is raised where shifts do not help.
      heaviest: Up to which.
      heaviest_deflated: The same for margins that are taken out of the equations.
      shift_below: Share of the first ridge below which exact margins are shifted.
      gain: Share of what was reached that is a gain.
      most_in_vain: Corrections without one before giving up.
      patience: Such corrections before solves become tighter.
      sharper: By how much they do.
      sharpest: How far.
      far: Times the tolerance: what makes taking margins out of the equations worth it.
      ease: Share of what a certificate falls short by which solves may be off meanwhile.
      most_deflated: Margins taken out of the equations at most; more would make their dense part
        too large.
      rounding: Share of the largest cell below which a negative one is a rounding error.
    """

    never_stored: int = 50_000
    large: float = 20_000
    starts: tuple[float, ...] = (0.01, 0.001, 0.0001)
    light: float = 0.2
    working: float = 5.0
    raised: float = 3.0
    heaviest: float = 500.0
    heaviest_deflated: float = 1e4
    shift_below: float = 0.1
    gain: float = 0.9
    most_in_vain: int = 50
    patience: int = 5
    sharper: float = 0.3
    sharpest: float = 1e-3
    far: float = 1e3
    ease: float = 0.1
    most_deflated: int = 5_000
    rounding: float = 1e-12


SCHEDULE = NonNegativeSchedule()


@dataclass(frozen=True, eq=False)
class NonNegative(FitterBase):
    r"""The least squares fit with no negative cell, of these the one of smallest norm.

    .. math:: \hat y = \arg\min_{y \ge 0} \sum_k w_k (x_k^\top y - z_k)^2
              + \lambda^2 \sum_i \frac{(y_i - s_i)^2}{q_i}
              \quad\text{subject to}\quad x_k^\top y = z_k \text{ for the exact margins}

    By default :math:`\lambda \to 0`: the ridge only chooses among tables that fit equally well.

    Promise: no published cell deviates from what the optimum demands by more than `tolerance`
    counts, or more where it is noisier than those beside it (`Goal` has the formula). Exact margins
    are met to `tolerance` counts, or 1e-12 of their size. How large other cells or weights are does
    not matter. The choice of smallest norm is proven to a hundred times that by a vector
    :math:`\nu` in the notes with :math:`y = \max(0, s + qX\nu)`; from 20,000 inner cells on another
    one proves that the norm exceeds the smallest by 5 % at most. Margins that weigh thirty
    times as much as others, such as those by which exact margins are sometimes approximated, are
    held like exact ones, by forces in the notes; their targets are shifted or, where cells at zero
    answer to large forces alone, they are taken out of the equations. Beside exact margins that
    they grossly contradict that may end as `stalled`. Exact margins that no table can have are
    `infeasible` when that is proven, else `stalled`.

    Cost: conjugate gradients on the cells that are positive, some ten thousand cheap steps for half
    a million inner cells, and three times as many with exact margins. Where every inner cell is
    published in a design that is complete or nearly so, some three hundred axis transforms.
    Complete tables of more than 50,000 cells of which more are positive than published are fitted
    to margins by Newton's method on the dual: some hundred passes that store nothing of the table's
    size.

    Args:
      ridge: The factor :math:`\lambda`; `None` for the limit zero.
      exact: Margins that must be met: a formula, or a list of margins by name (`"1"` is the total),
        or of published positions.
      tolerance: Deviation of a published cell to reach, in counts.
      max_steps: Steps after which the fit gives up.
      start: Starting table `s`, one value per inner cell; zeros by default.
      variance: How far each cell may move, `q`; the starting table where there is one, else ones.
        Cells with variance zero keep their starting value.
      count: What one count is in the units of the data.
      device: Where large complete tables are computed: `"cpu"`, `"gpu"` (an NVIDIA card, with the
        extra `[gpu]`), or `"auto"` for the card where there is one. A fit that was asked to use
        a card and did not says why in its notes.

    See Langsrud (2019b); Hintermüller, Ito & Kunisch (2003); Dostál (2009).
    """

    ridge: float | None = None
    exact: Exact = field(default=())
    tolerance: float = 1e-3
    max_steps: int = 1_000_000
    start: ArrayLike | None = None
    variance: ArrayLike | None = None
    count: float = 1.0
    device: str = "auto"

    def __post_init__(self) -> None:
        check_options(self.tolerance, self.max_steps, self.count)
        check_device(self.device)
        if self.ridge is not None and not (np.isfinite(self.ridge) and self.ridge > 0):
            raise ParameterError(
                f"ridge must be positive, or None for its limit, got {self.ridge}."
            )
        object.__setattr__(self, "exact", frozen_margins(self.exact))

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "non-negative"

    def prepare(self, design: Design) -> Prepared:
        """Find the structure of the design once for many right-hand sides."""
        if self.device == "gpu":
            require_gpu()
        return partial(_fit, _Prepared.of(self, design))


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The options with what depends on the design alone."""

    options: NonNegative
    structure: Structure
    restrict: Restrictor
    prior: Prior
    exact: NDArray[np.int64]

    @classmethod
    def of(cls, options: NonNegative, design: Design) -> _Prepared:
        prior = Prior.of(design, options.start, options.variance)
        exact = positions_of(design, options.exact)
        return cls(options, analyse(design), Restrictor(design), prior, exact)

    @property
    def working_weight(self) -> float:
        """What an exact margin weighs; full crossings need equal weights to stay a product."""
        completed = self.structure.completed
        whole = self.structure if completed is None else completed[1]
        return 1.0 if whole.kind is Kind.crossing else SCHEDULE.working

    @property
    def penalty(self) -> float:
        """The factor of half the squared norm in half the objective."""
        return 0.0 if self.options.ridge is None else self.options.ridge**2


@dataclass(frozen=True, eq=False)
class _Answer:
    """What a solver returns.

    Attributes:
      y: Inner cells.
      multipliers: Forces on the exact and heavy margins.
      dual: The vector that proves the choice of smallest norm; absent where the fit is unique.
      steps: Steps taken.
      solver: How it was found.
      norm_dual: A vector that bounds the smallest norm instead, see `smallest_norm`.
    """

    y: Vector
    multipliers: Vector
    dual: Vector | None
    steps: int
    solver: str
    norm_dual: Vector | None = None


def _fit(prepared: _Prepared, z: NDArray[Any], *, weights: NDArray[Any] | None = None) -> Fit:
    began = time.perf_counter()
    options, design = prepared.options, prepared.structure.design
    accuracy = Accuracy(options.tolerance, options.count)
    unstored = _by_dual(prepared, z, weights, accuracy)
    if isinstance(unstored, Fit):
        return unstored
    problem = Problem.of(design, z, weights, prepared.prior, accuracy, prepared.exact)
    stiff = StiffMargins(problem, prepared.working_weight, partial(_projected, prepared))
    answer = (
        _closed_form(prepared, stiff)
        or _without_bounds(prepared, stiff)
        or _by_multipliers(prepared, stiff)
        or _by_bounded_steps(prepared, problem)
    )
    if answer is None or not _certificate(prepared, stiff, answer).holds:
        answer = _by_active_sets(prepared, stiff)
    certificate = _certificate(prepared, stiff, answer)
    status = _status(prepared, stiff, certificate, answer)
    notes = {
        "structure": prepared.structure.kind.value,
        "solver": answer.solver,
        "device": on_processor(options.device, unstored),
        "dual": answer.dual,
        "norm_dual": answer.norm_dual,
        "held": problem.held,
        "multipliers": answer.multipliers,
    }
    y, seconds = problem.complete(answer.y), time.perf_counter() - began
    return Fit(y, design.aggregate(y), status, certificate, answer.steps, seconds, notes, design)


def _projected(prepared: _Prepared, problem: Problem) -> Vector:
    """Published cells of the fit without bounds."""
    y, *_ = nearest_solution(
        problem, prepared.structure, prepared.restrict, prepared.options.max_steps
    )
    fitted: Vector = problem.design.aggregate(y)
    return fitted


def _certificate(prepared: _Prepared, stiff: StiffMargins, answer: _Answer) -> Certificate:
    return certify_non_negative(
        stiff.given,
        answer.y,
        answer.multipliers,
        dual=answer.dual,
        ridge=prepared.penalty,
        norm_dual=answer.norm_dual,
    )


def _closed_form(prepared: _Prepared, stiff: StiffMargins) -> _Answer | None:
    """The fit without bounds, when it happens to be non-negative."""
    problem, structure = stiff.problem, prepared.structure
    if problem.design.n_inner == 0:
        y = np.zeros(0)
        multipliers = stiff.multipliers(problem.design.aggregate(y))
        return _Answer(y, multipliers, None, 0, "nothing to fit")
    basis = structure.basis(problem.weights) if problem.prior.is_plain and not stiff else None
    if basis is None or not structure.is_exact_for(problem.weights):
        return None
    penalty = prepared.penalty
    inverse = basis.function(lambda eigenvalues: pseudo_inverse(eigenvalues + penalty))
    y = inverse(problem.right_hand_side)
    if y.min(initial=0.0) < -SCHEDULE.rounding * np.abs(y).max(initial=0.0):
        return None
    y = np.maximum(y, 0.0)
    dual = None if penalty else problem.weights * problem.design.aggregate(inverse(y))
    return _Answer(y, np.zeros(0), dual, 0, "closed form")


def _without_bounds(prepared: _Prepared, stiff: StiffMargins) -> _Answer | None:
    """The fit without bounds by other means, when it is the only one and non-negative."""
    problem, structure = stiff.problem, prepared.structure
    is_plain = problem.prior.is_plain and not stiff and not prepared.penalty
    is_small = problem.design.n_inner < SCHEDULE.large
    if not is_plain or not is_small or not structure.sees_every_cell(problem.weights):
        return None
    y, _, steps, solver = nearest_solution(
        problem, structure, prepared.restrict, prepared.options.max_steps
    )
    if y.min(initial=0.0) < 0:
        return None
    return _Answer(y, np.zeros(0), None, steps, f"{solver}, without bounds")


def _by_dual(
    prepared: _Prepared, z: NDArray[Any], weights: NDArray[Any] | None, accuracy: Accuracy
) -> Fit | str:
    """Newton's method on the dual, for large complete tables of which margins are published.

    Else the reason why the cells are stored.
    """
    design, least = prepared.structure.design, SCHEDULE.never_stored
    if design.n_inner < least:
        return f"the table has {design.n_inner:,} inner cells, fewer than {least:,}"
    targets = Targets.checked(design, z, weights, prepared.exact)
    if not suits(design, targets.weights):
        return "its margins, zeros or weights are not such that cells need not be stored"
    penalty, device = prepared.penalty, prepared.options.device
    fit = UnstoredFit.of(design, "positive", targets, accuracy, penalty, prepared.prior, device)()
    if fit is None:
        return "Newton's method on the dual did not arrive"
    fit.notes["structure"] = prepared.structure.kind.value
    return fit


def _by_multipliers(prepared: _Prepared, stiff: StiffMargins) -> _Answer | None:
    """Through multipliers of the bounds, for large tables that publish every inner cell."""
    problem, options = stiff.problem, prepared.options
    if not problem.prior.is_plain or prepared.penalty or problem.design.n_inner < SCHEDULE.large:
        return None
    completion, whole = prepared.structure.completed or (None, prepared.structure)
    full = problem if completion is None else problem.lifted(completion)
    basis = whole.basis(full.weights) if whole.is_exact_for(full.weights) else None
    if basis is None or basis.smallest <= 0 or not isinstance(full.design, ProductDesign):
        return None
    is_seen = prepared.structure.sees_every_cell(problem.weights)
    if not is_seen or exact_zeros(stiff.given)[1].any():
        return None
    at = stiff.at if completion is None else completion.published[stiff.at]
    inner = slice(None) if completion is None else completion.inner
    outside = np.ones(full.design.n_inner, dtype=bool)
    outside[inner] = False
    fit = MultiplierFit(full.design, full, basis.inverse(), outside, at, stiff.residual_slack)
    if not fit.run(options.max_steps):
        return None
    y = fit.x[inner]
    multipliers = stiff.held_by(fit.forces, problem.design.aggregate(y))
    return _Answer(y, multipliers, None, fit.steps, "multipliers of the bounds")


def _by_bounded_steps(prepared: _Prepared, problem: Problem) -> _Answer | None:
    """Conjugate gradients within bounds, for large tables; from the fit for some ridge on."""
    if not problem.prior.is_plain or problem.design.n_inner < SCHEDULE.large:
        return None
    stiff = StiffMargins(problem, SCHEDULE.light, partial(_projected, prepared))
    path = _ridge_path(prepared, stiff, exact_zeros(problem)[1])
    for start in SCHEDULE.starts:
        path.aim(stiff.problem)
        shift = (lambda: path.aim(stiff.shift(path.fitted))) if stiff else None
        path.follow(max(start * path.first_ridge, prepared.penalty), shift, exactly=False)
        answer = _within_bounds(prepared, stiff, path)
        if _certificate(prepared, stiff, answer).selection <= prepared.options.tolerance:
            break
    return answer


def _within_bounds(prepared: _Prepared, stiff: StiffMargins, path: RidgePath) -> _Answer:
    """Where steps within bounds lead from the end of a path, whose dual bounds the norm."""
    is_unique = prepared.penalty > 0 or prepared.structure.sees_every_cell(stiff.given.weights)
    norm_dual = None if is_unique else path.problem.misfit(path.fitted) / path.ridge
    fit = BoundedFit(stiff, prepared.restrict, np.maximum(path.y, 0.0), prepared.penalty)
    fit.run(path.max_steps - path.steps)
    path.steps += fit.steps
    solver = "conjugate gradients within bounds"
    return _Answer(fit.y, fit.multipliers, None, path.steps, solver, norm_dual)


def _ridge_path(
    prepared: _Prepared, stiff: StiffMargins, zero: NDArray[np.bool_] | None = None
) -> RidgePath:
    guess, most = _first_guess(prepared, stiff.problem), prepared.options.max_steps
    return RidgePath(stiff.problem, prepared.restrict, guess, most, zero)


def _by_active_sets(prepared: _Prepared, stiff: StiffMargins) -> _Answer:
    """Active sets along a shrinking ridge."""
    path = _ridge_path(prepared, stiff)

    def shift() -> None:
        if path.ridge < SCHEDULE.shift_below * path.first_ridge:
            path.aim(stiff.shift(path.fitted))

    path.follow(prepared.penalty or None, shift if stiff else None)
    return _corrected(prepared, path, stiff)


def _corrected(prepared: _Prepared, path: RidgePath, stiff: StiffMargins) -> _Answer:
    """What the path ends in, corrected until the certificate holds; else the best that was met."""
    best, reached, mark = _answer(prepared, path, stiff), np.inf, np.inf
    tolerance, in_vain = prepared.options.tolerance, 0
    while in_vain < SCHEDULE.most_in_vain:
        answer = _answer(prepared, path, stiff)
        certificate = _certificate(prepared, stiff, answer)
        in_vain += 1
        if certificate.worst < reached:
            best, reached = answer, certificate.worst
        if reached < SCHEDULE.gain * mark:
            mark, in_vain = reached, 0
        if certificate.holds or path.steps >= path.max_steps:
            break
        fits = max(certificate.stationarity, certificate.feasibility) <= tolerance
        if not fits:
            _correct(prepared, path, stiff, certificate)
        if fits or in_vain > SCHEDULE.patience:
            path.share = max(SCHEDULE.sharper * path.share, SCHEDULE.sharpest)
        path.ease = max(1.0, SCHEDULE.ease * certificate.worst / tolerance)
        path.settle(exactly=True)
    return best


def _correct(
    prepared: _Prepared, path: RidgePath, stiff: StiffMargins, certificate: Certificate
) -> None:
    """Undo what the ridge does to the fit, and shift the targets of stiff margins."""
    weight, is_off = stiff.weight, certificate.feasibility > certificate.tolerance
    if path.is_deflated or (is_off and stiff.is_slow(path.fitted)):
        _weigh_more(
            path, stiff, is_far=certificate.feasibility > SCHEDULE.far * certificate.tolerance
        )
    if path.is_deflated and (stiff.weight > weight).any():
        path.begin_afresh()
    elif not prepared.penalty:
        path.correct()
    if stiff:
        path.aim(stiff.shift(path.fitted))


def _weigh_more(path: RidgePath, stiff: StiffMargins, *, is_far: bool) -> None:
    """Raise the weight of stiff margins: by far, where they can be taken out of the equations."""
    heaviest = min(SCHEDULE.heaviest_deflated, path.heaviest / stiff.typical)
    is_worth_it = (
        is_far and heaviest >= SCHEDULE.heaviest and len(stiff.at) <= SCHEDULE.most_deflated
    )
    if is_worth_it and not path.is_deflated:
        path.deflate(Deflation(stiff.problem, stiff.at))
    stiff.weigh_more(
        path.fitted, SCHEDULE.raised, heaviest if path.is_deflated else SCHEDULE.heaviest
    )


def _first_guess(prepared: _Prepared, problem: Problem) -> NDArray[np.bool_]:
    """Cells that are positive in the ridge fit without bounds, or that are pulled up from zero."""
    structure = prepared.structure
    if problem.prior.is_plain and structure.is_exact_for(problem.weights):
        ridge = typical_curvature(problem)
        basis = structure.basis(problem.weights)
        if basis is not None:
            return (
                basis.function(lambda eigenvalues: 1.0 / (eigenvalues + ridge))(
                    problem.right_hand_side
                )
                > 0
            )
    return problem.right_hand_side > 0


def _answer(prepared: _Prepared, path: RidgePath, stiff: StiffMargins) -> _Answer:
    y = np.maximum(path.y, 0.0)
    dual = None if prepared.penalty else path.proof()
    multipliers = stiff.multipliers(path.fitted)
    return _Answer(y, multipliers, dual, path.steps, "active sets along a ridge")


def _status(
    prepared: _Prepared, stiff: StiffMargins, certificate: Certificate, answer: _Answer
) -> Status:
    if certificate.holds:
        return Status.converged
    most, exact = prepared.options.max_steps, prepared.exact
    if len(exact) and is_infeasible(stiff.given, exact, prepared.restrict, most):
        return Status.infeasible
    return Status.max_steps if answer.steps >= most else Status.stalled
