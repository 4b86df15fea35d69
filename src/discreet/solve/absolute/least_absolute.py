"""Least absolute deviation, non-negative: maximum likelihood under Laplace noise."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.membership import Membership
from discreet.progress import report
from discreet.solve.absolute.saddle import SaddlePoint
from discreet.solve.absolute.saddle_kernels import ABSOLUTE
from discreet.solve.fit import Certificate, Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import check_options, checked_values, checked_weights
from discreet.solve.least_squares.goal import Accuracy, Goal

Vector = NDArray[np.float64]

_CHECK_EVERY = 200
_FIRST_RIDGE = 10.0  # times the largest weight, over the largest inner cell
_NEXT_RIDGE = 0.1
_LAST_RIDGE = 1e-7
_SHARE = 0.1  # once this share of the excess loss is due to unfinished steps, the ridge is to blame
_OWN, _OWN_SHARE = 0.1, 1e-4  # counts, or times its residual, of the gap that a cell may have
_SMALL = 1e-4  # a loss below this share of the weighted data is measured against that share


@dataclass(frozen=True, eq=False)
class LeastAbsolute(FitterBase):
    r"""Maximum likelihood under Laplace noise.

    .. math:: \min_{y \ge 0} \sum_k w_k\,|x_k^\top y - z_k|

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
    residual, however large the others are.

    Cost: one compiled pass over the inner cells that are positive or nearly so in each of a few
    thousand steps; four bytes per margin and inner cell.

    Args:
      tolerance: Relative duality gap to reach.
      max_steps: Steps after which the fit gives up.
      count: What one count is in the units of the data.

    See Langsrud (2019b) on the noise; `SaddlePoint` for the iteration.
    """

    tolerance: float = 1e-4
    max_steps: int = 100_000
    count: float = 1.0

    def __post_init__(self) -> None:
        check_options(self.tolerance, self.max_steps, self.count)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "least-absolute"

    def prepare(self, design: Design) -> Prepared:
        """Index the inner cells once for many right-hand sides."""
        return partial(_fit, self, design, Membership.of(design))


def _fit(
    options: LeastAbsolute,
    design: Design,
    members: Membership,
    z: NDArray[np.generic],
    *,
    weights: NDArray[np.generic] | None = None,
) -> Fit:
    began = time.perf_counter()
    w = np.sqrt(checked_weights(design, weights))
    target = checked_values(design, z, w > 0)
    none = np.zeros(len(members.nested), dtype=bool)
    accuracy = Accuracy(options.tolerance, options.count)
    goal = Goal.of(design, target, w, np.empty(0, dtype=np.int64), accuracy)
    groups = members if (w > 0).all() else members.using(w > 0, none)
    search = _Search(groups, target, w, options, goal)
    search.run()
    certificate = certify(
        design, target, w, search.y, search.dual, search.ridge, search.ridge_dual, accuracy
    )
    status = Status.converged if certificate.holds else search.status
    notes = {
        "solver": "primal-dual steps",
        "dual": search.dual,
        "ridge": search.ridge,
        "ridge_dual": search.ridge_dual,
    }
    y, seconds = search.y, time.perf_counter() - began
    return Fit(y, design.aggregate(y), status, certificate, search.steps, seconds, notes, design)


class _Search:
    """First the minimum and a dual vector that proves it, then the minimiser of smallest norm."""

    def __init__(
        self,
        members: Membership,
        z: Vector,
        weights: Vector,
        options: LeastAbsolute,
        goal: Goal,
    ) -> None:
        self.members, self.z, self.weights, self.options = members, z, weights, options
        self._goal = goal
        self.y = np.zeros(members.n_inner)
        self.dual = self.ridge_dual = np.zeros(len(z))
        self.ridge, self.steps, self.status = 0.0, 0, Status.stalled
        self._bound, self._loss = 0.0, float(weights @ np.abs(z))
        self._floor = _SMALL * self._loss or 1.0
        self._top = float(weights.max(initial=0.0)) or 1.0

    def run(self) -> None:
        """Both stages; the second begins afresh with a large ridge."""
        first, second = (
            SaddlePoint(self.members, self.z, self.weights, ABSOLUTE, self._goal.size)
            for _ in range(2)
        )
        self._find_minimum(first)
        if self._gap(self._loss) <= self.options.tolerance:
            self._find_smallest(second)

    def _find_minimum(self, state: SaddlePoint) -> None:
        """Close the gap to half of what is allowed."""
        while self._is_open(state) and self._iterate(state):
            self._raise_bound(state)
            loss = self._loss_of(state)
            if loss < self._loss:
                self._loss, self.y = loss, state.y.copy()
            report("least absolute deviation", 0.5 * self._progress(self._gap(self._loss)))

    def _find_smallest(self, state: SaddlePoint) -> None:
        """Lower the ridge until it costs no more than the tolerance."""
        largest = float(self.y.max(initial=0.0)) or 1.0
        ridge = _FIRST_RIDGE * self._top / largest
        while ridge * largest >= _LAST_RIDGE * self._top:
            state.set_ridge(ridge)
            while self._iterate(state):
                loss, excess, size = self._with_ridge(state)
                worst = max(self._gap(loss), excess / size, self._own_gap(state, state.y))
                report("least absolute deviation", 0.5 + 0.5 * self._progress(worst))
                if worst <= self.options.tolerance:
                    self.y, self.ridge, self.ridge_dual = state.y.copy(), ridge, state.u[:-1].copy()
                    return
                if excess <= _SHARE * (loss - self._bound):
                    break
            ridge *= _NEXT_RIDGE

    def _iterate(self, state: SaddlePoint) -> bool:
        """Take some steps, unless there are none left."""
        left = self.options.max_steps - self.steps
        if left <= 0:
            self.status = Status.max_steps
            return False
        self.steps += state.iterate(min(_CHECK_EVERY, left))
        return True

    def _is_open(self, state: SaddlePoint) -> bool:
        """Whether the gap is too wide as a whole, or for a cell of its own."""
        tolerance = self.options.tolerance / 2
        return self._gap(self._loss) > tolerance or self._own_gap(state, self.y) > tolerance

    def _own_gap(self, state: SaddlePoint, y: Vector) -> float:
        slopes = state.slopes(np.append(self.dual, 0.0))
        residual = self.z - state.margins(y)
        return own_gaps(self._goal, self.weights, residual, y, self.dual, slopes)[0]

    def _gap(self, loss: float) -> float:
        return (loss - self._bound) / max(loss, self._floor)

    def _loss_of(self, state: SaddlePoint) -> float:
        return float(self.weights @ np.abs(state.margins(state.y) - self.z))

    def _with_ridge(self, state: SaddlePoint) -> tuple[float, float, float]:
        """The loss, the gap of the problem with the ridge, and that problem's size."""
        loss = self._loss_of(state)
        return loss, *ridge_gap(loss, self.z, state.ridge, state.y, state.u, state.slopes(state.u))

    def _raise_bound(self, state: SaddlePoint) -> None:
        """Keep the best dual vector met that is feasible."""
        for dual in state.feasible_duals(self.weights):
            if (value := float(self.z @ dual)) > self._bound:
                self._bound, self.dual = value, dual

    def _progress(self, gap: float) -> float:
        return math.log(max(gap, 1e-300)) / math.log(self.options.tolerance)


