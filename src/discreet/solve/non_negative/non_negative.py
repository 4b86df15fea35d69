r"""Non-negative least squares, ridge and exact margins (Methods B and C of Langsrud 2019b)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Array, Real, Whole
from discreet.design.base import Design
from discreet.design.fused.links import check_device, on_processor, require_gpu
from discreet.errors import positive
from discreet.solve.fit import Certificate, Fit, FitterBase, Prepared, Status, check_options
from discreet.solve.least_squares.basis import pseudo_inverse
from discreet.solve.least_squares.dual_fit import NEVER_STORED, UnstoredFit, suits_dual_fit
from discreet.solve.least_squares.least_squares import (
    Structure,
    analyse,
    nearest_solution,
    publishes_every_cell,
)
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
from discreet.solve.non_negative.active_set import MOST_ENTRIES, ActiveSet
from discreet.solve.non_negative.bounded import BoundedFit
from discreet.solve.non_negative.held import HeldMargins, is_infeasible
from discreet.solve.non_negative.multipliers import MultiplierFit
from discreet.solve.non_negative.ridge_path import (
    DEFLATED,
    DENSE,
    DIRECT,
    LIGHT,
    SMALL,
    RidgePath,
    SystemSchedule,
)

# Inner cells from which other methods beat active sets.
LARGE = 20_000
# Weight of a held margin, times that of others, in steps within bounds: a light one keeps the
# equations easy, and shifts of its target do the rest.
_LIGHT_WEIGHT = 0.2
# With more of it the equations are harder, but shifts that are too slow otherwise arrive: where
# nothing else met exact margins, it is tried last.
_FIRM_WEIGHT = 20.0
# The same for multipliers of bounds, whose closed form needs equal weights in full crossings.
_EQUAL_WEIGHT = 1.0
# Steps within bounds start from the fit for these shares of the first ridge: from the next one
# where the norm of what they led to is not proven to be small enough. Lower ridges cost more.
_STARTS = (0.01, 0.001, 0.0001)
# Share of the first ridge at which the table of smallest norm with the same published cells is
# found, where the start does not prove it.
_PROOF = 0.01
# Share of the largest cell below which a negative one is a rounding error.
_ROUNDING = 1e-12
# Held margins that are taken out of the equations at most: the dense factor of more would be too
# large.
_MOST_DEFLATED = 5_000
# Factor between weights from which light cells are judged by forces of their own.
_UNEVEN = 100.0
# A stage whose violations are below this share of those of the last one shows that its ridge is low
# enough: lower ones would make the point larger, and rounding errors with it.
_FAST = 0.01
# Stages of a ridge path without a gain before it gives up, and the factor that counts as a gain.
_MOST_IN_VAIN = 20
_GAIN = 0.9


@dataclass(frozen=True, eq=False)
class NonNegative(FitterBase):
    r"""The least squares fit with no negative cell, of these the one of smallest norm.

    .. math:: \hat y = \arg\min_{y \ge 0} \sum_k w_k (x_k^\top y - z_k)^2
              + \lambda^2 \sum_i \frac{(y_i - s_i)^2}{q_i}
              \quad\text{subject to}\quad x_k^\top y = z_k \text{ for the exact margins}

    By default :math:`\lambda \to 0`: the ridge only chooses among tables that fit equally well.

    Promise: no published cell deviates from what the optimum demands by more than `tolerance`
    counts, or more where it is noisier than those beside it (`CertificateLimits`). Exact margins
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

    name = "non-negative"
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
        if self.ridge is not None:
            positive("ridge", self.ridge)
        object.__setattr__(self, "exact", frozen_margins(self.exact))

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
        return self.prior.is_plain and self.structure.design.n_inner >= LARGE

    def without_bounds(self, problem: LeastSquaresProblem) -> tuple[Real, Real, int, str]:
        """The fit that may be negative, as `nearest_solution` returns it."""
        return nearest_solution(problem, self.structure, self.options.max_steps)


@dataclass(frozen=True, eq=False)
class _Solution:
    """What a method returns for a problem with a ridge, or with ridge zero."""

    problem: LeastSquaresProblem
    ridge: float
    y: Real  # inner cells
    multipliers: Real  # those of the exact and heavy margins
    # The vector that proves the choice of smallest norm; absent where the fit is unique.
    dual: Real | None
    steps: int  # steps taken
    solver: str  # how it was found
    # a vector that bounds the smallest norm instead, see `smallest_norm`.
    norm_dual: Real | None = None
    known: Certificate | None = None  # its certificate, where the method has one of its own
    forces: Real | None = None  # the weighted residuals of all published cells that prove it

    @cached_property
    def certificate(self) -> Certificate:
        """How good it is; computed once, for methods judge their own solutions too."""
        if self.known is not None:
            return self.known
        return certify_non_negative(
            self.problem,
            self.y,
            self.multipliers,
            dual=self.dual,
            ridge=self.ridge,
            norm_dual=self.norm_dual,
        )


