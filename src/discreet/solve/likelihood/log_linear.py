"""Log-linear fits: Newton's method on large complete tables, else proportional fitting.

The fit is the table with the given margins that is nearest to a starting table in
Kullback–Leibler distance.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.fused.devices import check_device, on_processor, require_gpu
from discreet.design.membership import Membership
from discreet.design.product import LARGEST_DENSE
from discreet.solve.fit import Certificate, Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import (
    check_tolerance,
    check_whole,
    checked_start,
    checked_values,
    checked_weights,
    non_negative,
)
from discreet.solve.likelihood.dual_log_linear import fit_unstored
from discreet.solve.likelihood.indexed import Indexed
from discreet.solve.likelihood.proportional import ProportionalFit
from discreet.solve.likelihood.reduction import Reduction, reduce_table
from discreet.solve.likelihood.schedule import LOG_LINEAR
from discreet.solve.non_negative.non_negative import NonNegative

Vector = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LogLinear(FitterBase):
    r"""The maximum likelihood fit of the log-linear model whose sufficient margins are `z`.

    .. math:: \min_{y \ge 0} \sum_i y_i \log\frac{y_i}{s_i} - y_i + s_i
              \quad\text{subject to}\quad X^\top y = z,
              \qquad \hat y = s\,e^{X\nu}.

    With a starting table `s` this is raking: calibration with the exponential distance.

    Promise: either margins that deviate by at most `tolerance`, with multipliers
    :math:`\nu` in the notes that prove :math:`\hat y = s\,e^{X\nu}`; or a status that says why
    not. Margins that no table has are reported as inconsistent, with the proof in the notes: a
    vector `u` with :math:`Xu \le 0 < z^\top u`, or a published cell out of reach. Weights say only
    which cells to use (weight zero leaves a cell out); margins that contradict each other are the
    matter of `Poisson`.

    Cost: complete tables of more than 100,000 cells are fitted by Newton's method in some hundred
    passes that store nothing of the table's size. Else one compiled pass over the open inner cells
    for each margin that no other margin implies, in each of a few dozen sweeps, with four bytes per
    such margin and inner cell. Cells under zero margins and cells that stand alone in a margin are
    settled beforehand; the sweeps are accelerated by Anderson's method, safeguarded by the
    likelihood. Sweeps also take over where margins contradict each other, and find the proof.

    Args:
      tolerance: Largest deviation of a published cell, in its own units (counts). Deviations
        below 1e-12 of the largest published cell are beyond double precision and pass as well.
      max_steps: Sweeps, or steps of conjugate gradients, after which the fit gives up.
      start: Starting table `s`, one value per inner cell; zeros stay zero. Ones by default.
      memory: Sweeps the acceleration looks back on; zero gives the plain iteration.
      device: Where large complete tables are computed: `"cpu"`, `"gpu"` (an NVIDIA card, with the
        extra `[gpu]`), or `"auto"` for the card where there is one. A fit that was asked to use
        a card and did not says why in its notes.

    See Deming & Stephan (1940), Walker & Ni (2011), Langsrud & Lupp (2021).
    """

    tolerance: float = 1e-6
    max_steps: int = 5_000
    start: Sequence[float] | NDArray[np.floating] | None = None
    memory: int = 10
    device: str = "auto"

    def __post_init__(self) -> None:
        check_device(self.device)
        check_tolerance(self.tolerance, below=math.inf)
        check_whole("max_steps", self.max_steps, 1)
        check_whole("memory", self.memory, 0)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "log-linear"

    def prepare(self, design: Design) -> Prepared:
        """Index the inner cells once for many right-hand sides, when they are needed first."""
        if self.device == "gpu":
            require_gpu()
        return _Prepared(self, design)


class _Prepared(Indexed):
    """The fitter on one design."""

    options: LogLinear

    def __call__(
        self, z: NDArray[np.generic], *, weights: NDArray[np.generic] | None = None
    ) -> Fit:
        began, design = time.perf_counter(), self.design
        used = checked_weights(design, weights) > 0
        values = checked_values(design, z, used)
        fit = newton_fit(self.options, design, values, used)
        if isinstance(fit, str):
            why = fit
            fit = fit_members(self.options, design, self.members, self.start, z, weights=weights)
            fit.notes["device"] = on_processor(self.options.device, why)
        if fit.status is not Status.stalled or design.n_inner > LARGEST_DENSE:
            return fit
        target = np.maximum(values, 0.0)
        proof = _contradiction(design, target, used, self.start > 0, _goal(self.options, target))
        if proof is None:
            return fit
        notes, seconds = fit.notes | {"conflict": proof}, time.perf_counter() - began
        return replace(fit, status=Status.inconsistent, notes=notes, seconds=seconds)


def newton_fit(options: LogLinear, design: Design, values: Vector, used: Marks) -> Fit | str:
    """The fit of a large complete table by Newton's method; else the reason why sweeps must do."""
    least, most = LOG_LINEAR.never_stored, options.max_steps
    if design.n_inner < least:
        return f"the table has {design.n_inner:,} inner cells, fewer than {least:,}"
    structured = design.over_variables
    if structured is None or not structured.has_passes:
        return "the design is not complete, and its zeros are no product of small masks"
    z = non_negative(design, values, options.tolerance, options.name)
    if design.n_published > LOG_LINEAR.most_published * design.n_inner or not z.any():
        return "margins settle many cells"  # and vectors of Newton's method are no shorter
    start = None if options.start is None else checked_start(design, options.start)
    passes = structured.fused("exponential", start=start, device=options.device)
    if is_storable := design.n_inner <= LARGEST_DENSE:
        most = min(most, LOG_LINEAR.most_steps)
    fit = fit_unstored(structured, passes, z, used, start, _goal(options, z), most)
    if is_storable and not fit.is_converged:
        return "Newton's method on the dual did not arrive"
    return fit


