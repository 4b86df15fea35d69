r"""Non-negative least squares, ridge and exact margins (Methods B and C of Langsrud 2019b)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Array, Real, Whole
from discreet.design.base import Design
from discreet.design.fused.devices import check_device, on_processor, require_gpu
from discreet.errors import ParameterError
from discreet.solve.fit import Certificate, Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import check_options
from discreet.solve.least_squares.basis import pseudo_inverse
from discreet.solve.least_squares.dual_fit import UnstoredFit, suits_dual_fit
from discreet.solve.least_squares.least_squares import Structure, analyse, nearest_solution
from discreet.solve.least_squares.problem import (
    Accuracy,
    Exact,
    LeastSquaresProblem,
    Prior,
    Targets,
    certify_non_negative,
    frozen_margins,
    positions_of,
)
from discreet.solve.least_squares.schedule import DUAL
from discreet.solve.non_negative.bounded import BoundedFit
from discreet.solve.non_negative.held import HeldMargins
from discreet.solve.non_negative.infeasibility import is_infeasible
from discreet.solve.non_negative.multipliers import MultiplierFit
from discreet.solve.non_negative.ridge_path import RidgePath
from discreet.solve.non_negative.schedule import (
    DEFLATED,
    DIRECT,
    LIGHT,
    SCHEDULE,
    SystemSchedule,
)


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
    held like exact ones, by multipliers in the notes. Exact margins that no table can have are
    `infeasible` when that is proven, else `stalled`.

    Cost: for small tables some ten Newton steps with a dense factor. For larger ones conjugate
    gradients on the cells that are positive, some ten thousand cheap steps for half a million inner
    cells, and three times as many with exact margins. Where every inner cell is published in a
    design that is complete or nearly so, some three hundred axis transforms.
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
        return partial(_fit, _PreparedNonNegative.of(self, design))


@dataclass(frozen=True, eq=False)
class _PreparedNonNegative:
    """The options with what depends on the design alone."""

    options: NonNegative
    structure: Structure
    prior: Prior
    exact: Whole

    @classmethod
    def of(cls, options: NonNegative, design: Design) -> _PreparedNonNegative:
        prior = Prior.of(design, options.start, options.variance)
        exact = positions_of(design, options.exact)
        return cls(options, analyse(design), prior, exact)

    @property
    def penalty(self) -> float:
        """The factor of half the squared norm in half the objective."""
        return 0.0 if self.options.ridge is None else self.options.ridge**2

    @property
    def is_large(self) -> bool:
        """Whether tables of this size are fitted by means of their own."""
        return self.prior.is_plain and self.structure.design.n_inner >= SCHEDULE.large

    def without_bounds(self, problem: LeastSquaresProblem) -> tuple[Real, int, str]:
        """The fit that may be negative, the steps it took, and how it was found."""
        most = self.options.max_steps
        y, _, steps, solver = nearest_solution(problem, self.structure, most)
        return y, steps, solver


@dataclass(frozen=True, eq=False)
class _Solution:
    """What a solver returns.

    Attributes:
      y: Inner cells.
      multipliers: Those of the exact and heavy margins.
      dual: The vector that proves the choice of smallest norm; absent where the fit is unique.
      steps: Steps taken.
      solver: How it was found.
      norm_dual: A vector that bounds the smallest norm instead, see `smallest_norm`.
    """

    y: Real
    multipliers: Real
    dual: Real | None
    steps: int
    solver: str
    norm_dual: Real | None = None


Method = Callable[[_PreparedNonNegative, HeldMargins], _Solution | None]


def _fit(prepared: _PreparedNonNegative, z: Array, *, weights: Array | None = None) -> Fit:
    began = time.perf_counter()
    options, design = prepared.options, prepared.structure.design
    accuracy = Accuracy(options.tolerance, options.count)
    unstored = _by_dual(prepared, z, weights, accuracy)
    if isinstance(unstored, Fit):
        return unstored
    problem = LeastSquaresProblem.of(design, z, weights, prepared.prior, accuracy, prepared.exact)
    answer, certificate = _solve(prepared, problem)
    status = _status(prepared, problem, certificate, answer)
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


def _by_dual(
    prepared: _PreparedNonNegative, z: Array, weights: Array | None, accuracy: Accuracy
) -> Fit | str:
    """Newton's method on the dual, for large complete tables of which margins are published.

    Else the reason why the cells are stored.
    """
    design, least = prepared.structure.design, DUAL.never_stored
    if design.n_inner < least:
        return f"the table has {design.n_inner:,} inner cells, fewer than {least:,}"
    targets = Targets.checked(design, z, weights, prepared.exact)
    if not suits_dual_fit(design, targets.weights):
        return "its margins, zeros or weights are not such that cells need not be stored"
    penalty, device = prepared.penalty, prepared.options.device
    fit = UnstoredFit.of(design, "positive", targets, accuracy, penalty, prepared.prior, device)()
    if fit is None:
        return "Newton's method on the dual did not arrive"
    fit.notes["structure"] = prepared.structure.kind.value
    return fit


def _solve(
    prepared: _PreparedNonNegative, problem: LeastSquaresProblem
) -> tuple[_Solution, Certificate]:
    """The answer of the first method that serves and whose certificate holds; else the best."""
    held = HeldMargins(problem, partial(_fitted_without_bounds, prepared))
    found: list[tuple[_Solution, Certificate]] = []
    for method in (_without_bounds, _by_multipliers, _within_bounds, *_ridge_paths(problem)):
        answer = method(prepared, held)
        if answer is not None:
            found.append((answer, _certificate(prepared, problem, answer)))
            if found[-1][1].holds:
                return found[-1]
    return min(found, key=lambda pair: pair[1].worst)


def _fitted_without_bounds(prepared: _PreparedNonNegative, problem: LeastSquaresProblem) -> Real:
    """Published cells of the fit without bounds."""
    fitted: Real = problem.design.aggregate(prepared.without_bounds(problem)[0])
    return fitted


def _certificate(
    prepared: _PreparedNonNegative, problem: LeastSquaresProblem, answer: _Solution
) -> Certificate:
    return certify_non_negative(
        problem,
        answer.y,
        answer.multipliers,
        dual=answer.dual,
        ridge=prepared.penalty,
        norm_dual=answer.norm_dual,
    )


def _status(
    prepared: _PreparedNonNegative,
    problem: LeastSquaresProblem,
    certificate: Certificate,
    answer: _Solution,
) -> Status:
    if certificate.holds:
        return Status.converged
    most, exact = prepared.options.max_steps, prepared.exact
    if len(exact) and is_infeasible(problem, exact, most):
        return Status.infeasible
    return Status.max_steps if answer.steps >= most else Status.stalled


def _without_bounds(prepared: _PreparedNonNegative, held: HeldMargins) -> _Solution | None:
    """The fit without bounds, where it is cheap or the only one, and happens to be non-negative."""
    problem, structure = held.given, prepared.structure
    if held or not problem.prior.is_plain:
        return None
    if structure.is_exact_for(problem.weights):
        return _in_closed_form(prepared, problem)
    is_unique = not prepared.penalty and structure.sees_every_cell(problem.weights)
    if prepared.is_large or not is_unique:
        return None
    y, steps, solver = prepared.without_bounds(problem)
    if y.min(initial=0.0) < 0:
        return None
    return _Solution(y, np.zeros(0), None, steps, f"{solver}, without bounds")


def _in_closed_form(
    prepared: _PreparedNonNegative, problem: LeastSquaresProblem
) -> _Solution | None:
    basis, penalty = prepared.structure.basis(problem.weights), prepared.penalty
    if basis is None:
        return None
    inverse = basis.function(lambda eigenvalues: pseudo_inverse(eigenvalues + penalty))
    y = inverse(problem.right_hand_side)
    if y.min(initial=0.0) < -SCHEDULE.rounding * np.abs(y).max(initial=0.0):
        return None
    y = np.maximum(y, 0.0)
    dual = None if penalty else problem.weights * problem.design.aggregate(inverse(y))
    return _Solution(y, np.zeros(0), dual, 0, "closed form")


def _by_multipliers(prepared: _PreparedNonNegative, held: HeldMargins) -> _Solution | None:
    """Through multipliers of the bounds, for large tables that publish every inner cell."""
    if not prepared.is_large or prepared.penalty or held.zeros()[1].any():
        return None
    held.weigh(SCHEDULE.equal)
    problem, structure = held.problem, prepared.structure
    completion, whole = structure.completed or (None, structure)
    full = problem if completion is None else problem.lifted(completion)
    crossed = full.design.product_form
    basis = whole.basis(full.weights) if whole.is_exact_for(full.weights) else None
    if crossed is None or basis is None or basis.smallest <= 0:
        return None
    if not structure.sees_every_cell(problem.weights):
        return None
    at = held.at if completion is None else completion.published[held.at]
    inner = slice(None) if completion is None else completion.inner
    outside = np.ones(crossed.n_inner, dtype=bool)
    outside[inner] = False
    fit = MultiplierFit(crossed, full, basis.inverse(), outside, at, held.residual_slack)
    if not fit.run(prepared.options.max_steps):
        return None
    y = fit.x[inner]
    multipliers = held.multipliers(problem.design.aggregate(y)) + fit.multipliers + held.constant
    return _Solution(y, multipliers, None, fit.steps, "multipliers of the bounds")


def _within_bounds(prepared: _PreparedNonNegative, held: HeldMargins) -> _Solution | None:
    """Conjugate gradients within bounds, for large tables; from the fit for some ridge on.

    The dual of that fit bounds the norm, or that of the smallest table with the same margins.
    """
    if not prepared.is_large:
        return None
    held.weigh(SCHEDULE.light)
    penalty, most = prepared.penalty, prepared.options.max_steps
    is_unique = penalty > 0 or prepared.structure.sees_every_cell(held.given.weights)
    path = RidgePath(held.consistent, LIGHT, most, penalty, held.zeros()[1])
    for start in SCHEDULE.starts:
        path.follow(start)
        held.impose(path.multipliers[held.at], path.fitted)
        fit = BoundedFit(held, path.y.copy(), penalty)
        fit.run(most - path.steps)
        path.steps += fit.steps
        solver = "conjugate gradients within bounds"
        norm_dual = None if is_unique else path.nu
        answer = _Solution(fit.y, fit.multipliers, None, path.steps, solver, norm_dual)
        if not _is_smallest(prepared, held, answer):
            answer = replace(answer, norm_dual=_smallest(prepared, held, fit))
        if _is_smallest(prepared, held, answer):
            break
    return answer


def _is_smallest(prepared: _PreparedNonNegative, held: HeldMargins, answer: _Solution) -> bool:
    return _certificate(prepared, held.given, answer).selection <= prepared.options.tolerance


def _smallest(prepared: _PreparedNonNegative, held: HeldMargins, fit: BoundedFit) -> Real:
    """The dual of the table of smallest norm with the published cells of a fit, for a low ridge."""
    used = np.flatnonzero(held.given.weights > 0)
    problem = held.given.among(used, 1.0, prepared.options.tolerance).aiming(fit.fitted)
    most = prepared.options.max_steps
    path = RidgePath(problem, LIGHT, most, zero=held.zeros()[1])
    path.follow(SCHEDULE.proof)
    return path.nu


def _ridge_paths(problem: LeastSquaresProblem) -> list[Method]:
    """Ways to solve the systems of a ridge path, the cheaper first."""
    entries = problem.design.n_inner * problem.design.n_published
    ways = [DEFLATED if len(problem.held) <= SCHEDULE.most_deflated else LIGHT, DIRECT]
    if entries <= SCHEDULE.small:
        ways = [DIRECT]
    elif entries > SCHEDULE.dense:
        ways.pop()
    return [partial(_along_the_ridge, systems=systems) for systems in ways]


def _along_the_ridge(
    prepared: _PreparedNonNegative, held: HeldMargins, *, systems: SystemSchedule
) -> _Solution:
    """Active sets along a shrinking ridge until the certificate holds; else the best of them."""
    most, penalty = prepared.options.max_steps, prepared.penalty
    problem = held.given if systems.is_direct else held.consistent
    constant = 0.0 if systems.is_direct else held.constant
    path = RidgePath(problem, systems, most, penalty)
    best, reached, last, in_vain = None, np.inf, 0.0, 0
    while True:
        multipliers = path.multipliers[held.at] + constant
        dual = None if penalty else path.nu
        answer = _Solution(path.y, multipliers, dual, path.steps, "active sets along a ridge")
        certificate = _certificate(prepared, held.given, answer)
        in_vain = 0 if certificate.worst < SCHEDULE.gain * reached else in_vain + 1
        if best is None or certificate.worst < reached:
            best, reached = answer, certificate.worst
        is_safe = certificate.worst <= systems.safely * certificate.tolerance
        if is_safe or path.is_spent or in_vain > SCHEDULE.most_in_vain:
            return best
        path.stage(keeps_ridge=certificate.worst <= SCHEDULE.fast * last)
        last = certificate.worst
