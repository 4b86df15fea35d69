r"""Poisson likelihood fits: log-linear tables from weighted margins that contradict each other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.membership import Membership
from discreet.progress import report
from discreet.solve.absolute.saddle import SaddlePoint
from discreet.solve.absolute.saddle_kernels import POISSON
from discreet.solve.fit import Certificate, Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import (
    check_tolerance,
    check_whole,
    checked_values,
    checked_weights,
    non_negative,
)
from discreet.solve.likelihood.indexed import Indexed
from discreet.solve.likelihood.log_linear import LogLinear, fit_members, newton_fit
from discreet.solve.likelihood.schedule import POISSON as SCHEDULE

Vector = NDArray[np.float64]


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
    `tolerance` times the loss, or times 1e-4 of :math:`\sum_k w_k z_k` where that is more. The
    notes hold `u` and the multipliers :math:`\nu`. The margins are those of an optimum as nearly as
    this gap tells: log-linear sweeps end once they raise the loss by no more than a hundredth of
    the tolerance, and inner cells with scores below twenty times the tolerance, relative to the
    largest weight, are not among those set to zero.

    Cost: large complete tables whose margins add up cost what they cost `LogLinear`. Else a few
    hundred to a few thousand passes over the inner cells that may be positive and the
    published cells that they count in, then some ten log-linear sweeps.

    Args:
      tolerance: Relative duality gap to reach.
      max_steps: Steps after which the fit gives up.
      start: Starting table `s`; zeros stay zero. Ones by default.

    See Csiszár & Tusnády (1984) on the loss; `SaddlePoint` for the iteration.
    """

    tolerance: float = 1e-6
    max_steps: int = 100_000
    start: Sequence[float] | NDArray[np.floating] | None = None

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        check_whole("max_steps", self.max_steps, 1)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "poisson"

    def prepare(self, design: Design) -> Prepared:
        """Index the inner cells once for many right-hand sides, when they are needed first."""
        return _Prepared(self, design)


class _Prepared(Indexed):
    """The fitter on one design."""

    options: Poisson

    def __call__(
        self, z: NDArray[np.generic], *, weights: NDArray[np.generic] | None = None
    ) -> Fit:
        began, design, tolerance = time.perf_counter(), self.design, self.options.tolerance
        w = checked_weights(design, weights)
        target = checked_values(design, z, w > 0)
        target = non_negative(design, target, tolerance, self.options.name)
        if (table := self._that_adds_up(target, w)) is not None:
            return replace(table, seconds=time.perf_counter() - began)
        reachable = design.aggregate((self.start > 0).astype(np.int64)) > 0
        used = np.where(reachable, w, 0.0)
        search = _Search(design, self.members, target, used, self.start, self.options)
        table = search.run()
        certificate = certify(design, target, w * reachable, table, search.dual, tolerance)
        status = Status.converged if certificate.holds else search.status
        if bool((~reachable & (w > 0) & (target > 0)).any()):
            status = Status.inconsistent
        notes = {"solver": "primal-dual steps", "dual": search.dual}
        notes["multipliers"] = table.notes["multipliers"]
        steps, seconds = search.steps + table.iterations, time.perf_counter() - began
        return Fit(table.cells, table.z, status, certificate, steps, seconds, notes, design)

    def _that_adds_up(self, z: Vector, w: Vector) -> Fit | None:
        """The log-linear fit of a large complete table whose margins some table has."""
        likely = LogLinear(tolerance=self.options.tolerance, start=self.options.start)
        table = newton_fit(likely, self.design, z, w > 0)
        if isinstance(table, str) or not table.is_converged:
            return None
        loss = poisson_loss(z, table.z, w)
        gap = loss / size_of(loss, z, w)
        certificate = Certificate(gap=gap, tolerance=self.options.tolerance)
        notes = table.notes | {"dual": np.zeros_like(z)}
        return replace(table, certificate=certificate, notes=notes) if certificate.holds else None