def _fit(prepared: _PreparedNonNegative, z: Array, *, weights: Array | None = None) -> Fit:
    began = time.perf_counter()
    options, design = prepared.options, prepared.structure.design
    accuracy = Accuracy(options.tolerance, options.count)
    unstored = _by_dual(prepared, z, weights, accuracy)
    if isinstance(unstored, Fit):
        return unstored
    problem = LeastSquaresProblem.of(design, z, weights, prepared.prior, accuracy, prepared.exact)
    answer = _solve(prepared, problem)
    if not answer.certificate.holds and problem.serves_worse(answer.y, prepared.penalty):
        answer = _starting_table(problem, answer)
    certificate = answer.certificate
    status = Status.max_steps if answer.steps >= options.max_steps else Status.stalled
    if certificate.holds:
        status = Status.converged
    elif len(prepared.exact) and is_infeasible(problem, prepared.exact, options.max_steps):
        status = Status.infeasible
    notes = {
        "structure": prepared.structure.kind.value,
        "solver": answer.solver,
        "device": on_processor(options.device, unstored),
        "dual": answer.dual,
        "norm_dual": answer.norm_dual,
        "held": problem.held,
        "multipliers": answer.multipliers,
        "forces": answer.forces,
    }
    y, seconds = problem.complete(answer.y), time.perf_counter() - began
    return Fit(y, design.aggregate(y), status, certificate, answer.steps, seconds, notes, design)


def _by_dual(
    prepared: _PreparedNonNegative, z: Array, weights: Array | None, accuracy: Accuracy
) -> Fit | str:
    """Newton's method on the dual, for large complete tables of which margins are published.

    Else the reason why the cells are stored.
    """
    design = prepared.structure.design
    if design.n_inner < NEVER_STORED:
        return f"the table has {design.n_inner:,} inner cells, fewer than {NEVER_STORED:,}"
    targets = Targets.from_values(design, z, weights, prepared.exact)
    if not suits_dual_fit(design, targets.weights):
        return "its margins, zeros or weights are not such that cells need not be stored"
    prior, penalty, device = prepared.prior, prepared.penalty, prepared.options.device
    fit = UnstoredFit(design, "positive", targets, accuracy, prior, penalty, device).run()
    if fit is None:
        return "Newton's method on the dual did not arrive"
    fit.notes["structure"] = prepared.structure.kind.value
    return fit


def _solve(prepared: _PreparedNonNegative, problem: LeastSquaresProblem) -> _Solution:
    """The answer of the first method that serves and whose certificate holds; else the best."""
    held = HeldMargins(problem, lambda p: p.design.aggregate(prepared.without_bounds(p)[0]))
    # Cheap methods that apply to few problems come before dear ones that apply to all.
    methods: list[Callable[[_PreparedNonNegative, HeldMargins], _Solution | None]]
    methods, found = [_without_bounds, _by_multipliers, _within_bounds], []
    entries = problem.design.n_inner * problem.design.n_published
    if entries > SMALL:
        systems = DEFLATED if len(problem.held) <= _MOST_DEFLATED else LIGHT
        methods.append(partial(_along_the_ridge, systems=systems))
    if entries <= max(SMALL, DENSE):
        methods.append(partial(_along_the_ridge, systems=DIRECT))
    if len(problem.exact):
        methods.append(partial(_within_bounds, weight=_FIRM_WEIGHT))
    for method in methods:
        answer = method(prepared, held)
        if answer is not None:
            found.append(answer)
            if answer.certificate.holds:
                break
    best = min(found, key=lambda answer: answer.certificate.worst)
    # Among uneven weights gradients do not tell how far light cells are off.
    is_judged = best.certificate.holds and not _is_uneven(problem)
    if is_judged or prepared.penalty or entries > MOST_ENTRIES:
        return best
    return _polish_by_active_sets(prepared, problem, best)


