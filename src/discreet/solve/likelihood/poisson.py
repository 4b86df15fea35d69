r"""Poisson likelihood fits: log-linear tables from weighted margins that contradict each other.

Optima of small tables that steps do not reach are found by an interior path, right at any weight.
With a barrier, :math:`\min_{y > 0} \sum_k w_k(\mu_k - z_k\log\mu_k) - \tau\sum_i\log y_i`, every
inner cell is positive and has a slope of :math:`-\tau/y_i`; as :math:`\tau` falls, cells that an
optimum leaves empty go to zero. A Newton step in shares of the cells, :math:`y(1 + p)`, is a least
squares problem whose rows are the published cells and the barriers, each with a scale of its own.
A factor that keeps to each scale harms no light cell by a heavy one.

See Wright (1997) on the path, Stewart (1989) on the factor.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Mask, Real
from discreet.design.base import Design, dot
from discreet.errors import whole
from discreet.progress import report
from discreet.solve.absolute.kernels import POISSON
from discreet.solve.absolute.primal_dual import PrimalDual
from discreet.solve.fit import (
    Certificate,
    Fit,
    FitterBase,
    Prepared,
    Status,
    check_tolerance,
    checked_counts,
    checked_values,
    checked_weights,
)
from discreet.solve.least_squares.basis import pseudo_inverse
from discreet.solve.least_squares.dense import RowScaledFactor
from discreet.solve.likelihood.log_linear import (
    LogLinear,
    PreparedLikelihood,
    fit_complete,
    fit_stored,
)

# Steps between bounds on the gap, each as dear as some steps.
_CHECK_EVERY = 100
# A loss below this share of the weighted data is measured against that share.
_SMALL = 1e-4
# Slopes within so many times the accuracy count as zero,
_FACE = 20.0
# for which slopes must be known to so many times the accuracy,
_SURE = 5.0
# unless the gap is below this share of the accuracy, which is proof enough without them.
_NEGLIGIBLE = 1e-3
# Factor of the accuracy when the log-linear table is not yet an optimum.
_SHARPER = 0.1
# Accuracy below which double precision has nothing left to give.
_SHARPEST = 1e-12
# The largest part of the gap that one cell may have, in units of its weight times the tolerance:
# the gap is a sum, in which light cells could hide behind heavy ones.
_OWN = 10.0
# What double precision leaves of the terms of a slope.
_ROUNDING = 1e-14
# Steps before factors take over, where these are small.
_BEFORE_FACTORS = 2_000
# Part of the accuracy by which the log-linear table may fall short of its margins.
_SHARE = 0.01
# Conjugate gradient steps of the log-linear fit at most.
_GRADIENTS = 1_000


@dataclass(frozen=True, eq=False)
class Poisson(FitterBase):
    r"""The Poisson likelihood optimum for weighted margins, consistent or not.

    .. math:: \min_{y \ge 0} \sum_k w_k\Big(z_k \log\frac{z_k}{\mu_k} - z_k + \mu_k\Big),
              \qquad \mu = X^\top y

    The optimum fixes :math:`\mu_k` wherever :math:`z_k > 0`, and the inner cells that must be zero,
    those with a positive score :math:`\big(Xw(1 - z/\mu)\big)_i`. Of all tables that agree with
    this the fit takes the log-linear one, :math:`\hat y = s\,e^{X\nu}` on the other cells: the one
    of largest entropy, or nearest to the starting table `s` in Kullback–Leibler distance. With
    margins that add up it is the fit of `LogLinear`.

    Promise: the duality gap, the difference between the loss and
    :math:`\sum_k w_k z_k\log(1 + u_k/w_k)` for a vector `u` with :math:`Xu \le 0`, is at most
    `tolerance` times the loss, or times 1e-4 of :math:`\sum_k w_k z_k` where that is more. It is a
    sum of parts, none of them negative, and no cell's part is more than ten times the tolerance
    times its weight: at the default a published cell is within 0.5 % of a standard deviation
    :math:`\sqrt{z_k}` of the margin that `u` stands for, however light it is. The notes hold `u`
    and the multipliers :math:`\nu`.

    Cost: large complete tables whose margins add up cost what they cost `LogLinear`. Else a few
    hundred to a few thousand passes over the inner cells that may be positive and the
    published cells that they count in, then a log-linear fit to the margins found. Tables of up to
    10⁵ entries of `X` that this does not settle take some forty dense factors.

    Args:
      tolerance: Relative duality gap to reach.
      max_steps: Steps after which the fit gives up.
      start: Starting table `s`; zeros stay zero. Ones by default.

    See Csiszár & Tusnády (1984) on the loss; `PrimalDual` for the iteration.
    """

    name = "poisson"
    tolerance: float = 1e-6
    max_steps: int = 100_000
    start: Sequence[float] | NDArray[np.floating] | None = None

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        whole("max_steps", self.max_steps, 1)

    def prepare(self, design: Design) -> Prepared:
        """Index the inner cells once for many right-hand sides, when they are needed first."""
        return _PreparedPoisson(self, design)


@dataclass(frozen=True, eq=False)
class PoissonLoss:
    """What a table costs against weighted published values, and the bound that proves it."""

    z: Real
    weights: Real

    @cached_property
    def counts(self) -> Mask:
        """Published cells with data."""
        return (self.z > 0) & (self.weights > 0)

    @property
    def top(self) -> float:
        """The largest weight."""
        return float(self.weights.max(initial=0.0)) or 1.0

    def __call__(self, mu: Real) -> float:
        r"""The loss :math:`\sum_k w_k(z_k\log(z_k/\mu_k) - z_k + \mu_k)`; it may be infinite."""
        z, counts = self.z, self.counts
        if (mu[counts] <= 0).any():
            return math.inf
        log_ratio = np.zeros_like(z)
        log_ratio[counts] = np.log(z[counts] / mu[counts])
        return dot(self.weights, z * log_ratio - z + mu)

    def score(self, mu: Real) -> Real:
        """Minus the derivative of the loss by the margins."""
        score = -self.weights
        score[self.counts] += (self.weights * self.z)[self.counts] / mu[self.counts]
        return score

    def bound(self, u: Real) -> float:
        r"""The bound :math:`\sum_k w_k z_k\log(1 + u_k/w_k)` on the loss, for :math:`Xu \le 0`."""
        ratio = u[self.counts] / self.weights[self.counts]
        if (ratio <= -1).any():
            return -math.inf
        return dot((self.weights * self.z)[self.counts], np.log1p(ratio))

    def parts(self, mu: Real, u: Real) -> Real:
        r"""The parts that published cells have in the gap, divided by their weights.

        With :math:`r = \mu(w + u)/(wz)`, margins over those that `u` stands for, the gap is
        :math:`\sum_k w_kz_k(r_k - 1 - \log r_k) - \sum_i y_i(Xu)_i`, and no term is negative.
        Nothing large cancels, as it does between a loss and its bound.
        """
        z, w, counts = self.z, self.weights, self.counts
        share = 1.0 + np.divide(u, w, out=np.zeros_like(u), where=w > 0)
        if (mu[counts] <= 0).any() or (share[counts] <= 0).any():
            return np.full_like(z, math.inf)
        excess = (mu[counts] * share[counts] - z[counts]) / z[counts]
        parts = np.where(w > 0, mu * share, 0.0)
        parts[counts] = z[counts] * (excess - np.log1p(excess))
        return parts

    def gap(self, mu: Real, u: Real, inner: float | None = None) -> float:
        """How far the loss of margins may lie above the least one, relative to its unit.

        `inner` is what inner cells add; without it it is found from the margins.
        """
        loss, parts = self(mu), dot(self.weights, self.parts(mu, u))
        if not (math.isfinite(loss) and math.isfinite(parts)):
            return math.inf
        unit = max(loss, _SMALL * dot(self.weights, self.z)) or 1.0
        return (parts + (-dot(mu, u) if inner is None else inner)) / unit


class _PreparedPoisson(PreparedLikelihood):
    """The fitter on one design."""

    options: Poisson

    def __call__(
        self, z: NDArray[np.generic], *, weights: NDArray[np.generic] | None = None
    ) -> Fit:
        began, design, tolerance = time.perf_counter(), self.design, self.options.tolerance
        w = checked_weights(design, weights)
        target = checked_values(design, z, w > 0)
        target = checked_counts(design, target, tolerance, self.options.name)
        if (table := self._fit_consistent(PoissonLoss(target, w))) is not None:
            return replace(table, seconds=time.perf_counter() - began)
        # Cells that no table can fill cost the same in every table: left in, they would make every
        # loss infinite. The status tells of them.
        reachable = design.aggregate((self.start > 0).astype(np.int64)) > 0
        search = _PoissonSearch(self, PoissonLoss(target, np.where(reachable, w, 0.0)))
        table = search.run()
        certificate = search.certify(table)
        status = Status.converged if certificate.holds else search.status
        if bool((~reachable & (w > 0) & (target > 0)).any()):
            status = Status.inconsistent
        notes = {"solver": search.solver, "dual": search.dual}
        notes["multipliers"] = table.notes["multipliers"]
        steps, seconds = search.steps + table.iterations, time.perf_counter() - began
        return Fit(table.cells, table.z, status, certificate, steps, seconds, notes, design)

    def _fit_consistent(self, loss: PoissonLoss) -> Fit | None:
        """The log-linear fit of a large complete table whose margins some table has."""
        tolerance = self.options.tolerance
        likely = LogLinear(tolerance=tolerance, start=self.options.start)
        table = fit_complete(likely, self.design, loss.z, loss.weights > 0)
        if isinstance(table, str) or not table.is_converged:
            return None
        nothing = np.zeros_like(loss.z)
        own = float(loss.parts(table.z, nothing).max(initial=0.0)) / _OWN
        gap = loss.gap(table.z, nothing, 0.0)
        certificate = Certificate(stationarity=own, gap=gap, tolerance=tolerance)
        notes = table.notes | {"dual": nothing}
        return replace(table, certificate=certificate, notes=notes) if certificate.holds else None


class _PoissonSearch:
    """First the optimal margins and a dual vector that proves them, then the log-linear table."""

    def __init__(self, given: _PreparedPoisson, loss: PoissonLoss) -> None:
        self._given, self.loss = given, loss
        self._cells, used, groups = np.flatnonzero(given.start > 0), loss.weights > 0, given.members
        if not used.all():
            groups = groups.using(used, np.zeros(len(groups.nested), dtype=bool))
        self._state = PrimalDual(groups.restrict(self._cells), loss.z, loss.weights, POISSON)
        self._bound, self.dual = 0.0, np.zeros(len(loss.z))
        self._slopes = np.zeros(len(self._cells))
        self.steps, self.status, self.solver = 0, Status.stalled, "primal-dual steps"

    def run(self) -> Fit:
        """Sharpen the margins until the log-linear table made from them is an optimum."""
        accuracy, most = self._given.options.tolerance, self._given.options.max_steps
        entries = len(self._cells) * len(self.loss.z)
        has_factors = most > _BEFORE_FACTORS and entries <= _MOST_ENTRIES and self.loss.counts.any()
        while True:
            reached = self._minimise(accuracy, _BEFORE_FACTORS if has_factors else most)
            is_open = self._slopes >= -_FACE * accuracy * self.loss.top
            is_last = not reached or accuracy < _SHARPEST
            # Margins that fall short themselves make no table that does not, and making it takes as
            # long as finding them.
            if is_last or self._certify_margins(is_open).holds:
                table = self._log_linear(self._state.y, is_open, accuracy)
                if self.certify(table).holds:
                    return table
            if is_last:
                return self._by_factors() if has_factors else table
            accuracy *= _SHARPER

    def _certify_margins(self, is_open: Mask) -> Certificate:
        """The certificate of the table at hand, before the log-linear one is made of its sums."""
        design, y = self._given.design, np.zeros(self._given.design.n_inner)
        y[self._cells] = np.where(is_open, self._state.y, 0.0)
        return self.certify(Fit(y, design.aggregate(y), self.status, Certificate(selection=0.0)))

    def _minimise(self, accuracy: float, max_steps: int) -> bool:
        """Iterate until gap and slopes are known to the accuracy, if steps suffice."""
        while self._distance() > accuracy:
            left = max_steps - self.steps
            if left <= 0:
                self.status = Status.max_steps
                return False
            self.steps += self._state.iterate(min(_CHECK_EVERY, left))
            dual = self._state.feasible_dual(np.full(len(self.dual), np.inf))
            if (value := self.loss.bound(dual)) > self._bound:
                self._bound, self.dual = value, dual
        return True

    def _distance(self) -> float:
        """The larger of the relative gap, a cell's own part and the uncertainty of the slopes."""
        state, loss, mu = self._state, self.loss, self._state.current_margins()
        # Half of the tolerance is left for the last table.
        gap = 2 * loss.gap(mu, self.dual)
        done = math.log(min(max(gap, 1e-300), 1.0)) / math.log(self._given.options.tolerance)
        report("Poisson fit", done)
        if not math.isfinite(gap):
            return math.inf
        own = 2 * float(loss.parts(mu, self.dual).max(initial=0.0)) / _OWN
        # At the optimum the dual vector equals the score of margins wherever a published cell is
        # positive, so their difference tells how well both are known. For the choice of cells that
        # may be positive the larger slope of the two counts.
        score = loss.score(mu)
        doubt = state.members.adjoint(np.where(loss.z > 0, state.u[:-1] - score, 0.0))
        slopes = state.members.adjoint(score)
        self._slopes = slopes + np.maximum(doubt, 0.0)
        worst = max(float(np.abs(doubt).max(initial=0.0)), float(slopes.max(initial=0.0)))
        return max(gap, own, min(worst / loss.top / _SURE, gap / _NEGLIGIBLE))

    def _by_factors(self) -> Fit:
        """The optimum of a small table by dense factors, where steps did not arrive."""
        loss, state, accuracy = self.loss, self._state, self._given.options.tolerance
        X = self._given.design.matrix()[self._cells].toarray().astype(np.float64)
        lightest = float(loss.weights[loss.weights > 0].min())
        seen = np.flatnonzero(X @ loss.weights > 0)
        found = follow_path(X[seen], loss.z, loss.weights, _SHARE * _OWN * accuracy * lightest)
        y, is_open = np.zeros(len(X)), np.ones(len(X), dtype=bool)
        y[seen], is_open[seen] = found.y, found.is_open
        state.u[:-1] = found.score
        state.forget_slopes()
        self.dual = state.feasible_dual(np.full(len(self.dual), np.inf))
        self.steps, self.status = self.steps + found.steps, Status.stalled
        self.solver = "interior path"
        table = self._log_linear(y, is_open, accuracy)
        if not self.certify(table).holds:
            table = self._log_linear(y, is_open, accuracy, by_factors=True)
        return table

    def _log_linear(self, y: Real, is_open: Mask, accuracy: float, by_factors: bool = False) -> Fit:
        """The log-linear table with the optimal margins on the cells that need not be zero.

        Its margins are met where they are the same in all optima: in published cells with data and
        in empty ones.
        """
        design, members, loss = self._given.design, self._given.members, self.loss
        mass, start = np.zeros(design.n_inner), np.zeros(design.n_inner)
        mass[self._cells] = np.where(is_open, y, 0.0)
        start[self._cells] = np.where(is_open, self._given.start[self._cells], 0.0)
        fixed = loss.counts | (design.aggregate((start > 0).astype(np.int64)) == 0)
        margins = design.aggregate(mass)

        def is_enough(mu: Real) -> bool:
            # A part of the tolerance is for the margins found; what is left for these is the rest.
            seen = loss.counts & (margins > 0)
            ratio = np.divide(mu - margins, margins, out=np.zeros_like(mu), where=seen)
            if (ratio <= -1).any():
                return False
            raised = np.where(loss.counts, loss.z * (ratio - np.log1p(ratio)), 0.0)
            limit = _SHARE * accuracy
            is_small = float(raised.max(initial=0.0)) <= _OWN * limit
            return is_small and loss.gap(mu, self.dual) <= loss.gap(margins, self.dual) + limit

        tolerance = accuracy * float(loss.z.max(initial=0.0)) or 1.0
        return fit_stored(
            LogLinear(tolerance=tolerance, max_steps=_GRADIENTS),
            design,
            members,
            start,
            np.where(fixed, margins, 0.0),
            fixed,
            is_enough,
            by_factors,
        )

    def certify(self, table: Fit) -> Certificate:
        """The certificate of a table, with the dual vector that was found."""
        possible = self._given.start > 0
        tolerance = self._given.options.tolerance
        return certify_poisson(self._given.design, self.loss, table, self.dual, tolerance, possible)