class _Search:
    """First the optimal margins and a dual vector that proves them, then the log-linear table."""

    def __init__(
        self,
        design: Design,
        members: Membership,
        z: Vector,
        weights: Vector,
        start: Vector,
        options: Poisson,
    ) -> None:
        self._design, self._members = design, members
        self._tolerance, self._max_steps = options.tolerance, options.max_steps
        self._z, self._weights, self._start = z, weights, start
        self._cells, used = np.flatnonzero(start > 0), weights > 0
        groups = members if used.all() else members.using(used, np.zeros(len(members.nested), bool))
        self._state = SaddlePoint(groups.restricted(self._cells), z, weights, POISSON)
        self._top = float(weights.max(initial=0.0)) or 1.0
        self._bound, self.dual = 0.0, np.zeros(len(z))
        self._slopes = np.zeros(len(self._cells))
        self.steps, self.status = 0, Status.stalled

    def run(self) -> Fit:
        """Sharpen the margins until the log-linear table made from them is an optimum."""
        accuracy = self._tolerance
        while True:
            reached = self._minimise(accuracy)
            table = self._log_linear(accuracy)
            gap = self._gap(poisson_loss(self._z, table.z, self._weights))
            if gap <= self._tolerance or not reached or accuracy < SCHEDULE.sharpest:
                return table
            accuracy *= SCHEDULE.sharper

    def _minimise(self, accuracy: float) -> bool:
        """Iterate until gap and slopes are known to the accuracy, if steps suffice."""
        while self._distance() > accuracy:
            left = self._max_steps - self.steps
            if left <= 0:
                self.status = Status.max_steps
                return False
            self.steps += self._state.iterate(min(SCHEDULE.check_every, left))
            self._raise_bound()
        return True

    def _raise_bound(self) -> None:
        """Keep the best dual vector met that is feasible."""
        for dual in self._state.feasible_duals(np.full(len(self._z), np.inf)):
            if (value := dual_value(self._z, dual, self._weights)) > self._bound:
                self._bound, self.dual = value, dual

    def _distance(self) -> float:
        """The larger of the relative gap and the uncertainty of the slopes.

        At the optimum the dual vector equals the score of the margins wherever a published cell is
        positive, so their difference tells how well both are known. Slopes for the choice of cells
        that may be positive are the larger ones of the two.
        """
        state, mu = self._state, self._state.margins(self._state.y)
        gap = 2 * self._gap(poisson_loss(self._z, mu, self._weights))
        report("Poisson fit", math.log(min(max(gap, 1e-300), 1.0)) / math.log(self._tolerance))
        if not math.isfinite(gap):
            return math.inf
        score = score_of(self._z, mu, self._weights)
        doubt = state.slopes(np.append(np.where(self._z > 0, state.u[:-1] - score, 0.0), 0.0))
        slopes = state.slopes(np.append(score, 0.0))
        self._slopes = slopes + np.maximum(doubt, 0.0)
        worst = max(float(np.abs(doubt).max(initial=0.0)), float(slopes.max(initial=0.0)))
        return max(gap, min(worst / self._top / SCHEDULE.sure, gap / SCHEDULE.negligible))

    def _gap(self, loss: float) -> float:
        if math.isinf(loss):
            return math.inf
        return (loss - self._bound) / size_of(loss, self._z, self._weights)

    def _log_linear(self, accuracy: float) -> Fit:
        """The log-linear table with the optimal margins on the cells that need not be zero."""
        face = self._slopes >= -SCHEDULE.face * accuracy * self._top
        mass, start = np.zeros(self._design.n_inner), np.zeros(self._design.n_inner)
        mass[self._cells] = np.where(face, self._state.y, 0.0)
        start[self._cells] = np.where(face, self._start[self._cells], 0.0)
        margins = self._design.aggregate(mass)
        return fit_members(
            LogLinear(tolerance=self._harmless(accuracy), max_steps=SCHEDULE.sweeps),
            self._design,
            self._members,
            start,
            margins,
            weights=self._fixed(start),
            is_enough=self._is_near(margins, accuracy),
        )

    def _fixed(self, start: Vector) -> NDArray[np.bool_]:
        """Published cells that are the same in all optima: those with data, and the empty ones."""
        empty = self._design.aggregate((start > 0).astype(np.int64)) == 0
        return np.asarray((self._weights > 0) & (self._z > 0) | empty)

    def _is_near(self, margins: Vector, accuracy: float) -> Callable[[Vector], bool]:
        """Tells whether the loss of a table is near that of the margins."""
        z, w = self._z, self._weights
        loss = poisson_loss(z, margins, w)
        limit = loss + SCHEDULE.share * accuracy * size_of(loss, z, w)
        return lambda mu: poisson_loss(z, mu, w) <= limit < math.inf

    def _harmless(self, accuracy: float) -> float:
        """A deviation of the margins that changes the loss by less than the accuracy."""
        z, w, mu = self._z, self._weights, self._state.margins(self._state.y)
        largest, loss = float(z.max(initial=0.0)) or 1.0, poisson_loss(z, mu, w)
        if math.isinf(loss):
            return accuracy * largest
        slope = float(np.abs(score_of(z, mu, w)).sum())
        return accuracy * min(SCHEDULE.share * size_of(loss, z, w) / max(slope, 1e-300), largest)


def poisson_loss(z: Vector, mu: Vector, weights: Vector) -> float:
    r"""The loss :math:`\sum_k w_k(z_k\log(z_k/\mu_k) - z_k + \mu_k)`; it may be infinite."""
    counts = (z > 0) & (weights > 0)
    if (mu[counts] <= 0).any():
        return math.inf
    log_ratio = np.zeros_like(z)
    log_ratio[counts] = np.log(z[counts] / mu[counts])
    return float(weights @ (z * log_ratio - z + mu))


def score_of(z: Vector, mu: Vector, weights: Vector) -> Vector:
    """Minus the derivative of the loss by the margins."""
    counts = (z > 0) & (weights > 0)
    score = -weights
    score[counts] += (weights * z)[counts] / mu[counts]
    return score


def dual_value(z: Vector, u: Vector, weights: Vector) -> float:
    r"""The bound :math:`\sum_k w_k z_k\log(1 + u_k/w_k)` on the loss."""
    counts = (z > 0) & (weights > 0)
    ratio = u[counts] / weights[counts]
    if (ratio <= -1).any():
        return -math.inf
    return float((weights * z)[counts] @ np.log1p(ratio))


def size_of(loss: float, z: Vector, weights: Vector) -> float:
    """What gaps are relative to."""
    return max(loss, SCHEDULE.small * float(weights @ z)) or 1.0


def certify(
    design: Design, z: Vector, weights: Vector, table: Fit, dual: Vector, tolerance: float
) -> Certificate:
    """The duality gap and the bounds, with the design alone; `stationarity` is the table's own."""
    loss = poisson_loss(z, design.aggregate(table.y), weights)
    gap = math.inf
    if math.isfinite(loss):
        gap = (loss - dual_value(z, dual, weights)) / size_of(loss, z, weights)
    top = float(weights.max(initial=0.0)) or 1.0
    below = np.maximum(-weights - dual, np.where(weights > 0, -np.inf, np.abs(dual)))
    outside = max(float(v.max(initial=0.0)) for v in (below, design.adjoint(dual))) / top
    return Certificate(
        stationarity=table.certificate.stationarity,
        feasibility=max(outside, -float(table.y.min(initial=0.0)), 0.0),
        gap=max(gap, 0.0),
        tolerance=tolerance,
    )