def _polish_by_active_sets(
    prepared: _PreparedNonNegative, problem: LeastSquaresProblem, best: _Solution
) -> _Solution:
    """The fit by active sets, where its certificate holds; else the best there is."""
    found, is_uneven = [best], _is_uneven(problem)
    for start in _starts(problem, best.y, prepared.options.max_steps):
        active = ActiveSet(problem, start)
        active.run(prepared.options.max_steps)
        polished = _smallest_on(prepared, problem, active)
        if polished.certificate.holds:
            return polished
        if is_uneven:
            # Gradients prove nothing here: tables are judged by the forces that were found.
            found[0] = _judged_by(active, best)
        found.append(polished)
    return min(found, key=lambda answer: answer.certificate.worst)


def _judged_by(active: ActiveSet, answer: _Solution) -> _Solution:
    """The same answer with the certificate that active sets give its table."""
    known = active.certify(answer.y, answer.certificate.selection)
    multipliers, forces = active.forces[answer.problem.held], active.forces
    return replace(answer, multipliers=multipliers, forces=forces, known=known)


def _starts(problem: LeastSquaresProblem, best: Real, max_steps: int) -> Iterator[Real]:
    """Tables from which active sets begin, one after the other."""
    yield best
    yield RidgePath(problem, DIRECT, max_steps).y
    movable = np.flatnonzero(problem.prior.movable(problem.design.n_inner))
    if len(problem.exact) and len(movable):
        # Where exact margins leave little or nothing open, sets that do not meet them can circle.
        from scipy.optimize import nnls

        X = problem.design.matrix().toarray()[np.ix_(movable, problem.exact)]
        y = np.zeros(problem.design.n_inner)
        with suppress(RuntimeError):  # too many steps
            y[movable] = nnls(X.T.astype(np.float64), problem.z[problem.exact])[0]
            yield y


def _starting_table(problem: LeastSquaresProblem, answer: _Solution) -> _Solution:
    """The table at the start, for want of a better one."""
    none, y = np.zeros(len(problem.z)), problem.prior.starts(np.arange(problem.design.n_inner))
    held = none[problem.held]
    return _Solution(problem, answer.ridge, y, held, none, answer.steps, "starting table")


def _is_uneven(problem: LeastSquaresProblem) -> bool:
    """Whether some weights are so much lighter than others that these hide them."""
    soft = np.delete(problem.weights, problem.held)
    soft = soft[soft > 0]
    return len(soft) > 0 and bool(soft.max() > _UNEVEN * soft.min())


def _smallest_on(
    prepared: _PreparedNonNegative, problem: LeastSquaresProblem, active: ActiveSet
) -> _Solution:
    """Of all tables with the published cells that active sets found, the smallest."""
    used = np.flatnonzero(problem.weights > 0)
    fitted = problem.design.aggregate(active.y)
    smallest = problem.among(used, 1.0, prepared.options.tolerance).with_targets(fitted)
    alone = HeldMargins(smallest, lambda p: p.design.aggregate(prepared.without_bounds(p)[0]))
    found = _along_the_ridge(prepared, alone, systems=DIRECT)
    known, steps = active.certify(found.y, found.certificate.selection), active.steps + found.steps
    if not known.holds and found.dual is not None and steps < prepared.options.max_steps:
        # Where sums hardly tell tables apart, small gradients leave large deviations.
        y, dual = active.meet(found.y, found.dual)
        found = replace(found, y=y, dual=dual)
        known = active.certify(y, found.certificate.selection)
    held, forces = active.forces[problem.held], active.forces
    return _Solution(
        problem, 0.0, found.y, held, found.dual, steps, "active sets", known=known, forces=forces
    )


def _without_bounds(prepared: _PreparedNonNegative, held: HeldMargins) -> _Solution | None:
    """The fit without bounds, where it is cheap or the only one, and happens to be non-negative."""
    problem, structure = held.given, prepared.structure
    if held or not problem.prior.is_plain:
        return None
    if structure.is_exact_for(problem.weights):
        return _in_closed_form(prepared, problem)
    is_unique = not prepared.penalty and publishes_every_cell(problem.design, problem.weights)
    if prepared.is_large or not is_unique:
        return None
    y, _, steps, solver = prepared.without_bounds(problem)
    if y.min(initial=0.0) < 0:
        return None
    return _Solution(problem, 0.0, y, np.zeros(0), None, steps, f"{solver}, without bounds")


def _in_closed_form(
    prepared: _PreparedNonNegative, problem: LeastSquaresProblem
) -> _Solution | None:
    basis, penalty = prepared.structure.basis(problem.weights), prepared.penalty
    if basis is None:
        return None
    inverse = basis.function(lambda eigenvalues: pseudo_inverse(eigenvalues + penalty))
    y = inverse(problem.right_hand_side)
    if y.min(initial=0.0) < -_ROUNDING * np.abs(y).max(initial=0.0):
        return None
    y = np.maximum(y, 0.0)
    dual = None if penalty else problem.weights * problem.design.aggregate(inverse(y))
    return _Solution(problem, penalty, y, np.zeros(0), dual, 0, "closed form")