def fit_members(
    options: LogLinear,
    design: Design,
    members: Membership,
    start: Vector,
    z: NDArray[np.generic],
    *,
    weights: NDArray[np.generic] | None = None,
    is_enough: Callable[[Vector], bool] = lambda z: False,
) -> Fit:
    """`LogLinear` on a design whose inner cells are indexed already.

    `is_enough` is asked every few sweeps whether the published cells will do although they deviate
    by more than the tolerance.
    """
    began = time.perf_counter()
    used = checked_weights(design, weights) > 0
    target = non_negative(design, checked_values(design, z, used), options.tolerance, options.name)
    goal = _goal(options, target)
    groups = members.using(used, _implied(members, target, used, goal))
    reduced = reduce_table(groups, target, np.flatnonzero(start > 0), goal)
    run = ProportionalFit(
        groups.restricted(reduced.left), reduced.rest, start[reduced.left], goal, options.memory
    )
    assembled = partial(_assembled, run, reduced, len(start))
    status = _solve(
        run,
        reduced,
        options,
        lambda: _deviation(design, target, used, assembled()),
        lambda: is_enough(design.aggregate(assembled())),
    )
    y, nu = assembled(), _multipliers(run, reduced, groups, start)
    notes: dict[str, Any] = {"solver": "iterative proportional fitting"}
    notes |= {"open_cells": len(reduced.left), "multipliers": nu}
    if status is Status.inconsistent:
        u = run.conflict if reduced.conflict is None else reduced.conflict
        notes["conflict"] = reduced.refutation(groups, np.asarray(u))[:-1]
    certificate = certify(design, target, used, y, start, nu, goal)
    if status is not Status.inconsistent and certificate.holds:
        status = Status.converged
    elif status is Status.converged:
        status = Status.stalled
    seconds = time.perf_counter() - began
    return Fit(y, design.aggregate(y), status, certificate, run.steps, seconds, notes, design)


def _goal(options: LogLinear, z: Vector) -> float:
    """The deviation to reach, which is never finer than double precision."""
    return max(options.tolerance, LOG_LINEAR.resolution * float(z.max(initial=0.0)))


