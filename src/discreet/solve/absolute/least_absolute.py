r"""Least absolute deviation, non-negative: maximum likelihood under Laplace noise.

Small tables are solved to rounding error, whatever their scale. A linear program finds the least
loss, and its prices are a dual vector `u` that proves it. They also tell all tables that attain it:
inner cells with a negative slope :math:`(Xu)_i` are zero; published cells are met where
:math:`|u_k| < w_k`, not exceeded where :math:`u_k = w_k`, and reached where :math:`u_k = -w_k`. The
smallest of these tables is :math:`y = \max(0, X\nu)` on the other inner cells, where :math:`\nu`
minimises

.. math:: \tfrac12\|\max(0, X\nu)\|^2 - z^\top\nu

with :math:`\nu_k \le 0` where a cell is not exceeded and :math:`\nu_k \ge 0` where it is reached.
With any ridge :math:`\rho` that keeps :math:`u + \rho\nu` within the weights, and the slopes of
zero cells negative, that vector proves the choice.

In large tables two runs of the primal-dual iteration share the work. One has a ridge,
:math:`\tfrac{\rho}{2}\|y\|^2`, and few of its inner cells are ever positive, so that its steps are
cheap. The other has none; it shows how small the loss can be, and its dual vector bounds the loss
from below. The ridge falls as soon as it is to blame for a loss above the smallest one seen, or for
the gap of a single cell.

Exact margins have a price instead of a weight. A table of least loss meets them as soon as prices
are above the multipliers of the margins, so prices rise until they are met; margins that no table
has are refuted by the dual vector of a fit to them alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.base import Design, dot
from discreet.design.incidence import Incidence
from discreet.errors import NotConvergedError
from discreet.progress import report
from discreet.solve.absolute.certificate import (
    SMALL_LOSS,
    DualityGaps,
    Inner,
    ProvenTable,
    certify,
    largest,
    ridge_size,
)
from discreet.solve.absolute.kernels import ABSOLUTE
from discreet.solve.absolute.primal_dual import PrimalDual
from discreet.solve.fit import (
    Certificate,
    Fit,
    FitterBase,
    Prepared,
    Status,
    check_options,
    checked_values,
    checked_weights,
)
from discreet.solve.least_squares.problem import (
    Accuracy,
    Exact,
    frozen_margins,
    gradient_limits,
    positions_of,
    smallest_sizes,
)
from discreet.solve.linear.program import LARGEST_VALUE, Program


@dataclass(frozen=True, eq=False)
class LeastAbsolute(FitterBase):
    r"""Maximum likelihood under Laplace noise.

    .. math:: \min_{y \ge 0} \sum_k w_k\,|x_k^\top y - z_k|
              \quad\text{subject to}\quad x_k^\top y = z_k \text{ for the exact margins}

    with :math:`w_k` one over the scale of the noise, the square root of the precision that is
    given as weight. The minimum is rarely unique. Of all inner tables that attain it the fit takes
    the one with the smallest :math:`\|y\|^2`: it minimises the loss plus
    :math:`\tfrac{\rho}{2}\|y\|^2`, and for every `\rho` that is small enough the solution of that
    problem *is* the minimiser of smallest norm (Mangasarian & Meyer 1979). `\rho` is lowered until
    the loss is at its minimum within the tolerance.

    Promise: the relative duality gap, the difference between the loss and the value of a dual
    vector `u` with :math:`|u_k| \le w_k` and :math:`Xu \le 0`, divided by the loss, is at most
    `tolerance`; so is the gap of the problem with the ridge. Both are in the certificate, `u` in
    the notes. A loss below 1e-4 of :math:`\sum_k w_k|z_k|` is measured against that. The gap is a
    sum over cells, and none has more than a tenth of a count of it for itself, or 1e-5 of its
    residual, however large the others are. Exact margins are met within a thousandth of a count;
    `u` has no bound there. Those that no table has are reported as infeasible, with a vector `u`
    in the notes, :math:`Xu \le 0 < z^\top u`, that is zero elsewhere.

    Cost: small tables take a linear program and some Newton steps. Others take one compiled pass
    over the inner cells that are positive or nearly so in each of a few thousand steps. These take
    forty bytes, and eight more for each margin; where most of a full crossing takes part, as in the
    first steps, an inner cell takes thirty, whatever the number of margins.

    Args:
      tolerance: Relative duality gap to reach.
      max_steps: Steps after which the fit gives up.
      count: What one count is in the units of the data.
      exact: Margins that must be met: a formula, or a list of margins by name (`"1"` is the total),
        as tuples of variables, or published positions.

    See Langsrud (2019b) on the noise; `solve_exactly` and `solve_iteratively` for the ways there.
    """

    name = "least-absolute"
    tolerance: float = 1e-4
    max_steps: int = 100_000
    count: float = 1.0
    exact: Exact = field(default=())

    def __post_init__(self) -> None:
        check_options(self.tolerance, self.max_steps, self.count)
        object.__setattr__(self, "exact", frozen_margins(self.exact))

    def prepare(self, design: Design) -> Prepared:
        """Index the inner cells once for many right-hand sides, when they are needed first."""
        return _PreparedAbsolute(self, design, positions_of(design, self.exact))


@dataclass(frozen=True, eq=False)
class _PreparedAbsolute:
    """The fitter on one design, with the published positions of exact margins."""

    options: LeastAbsolute
    design: Design
    exact: Whole

    @cached_property
    def members(self) -> Incidence:
        """The published cells of every inner cell."""
        return Incidence.of(self.design)

    def __call__(self, z: Array, *, weights: Array | None = None) -> Fit:
        began, design, options = time.perf_counter(), self.design, self.options
        soft = np.sqrt(checked_weights(design, weights))
        is_exact = np.isin(np.arange(len(soft)), self.exact)
        target = checked_values(design, z, is_exact | (soft > 0))
        soft[is_exact] = 0.0
        steps, status, notes = 0, Status.converged, dict[str, Any]()
        for price in _PRICES:
            priced = np.where(is_exact, price * largest(soft), soft)
            solver, answer, certificate = self._solve(target, priced, soft, options.max_steps)
            steps += answer.steps
            if certificate.holds:
                break
            status = answer.status
            if price == _PRICES[0] and (conflict := self._refute(target, is_exact)) is not None:
                status, notes = Status.infeasible, {"conflict": conflict}
            is_held = bool((np.abs(answer.dual) < _AT_PRICE * priced)[is_exact].all())
            if is_held or notes or steps >= options.max_steps:
                break
        status = Status.converged if certificate.holds else status
        notes |= {"solver": solver, "dual": answer.dual, "ridge": answer.ridge}
        notes["ridge_dual"] = answer.ridge_dual
        y, seconds = answer.y, time.perf_counter() - began
        return Fit(y, design.aggregate(y), status, certificate, steps, seconds, notes, design)

    def _solve(
        self, z: Real, weights: Real, soft: Real, max_steps: int
    ) -> tuple[str, ProvenTable, Certificate]:
        """A table with its proofs by a program where it is small, else, or failing that, by steps.

        `weights` are the soft ones with the prices of exact margins.
        """
        design, accuracy = self.design, Accuracy(self.options.tolerance, self.options.count)
        if design.n_inner * design.n_published <= _MOST_ENTRIES:
            answer = solve_exactly(design, z, weights, largest(soft), max_steps)
            if answer is not None:
                certificate = certify(design, z, weights, soft, answer, accuracy)
                # An exact margin that is missed needs a higher price, not more steps.
                is_missed = len(self.exact) and certificate.feasibility > accuracy.tolerance
                if certificate.holds or is_missed:
                    return "linear program", answer, certificate
        answer = solve_iteratively(self.members, z, weights, soft, accuracy, max_steps)
        if len(self.exact):
            answer = replace(answer, y=self._meet(z, answer.y))
        certificate = certify(design, z, weights, soft, answer, accuracy)
        return "primal-dual steps", answer, certificate

    def _meet(self, z: Real, y: Real) -> Real:
        """Move a table that nearly has the exact margins so that it has them.

        Of all changes in proportion to the sizes of positive cells it is the least.
        """
        from scipy.sparse import diags_array
        from scipy.sparse.linalg import lsmr

        cells = np.flatnonzero(y > 0)
        root, moved = np.sqrt(y[cells]), y.copy()
        matrix = self.design.matrix().tocsr()[cells].tocsc()[:, self.exact].astype(np.float64)
        left = (z - self.design.aggregate(y))[self.exact]
        change = lsmr((diags_array(root) @ matrix).T, left, atol=_MEET, btol=_MEET)[0]
        moved[cells] = np.maximum(y[cells] + root * change, 0.0)
        return moved

    def _refute(self, z: Real, is_exact: Mask) -> Real | None:
        """A dual vector that proves that no table has the exact margins, where one is found."""
        if not is_exact.any():
            return None
        alone, options = is_exact.astype(np.float64), self.options
        _, answer, _ = self._solve(z, alone, alone, options.max_steps)
        # Slopes within rounding errors above zero are taken off: every inner cell that has one
        # counts in an exact margin.
        above = float(self.design.adjoint(answer.dual).max(initial=0.0))
        u = answer.dual - above * alone
        slack = _ROUNDING * dot(np.abs(u), np.abs(z))
        return u if dot(z, u) > max(slack, _REFUTED * options.count * largest(u)) else None


# Prices of exact margins in units of the largest weight: the first is above the multipliers of most
# tables, in which an inner cell counts in a few margins; the last is what double precision bears.
_PRICES = (30.0, 1e3, 3e4)
# A dual value above this share of its price is held by the price: then a higher one may help.
_AT_PRICE = 0.99
# Deviation of exact margins, in counts, that steps may leave, and accuracy of the last change that
# meets them: other cells move by as much, and have a tenth of a count.
_BEFORE_MEETING, _MEET = 0.02, 1e-14
# Value of a dual vector, in counts times its largest entry, that proves a contradiction: less is
# what an exact margin may be missed by. And what rounding makes of the terms of the sum.
_REFUTED, _ROUNDING = 1e-2, 1e-12
# Inner times published cells up to which a table is small. A linear program and the Newton steps
# after it take some tenths of a second there; where noise is tiny beside the counts, hundreds of
# Newton steps take up to ten.
_MOST_ENTRIES = 1_000_000
# Prices and slopes this near their bounds, relative to the weights, are at them.
_SAME = 1e-9
# Share of the largest ridge that proves the choice, lest rounding errors spoil it.
_SPARE = 0.5
# Newton steps, and halvings of one; the next step corrects what they leave.
_NEWTON_STEPS, _BISECTIONS = 500, 20
# Gradient, relative to the largest published value, that rounding errors leave.
_RESOLVED = 1e-13
# Share of the gradient on the diagonal of Newton's systems, which vanishes as steps converge; and
# the least there, as dependent margins make the system singular.
_DAMPING, _LEAST_DAMPING = 1e-3, 1e-11


def solve_exactly(
    design: Design, z: Real, weights: Real, top: float, max_steps: int
) -> ProvenTable | None:
    """The smallest table of the least loss; nothing where steps do not suffice for the program.

    `top` is the largest weight of a margin that is not exact.
    """
    from scipy.sparse import eye_array, vstack

    matrix = design.matrix().tocsr().astype(np.float64)
    unit = largest(z)
    # The program's tolerances are absolute: the data fill the range that it takes unscaled.
    z_scaled, (n, m) = LARGEST_VALUE / unit * z, matrix.shape
    rows = vstack([matrix, eye_array(m), -eye_array(m)])
    floor, ceiling = np.zeros(n + 2 * m), np.full(n + 2 * m, np.inf)
    program = Program(rows, z_scaled, z_scaled, floor, ceiling, changing="nothing")
    try:
        program.minimise(np.concatenate([np.zeros(n), *[weights / top] * 2]), steps=max_steps)
    except NotConvergedError:
        return None
    if not program.is_best:
        return None
    # What one more count in each published cell adds to the least loss is a dual vector.
    dual = np.clip(top * program.prices(), -weights, weights)
    slopes = matrix @ dual
    cells = np.flatnonzero(slopes >= -_SAME * top)
    is_met = np.abs(dual) < (1.0 - _SAME) * weights
    low = np.where(is_met | (dual > 0), -np.inf, 0.0)
    high = np.where(is_met | (dual < 0), np.inf, 0.0)
    nu, steps = _smallest(matrix[cells], z / unit, low, high)
    unclipped, y = unit * (matrix @ nu), np.zeros(len(slopes))
    y[cells] = np.maximum(unclipped[cells], 0.0)
    unclipped[cells] = 0.0
    nu *= unit
    slack = ((weights - dual, nu), (weights + dual, -nu), (-slopes, unclipped))
    ridge = min(_largest_multiple(*pair) for pair in slack)
    return ProvenTable(y, dual, ridge, dual + ridge * nu, steps)


def _largest_multiple(slack: Real, change: Real) -> float:
    """The largest multiple of a change that keeps within the slack, with some to spare."""
    fits = (_SPARE * slack[change > 0] / change[change > 0]).min(initial=np.inf)
    return float(fits) if np.isfinite(fits) else 1.0


def _smallest(matrix: Any, z: Real, low: Real, high: Real) -> tuple[Real, int]:
    """Minimise half the squared norm of the positive part of `Xv`, less `zv`, within bounds."""
    nu = np.zeros(len(z))
    for step in range(_NEWTON_STEPS):
        slopes = matrix @ nu
        gradient = matrix.T @ np.maximum(slopes, 0.0) - z
        direction = _direction(matrix[slopes >= 0], gradient, nu <= low, nu >= high)
        if direction is None:
            return nu, step
        nu = _along(matrix, z, nu, direction, low, high)
    return nu, _NEWTON_STEPS


def _direction(positive: Any, gradient: Real, at_low: Mask, at_high: Mask) -> Real | None:
    """The Newton direction of the values that no bound holds; nothing where none is left to go.

    The system is damped in proportion to the gradient: it may be singular.
    """
    held = (at_low & (gradient >= 0)) | (at_high & (gradient <= 0))
    force = float(np.abs(gradient[~held]).max(initial=0.0))
    if force <= _RESOLVED:
        return None
    damping = max(_DAMPING * force, _LEAST_DAMPING)
    while True:
        part = positive[:, np.flatnonzero(~held)]
        hessian = (part.T @ part).toarray()
        hessian[np.diag_indices(len(hessian))] += damping
        direction = np.zeros(len(gradient))
        direction[~held] = -np.linalg.solve(hessian, gradient[~held])
        leaving = (at_low & (direction < 0)) | (at_high & (direction > 0))
        if not leaving.any():
            return direction
        held |= leaving


def _along(matrix: Any, z: Real, nu: Real, direction: Real, low: Real, high: Real) -> Real:
    """The point along the direction, bent at the bounds, up to which the objective falls.

    Its slope there is told apart from zero where its value no longer is from that at the start.
    """

    def rises(size: float) -> bool:
        point = np.clip(nu + size * direction, low, high)
        gradient = matrix.T @ np.maximum(matrix @ point, 0.0) - z
        inside = (point > low) & (point < high)
        return float(gradient[inside] @ direction[inside]) > 0.0

    least, most = 0.0, 1.0
    if rises(most):
        for _ in range(_BISECTIONS):
            size = (least + most) / 2
            least, most = (least, size) if rises(size) else (size, most)
    return np.clip(nu + most * direction, low, high)


# Share of the mean size below which inner cells take shorter steps.
_FAR_BELOW = 1e-3
# Steps after which losses and gaps are computed.
_CHECK_EVERY = 200
# Inner cells whose published cells are listed at a time to judge each on its own.
_PIECE = 500_000
# The first ridge, times the largest weight over the largest inner cell, and the one at which the
# search gives up; more than the first leaves the table nearly empty.
_FIRST_RIDGE, _LAST_RIDGE = 10.0, 1e-8
# Factor by which the ridge falls. Below the ridge that is small enough steps become many and dear;
# above it they are wasted.
_RIDGE_FALL = 0.1
# Steps with one ridge up to which the run without goes on from there where that has a smaller loss;
# later it knows more of the dual.
_FOLLOWS = 1000
# Where the gap between the smallest loss seen and its bound is below so many tolerances, the ridge
# can be judged without further steps of the other run.
_KNOWN = 2.0
# The ridge is to blame for a loss above the smallest one seen when that is more than so many times
# what unfinished steps cost; less is often due to these.
_BLAME = 2.0
# The ridge is to blame for the widest gap of a single cell where unfinished steps of either run
# explain no more than this share of it.
_SETTLED = 0.5


def solve_iteratively(
    members: Incidence, z: Real, weights: Real, soft: Real, accuracy: Accuracy, max_steps: int
) -> ProvenTable:
    """The best table and dual vectors that at most `max_steps` steps of both runs lead to."""
    state = _RidgeSearch(members, z, weights, soft, accuracy, max_steps)
    state.run()
    if not state.ridge:
        state.keep()
    cells, values = state.table
    y = np.zeros(members.n_inner)
    y[cells] = values
    return ProvenTable(y, state.dual, state.ridge, state.ridge_dual, state.steps, state.status)


class _RidgeSearch:
    """The state of both runs, and the best that they have found: what a `ProvenTable` holds."""

    def __init__(
        self,
        members: Incidence,
        z: Real,
        weights: Real,
        soft: Real,
        accuracy: Accuracy,
        max_steps: int,
    ) -> None:
        self._z, self._weights, self._accuracy, self._max_steps = z, weights, accuracy, max_steps
        self._soft, self._is_exact = soft, weights > soft
        self._tolerance = accuracy.tolerance
        sizes = smallest_sizes(members, z, weights, accuracy.count)
        self._largest = largest(sizes)
        seen = int(np.count_nonzero(sizes))
        self._small = _FAR_BELOW * (float(sizes.sum()) / seen if seen else 1.0)
        differ = bool((sizes[sizes > 0] < self._small).any())
        del sizes
        lengths = self._lengths if differ else None
        self._path = PrimalDual(members, z, weights, ABSOLUTE, lengths, largest(soft))
        self._free = self._path  # until it goes its own way, from a table that is sparse already
        self.table: tuple[Whole | slice, Real] = (slice(0), np.zeros(0))
        self.dual = self.ridge_dual = np.zeros(len(z))
        self.ridge, self.steps, self.status = 0.0, 0, Status.stalled
        self._bound, self._least = 0.0, dot(weights, np.abs(z))
        self._floor = SMALL_LOSS * dot(soft, np.abs(z)) or 1.0

    def _lengths(self, members: Incidence) -> Real:
        """Ones, less for cells far smaller than others; cells of size zero are not seen at all."""
        sizes = smallest_sizes(members, self._z, self._weights, self._accuracy.count)
        return np.where(sizes > 0, np.minimum(1.0, sizes / self._small), 1.0)

    def run(self) -> None:
        """Lower the ridge until it costs no more than the tolerance, and prove it."""
        unit = largest(self._soft) / self._largest
        ridge = _FIRST_RIDGE * unit
        while ridge >= _LAST_RIDGE * unit:
            self._path.set_ridge(ridge)
            if self._has_ended():
                return
            ridge *= _RIDGE_FALL

    def _has_ended(self) -> bool:
        """Iterate with one ridge until the search has ended, or the ridge has to fall."""
        # Now and then the run without a ridge shows how small the loss can be. Looks double in
        # distance: it takes as many steps as this run, not more.
        next_look = _CHECK_EVERY
        while self._iterate(self._path):
            run = self._path
            residual = self._z - run.current_margins()
            at = DualityGaps.of(self._weights, residual, run.u[:-1], run.active(), run.ridge)
            self._least = min(self._least, at.loss)
            if self._is_reached(at):
                self.keep()
                if self._is_proven(at.loss):
                    return True
            elif self._path.steps >= next_look:
                if next_look <= _FOLLOWS and at.loss <= self._loss_of(self._free):
                    self._free = self._path.without_ridge()
                for _ in range(0, next_look, _CHECK_EVERY):
                    if self._gap(self._least) > _KNOWN * self._tolerance:
                        self._prove()
                next_look = 2 * self._path.steps
            if self._is_to_blame(at):
                return False
        return True

    def keep(self) -> None:
        """Keep the table with the present ridge, and the dual vector that goes with it."""
        run = self._path
        self.table = (run.cells, run.point.copy())
        self.ridge, self.ridge_dual = run.ridge, run.u[:-1].copy()

    def _is_reached(self, at: DualityGaps) -> bool:
        """Whether the ridge problem is solved, and its loss is the smallest one seen."""
        solved = at.total / ridge_size(at.loss, self._path.ridge, self._path.point)
        worst = max(solved, (at.loss - self._least) / max(at.loss, self._floor))
        known = max(worst, self._gap(at.loss))
        report("least absolute deviation", math.log(max(known, 1e-300)) / math.log(self._tolerance))
        return worst <= self._tolerance

    def _is_proven(self, loss: float) -> bool:
        """Raise the bound until the gap is narrow, or due to the table more than to the bound."""
        while self._gap(loss) > self._tolerance:
            if self._least - self._bound <= loss - self._least or not self._prove():
                return False
        while (own := self._own(self._path)) > self._tolerance:
            if self._own(self._free) <= _SETTLED * own or not self._prove():
                return False
        return True

    def _is_to_blame(self, at: DualityGaps) -> bool:
        """Whether less was seen than unfinished steps could lead to with this ridge."""
        if self._gap(at.loss) > self._tolerance:
            harmless = self._tolerance / 2 * max(at.loss, self._floor)
            return at.loss - self._least > max(_BLAME * at.total, harmless)
        own = _SETTLED * self._own(self._path)
        unfinished = at.own(self._accuracy, self._limits)
        return max(unfinished, self._own(self._free)) <= own

    def _prove(self) -> bool:
        """Raise the bound and look for a smaller loss, unless there are no steps left."""
        if self._free is self._path:
            self._free = self._path.without_ridge()
        if not self._iterate(self._free):
            return False
        self._least = min(self._least, self._loss_of(self._free))
        dual = self._free.feasible_dual(self._weights)
        if (value := dot(self._z, dual)) > self._bound:
            self._bound, self.dual = value, dual
        return True

    def _iterate(self, run: PrimalDual) -> bool:
        """Take some steps, unless there are none left."""
        left = self._max_steps - self.steps
        if left <= 0:
            self.status = Status.max_steps
            return False
        # Slopes are as many as inner cells: only one of the runs keeps them at a time.
        other = self._path if run is self._free else self._free
        other.forget_slopes()
        self.steps += run.iterate(min(_CHECK_EVERY, left))
        return True

    def _own(self, run: PrimalDual) -> float:
        """The widest gap of a cell of its own between a run's table and the best dual vector."""
        residual, (cells, y) = self._z - run.current_margins(), run.positive()
        inner = Inner(cells, y, self._by_pieces(cells, lambda members: members.adjoint(self.dual)))
        gaps = DualityGaps.of(self._weights, residual, self.dual, inner)
        off = float(np.abs(residual[self._is_exact]).max(initial=0.0))
        off *= self._tolerance / (_BEFORE_MEETING * self._accuracy.count)
        return max(gaps.own(self._accuracy, self._limits), off)

    def _limits(self, cells: Whole) -> Real:
        """The largest gradients of some inner cells."""
        given = (self._z, self._soft, self._accuracy)
        return self._by_pieces(cells, lambda members: gradient_limits(members, *given))

    def _by_pieces(self, cells: Whole, of: Callable[[Incidence], Real]) -> Real:
        """A value for each of some inner cells, from lists of the published cells of a few."""
        pieces = np.array_split(cells, len(cells) // _PIECE + 1)
        return np.concatenate([of(self._path.members.restrict(piece)) for piece in pieces])

    def _gap(self, loss: float) -> float:
        return (loss - self._bound) / max(loss, self._floor)

    def _loss_of(self, run: PrimalDual) -> float:
        return dot(self._weights, np.abs(run.current_margins() - self._z))
