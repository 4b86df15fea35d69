"""Least absolute deviation, non-negative: maximum likelihood under Laplace noise."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.membership import Membership
from discreet.solve.absolute.gaps import own_gaps, ridge_gap
from discreet.solve.absolute.schedule import SCHEDULE
from discreet.solve.absolute.search import Search
from discreet.solve.fit import Certificate, Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import check_options, checked_values, checked_weights
from discreet.solve.least_squares.goal import Accuracy, Goal

Vector = NDArray[np.float64]


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

    See Langsrud (2019b) on the noise; `Search` for the way there.
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
    search = Search(groups, target, w, goal, options.max_steps)
    search.run()
    certificate = certify(
        design, target, w, search.y, search.dual, search.ridge, search.ridge_dual, accuracy
    )
    status = Status.converged if certificate.holds else search.status
    notes = {"dual": search.dual, "ridge": search.ridge, "ridge_dual": search.ridge_dual}
    y, seconds = search.y, time.perf_counter() - began
    return Fit(y, design.aggregate(y), status, certificate, search.steps, seconds, notes, design)


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
    size = max(loss, SCHEDULE.small_loss * float(weights @ np.abs(z))) or 1.0
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