def _by_multipliers(prepared: _PreparedNonNegative, held: HeldMargins) -> _Solution | None:
    """Through multipliers of the bounds, for large tables that publish every inner cell."""
    if not prepared.is_large or prepared.penalty or held.zeros()[1].any():
        return None
    held.weigh(_EQUAL_WEIGHT)
    problem, structure = held.problem, prepared.structure
    # Structural zeros are cells of the full crossing that stay at zero whatever their multiplier:
    # the inverse of the full crossing then serves designs that have none of their own.
    completion, whole = structure.completion or (None, structure)
    full = problem if completion is None else problem.on_full_crossing(completion)
    crossed = full.design.product_form
    basis = whole.basis(full.weights) if whole.is_exact_for(full.weights) else None
    if crossed is None or basis is None or basis.smallest <= 0:
        return None
    if not publishes_every_cell(problem.design, problem.weights):
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
    solver = "multipliers of the bounds"
    return _Solution(held.given, 0.0, y, multipliers, None, fit.steps, solver)


def _within_bounds(
    prepared: _PreparedNonNegative, held: HeldMargins, *, weight: float = _LIGHT_WEIGHT
) -> _Solution | None:
    """Conjugate gradients within bounds, for large tables; from the fit for some ridge on.

    The dual of that fit bounds the norm, or that of the smallest table with the same margins.
    """
    if not prepared.is_large:
        return None
    held.weigh(weight)
    penalty, most = prepared.penalty, prepared.options.max_steps
    is_unique = penalty > 0 or publishes_every_cell(held.given.design, held.given.weights)
    path = RidgePath(held.consistent, LIGHT, most, penalty, held.zeros()[1])
    for start in _STARTS:
        path.follow(start)
        held.impose(path.multipliers[held.at], path.fitted)
        fit = BoundedFit(held, path.y.copy(), penalty)
        fit.run(most - path.steps)
        path.steps += fit.steps
        solver = "conjugate gradients within bounds"
        norm_dual = None if is_unique else path.nu
        answer = _Solution(
            held.given, penalty, fit.y, fit.multipliers, None, path.steps, solver, norm_dual
        )
        if not answer.certificate.selection <= prepared.options.tolerance:
            answer = replace(answer, norm_dual=_smallest(prepared, held, fit))
        if answer.certificate.selection <= prepared.options.tolerance:
            break
    return answer


def _smallest(prepared: _PreparedNonNegative, held: HeldMargins, fit: BoundedFit) -> Real:
    """The dual of the table of smallest norm with the published cells of a fit, for a low ridge."""
    used = np.flatnonzero(held.given.weights > 0)
    problem = held.given.among(used, 1.0, prepared.options.tolerance).with_targets(fit.fitted)
    most = prepared.options.max_steps
    path = RidgePath(problem, LIGHT, most, zero=held.zeros()[1])
    path.follow(_PROOF)
    return path.nu


def _along_the_ridge(
    prepared: _PreparedNonNegative, held: HeldMargins, *, systems: SystemSchedule
) -> _Solution:
    """Active sets along a shrinking ridge until the certificate holds; else the best of them."""
    most, penalty = prepared.options.max_steps, prepared.penalty
    problem = held.given if systems.is_direct else held.consistent
    # A factor meets heavy margins by their own weights; others need targets that some table has.
    constant = 0.0 if systems.is_direct else held.constant
    path = RidgePath(problem, systems, most, penalty)
    best, reached, last, in_vain = None, np.inf, 0.0, 0
    while True:
        multipliers = path.multipliers[held.at] + constant
        dual = None if penalty else path.nu
        solver = "active sets along a ridge"
        answer = _Solution(held.given, penalty, path.y, multipliers, dual, path.steps, solver)
        certificate = answer.certificate
        in_vain = 0 if certificate.worst < _GAIN * reached else in_vain + 1
        if best is None or certificate.worst < reached:
            best, reached = answer, certificate.worst
        is_safe = certificate.worst <= systems.safely * certificate.tolerance
        if is_safe or path.is_spent or in_vain > _MOST_IN_VAIN:
            return best
        path.stage(keeps_ridge=certificate.worst <= _FAST * last)
        last = certificate.worst