def own_gaps(
    goal: Goal, weights: Vector, residual: Vector, y: Vector, dual: Vector, slopes: Vector
) -> tuple[float, float, int]:
    r"""The largest share of the gap that one cell has, on its own scale.

    The gap is the sum of :math:`w_k|r_k| - u_kr_k` over the published and :math:`-y_i(Xu)_i` over
    the inner cells, and none of them is negative.

    Returns:
      The largest, in units of which the tolerance is allowed; the largest of a published cell in
      counts; and its position.
    """
    own = np.abs(residual) - np.divide(
        dual * residual, weights, out=np.abs(residual), where=weights > 0
    )
    unit = np.maximum(goal.accuracy.count, _OWN_SHARE * np.abs(residual))
    inner = -y * slopes / goal.gradient * goal.accuracy.tolerance
    worst = max(float((own / unit).max(initial=0.0)), float(inner.max(initial=0.0)))
    cell = int(own.argmax()) if len(own) else 0
    return goal.accuracy.tolerance * worst / _OWN, float(own.max(initial=0.0)), cell


def ridge_gap(
    loss: float, z: Vector, ridge: float, y: Vector, u: Vector, slopes: Vector
) -> tuple[float, float]:
    r"""Primal minus dual value of the loss plus :math:`\tfrac{\rho}{2}\|y\|^2`, and the former.

    Any `u` within the weights is dual feasible there; its value is
    :math:`z^\top u - \|(Xu)_+\|^2/(2\rho)`.
    """
    primal = loss + 0.5 * ridge * float(y @ y)
    up = np.maximum(slopes, 0.0)
    dual = float(z @ u[: len(z)]) - float(up @ up) / (2.0 * ridge)
    return primal - dual, max(primal, np.finfo(float).tiny)


def certify(
    design: Design,
    z: Vector,
    weights: Vector,
    y: Vector,
    dual: Vector,
    ridge: float,
    ridge_dual: Vector,
    accuracy: Accuracy,
) -> Certificate:
    """Both duality gaps and all bounds, with the design alone; `stationarity` is cell by cell.

    `gap` is that of the loss, `selection` that of the loss with the ridge (one if there is
    none); both are relative. `feasibility` covers the inner cells and both dual vectors.
    """
    residual = z - design.aggregate(y)
    goal = Goal.of(design, z, weights, np.empty(0, dtype=np.int64), accuracy)
    own, deviation, cell = own_gaps(goal, weights, residual, y, dual, design.adjoint(dual))
    loss = float(weights @ np.abs(residual))
    top = float(weights.max(initial=0.0)) or 1.0
    over = [np.abs(v) - weights for v in (dual, ridge_dual)]
    infeasible = max(float(v.max(initial=0.0)) for v in (*over, design.adjoint(dual))) / top
    size = max(loss, _SMALL * float(weights @ np.abs(z))) or 1.0
    selection = 1.0
    if ridge > 0:
        excess, primal = ridge_gap(loss, z, ridge, y, ridge_dual, design.adjoint(ridge_dual))
        selection = excess / primal
    return Certificate(
        feasibility=max(infeasible, -float(y.min(initial=0.0)), 0.0),
        stationarity=own,
        gap=max((loss - float(z @ dual)) / size, 0.0),
        tolerance=accuracy.tolerance,
        selection=max(selection, 0.0),
        deviation=deviation,
        cell=cell if len(z) else None,
    )