def certify_poisson(
    design: Design,
    loss: PoissonLoss,
    table: Fit,
    dual: Real,
    tolerance: float,
    possible: Mask | None = None,
) -> Certificate:
    r"""The duality gap, each cell's part in it and the bounds, with the design alone.

    A slope that is left counts by what its cell could gain with the lightest of its published cells
    alone, nearly, and by no more than its part in the gap; what rounding makes of the terms of its
    sum does not count. `selection` is the distance from :math:`s\,e^{X\nu}`. Inner cells that are
    not `possible` stay zero.
    """
    w, y, counts = loss.weights, np.asarray(table.y, dtype=np.float64), loss.counts
    mu, slopes = design.aggregate(y), design.adjoint(dual)
    if possible is not None:
        slopes = np.where(possible, slopes, 0.0)
    light, easing = design.adjoint(pseudo_inverse(w)), np.zeros_like(mu)
    easing[counts] = mu[counts] ** 2 / (w * loss.z)[counts]
    rounding = _ROUNDING * design.adjoint(np.abs(dual))
    inner, left = y * np.maximum(-slopes, 0.0), np.maximum(np.abs(slopes) - rounding, 0.0)
    gain = np.minimum(y * left, 0.5 * left**2 * design.adjoint(easing)) * light
    parts = loss.parts(mu, dual)
    below = np.where(w > 0, -w - dual, np.abs(dual)).max(initial=0.0) / loss.top
    above = np.where(slopes > 0, left * light, 0.0).max(initial=0.0)
    return Certificate(
        stationarity=max(float(parts.max(initial=0.0)), float(gain.max(initial=0.0))) / _OWN,
        feasibility=max(float(below), float(above), -float(y.min(initial=0.0)), 0.0),
        gap=loss.gap(mu, dual, float(inner.sum())),
        tolerance=tolerance,
        selection=table.certificate.stationarity,
    )