def _implied(members: Membership, z: Vector, used: Marks, goal: float) -> Marks:
    """Nested blocks that say nothing new: their source is in use, and sums to their values."""
    implied = np.zeros(len(members.nested), dtype=bool)
    for b, block in enumerate(members.nested):
        sums = np.bincount(block.coarse, weights=z[block.fine], minlength=len(z))
        error = np.abs(sums[block.cells] - z[block.cells]) * used[block.cells]
        implied[b] = used[block.fine].all() and error.max(initial=0.0) <= goal / 2
    return implied


def _solve(
    run: ProportionalFit,
    reduced: Reduction,
    options: LogLinear,
    deviation: Callable[[], float],
    is_enough: Callable[[], bool],
) -> Status:
    """Sweep until all published cells deviate by at most the goal, coarse ones included.

    A table that is refuted already gets only a rough fit.
    """
    if reduced.conflict is not None:
        run.run(min(options.max_steps, LOG_LINEAR.sweeps_after_conflict), is_enough)
        return Status.inconsistent
    goal = run.goal
    status = run.run(options.max_steps, is_enough)
    while status is Status.converged and run.goal > LOG_LINEAR.resolution * goal:
        if deviation() <= goal or is_enough():
            break
        run.goal *= LOG_LINEAR.tighter
        status = run.run(options.max_steps, is_enough)
    return status


def _contradiction(
    design: Design, z: Vector, used: Marks, open_cells: Marks, goal: float
) -> Vector | None:
    r"""A proof that no table comes within the goal of the margins, where one is found.

    The residuals of non-negative least squares are one: they have :math:`Xu \le 0 < z^\top u`. As
    in `ProportionalFit`, `u` is lowered by what :math:`\max(Xu)_+` there is.
    """
    variance = None if open_cells.all() else open_cells.astype(np.float64)
    nearest = NonNegative(
        tolerance=LOG_LINEAR.proof, max_steps=LOG_LINEAR.proof_steps, variance=variance
    )
    u = np.where(used, z - nearest(design, z, weights=used.astype(np.float64)).z, 0.0)
    highest = float(design.adjoint(u)[open_cells].max(initial=0.0))
    needed = float(z @ u - goal * np.abs(u).sum())
    if needed <= highest * float(np.sum(z + goal, where=used)):
        return None
    return np.asarray(u - highest * used)


def _assembled(run: ProportionalFit, reduced: Reduction, n_inner: int) -> Vector:
    """Open and settled cells together."""
    y = np.zeros(n_inner)
    y[reduced.left] = run.y
    for stage in reduced.stages:
        y[stage.inner] = stage.values
    return y


def _multipliers(
    run: ProportionalFit, reduced: Reduction, groups: Membership, start: Vector
) -> Vector:
    """Multipliers that give both."""
    log_start = np.log(start, out=np.zeros_like(start), where=start > 0)
    return reduced.multipliers(groups, log_start, run.nu)[:-1]


def _deviation(design: Design, z: Vector, used: Marks, y: Vector) -> float:
    """Largest deviation of a published cell in use."""
    return float(np.abs(design.aggregate(y) - z)[used].max(initial=0.0))


def certify(
    design: Design,
    z: Vector,
    used: Marks,
    y: Vector,
    start: Vector,
    multipliers: Vector,
    goal: float,
) -> Certificate:
    r"""How far `y` is from the margins and from :math:`s\,e^{X\nu}`, with the design alone.

    Both differences are relative to the largest published value.
    """
    scale = float(z.max(initial=0.0)) or 1.0
    model, possible = np.zeros_like(y), start > 0
    with np.errstate(over="ignore"):
        model[possible] = start[possible] * np.exp(design.adjoint(multipliers)[possible])
    return Certificate(
        stationarity=float(np.abs(model - y).max(initial=0.0)) / scale,
        feasibility=_deviation(design, z, used, y) / scale,
        tolerance=goal / scale,
    )