# Entries of a dense matrix up to which the path is followed.
_MOST_ENTRIES = 1e5
# Factor by which the barrier falls once the path was reached, and steps at most.
_FALL = 0.1
_PATH_STEPS = 150
# Part of the way to the bound that a step may go.
_BOUNDARY = 0.9
# Steps with the last barrier: each squares the error until rounding is left.
_LAST_STEPS = 6


class InteriorPoint(NamedTuple):
    """Inner cells, those that need not be zero, the score of the margins, and the steps taken."""

    y: Real
    is_open: Mask
    score: Real
    steps: int


def follow_path(X: Real, z: Real, weights: Real, last: float) -> InteriorPoint:
    """The optimum for published values, some of them positive, at a small last barrier.

    Inner cells all count in a cell with weight. Published zeros have a price that does not bend.
    """
    counts = (z > 0) & (weights > 0)
    A, w, n = X[:, counts], weights[counts], len(X)
    data, price = w * z[counts], X @ np.where(counts, 0.0, weights)
    y = np.full(n, float(data.sum()) / float(weights @ X.sum(axis=0)))
    barrier = float(np.mean(y * (A @ w + price)))
    s, steps, left = barrier / y, 0, _LAST_STEPS
    while left and steps < _PATH_STEPS:
        mu = y @ A
        root, hold = np.sqrt(data) / mu, np.sqrt(y * s)
        rows = np.vstack([(A * y[:, None] * root).T, np.diag(hold)])
        right = np.concatenate([(data / mu - w) / root, (barrier - y * price) / hold])
        p = RowScaledFactor(rows, np.ones(len(rows))).solve(right)
        # No cell goes further than most of the way to zero, and no margin more than doubles: the
        # model of the logarithm ends there.
        bend = float(np.abs((p * y) @ A / mu).max(initial=0.0))
        step = min(1.0, _BOUNDARY / max(-float(p.min()), _BOUNDARY), 1.0 / max(bend, 1.0))
        change = barrier / y - s - s * p
        dual_step = min(1.0, _BOUNDARY / max(float((-change / s).max()), _BOUNDARY))
        y, s = y * (1.0 + step * p), s + dual_step * change
        steps += 1
        if barrier <= last:
            left -= 1
        elif step * dual_step > _BOUNDARY or _is_on_path(A, data, w, price, y, s, barrier):
            barrier = max(_FALL * barrier, last)
    mu, score = y @ A, -weights.copy()
    score[counts] += data / mu
    # Values and slopes multiply to the barrier. Where the slope is the larger one, each relative to
    # the least margin or weight of the cell, an optimum has a zero.
    least = np.where(A > 0, mu, np.inf).min(axis=1, initial=np.inf)
    lightest = np.where(X > 0, np.where(weights > 0, weights, np.inf), np.inf).min(axis=1)
    return InteriorPoint(y, y / least >= s / lightest, score, steps)


def _is_on_path(
    A: Real, data: Real, w: Real, price: Real, y: Real, s: Real, barrier: float
) -> bool:
    """Whether slopes are those of the barrier, nearly enough for the next one."""
    off = np.abs(y * (price - A @ (data / (y @ A) - w) - s)).max()
    return bool(off <= barrier and np.abs(y * s - barrier).max() <= barrier / 2)
