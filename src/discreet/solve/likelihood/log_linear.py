"""Log-linear fits: the table with given margins that is nearest to a starting table.

Nearest is meant in Kullback–Leibler distance. One method serves all tables, Newton's on the
multipliers of the margins; large complete tables are computed on the fly, others are stored.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Mask, Real
from discreet.design.base import Design
from discreet.design.fused.devices import check_device, on_processor, require_gpu
from discreet.design.incidence import Incidence
from discreet.design.support import LARGEST_DENSE
from discreet.solve.dual_newton import DualNewton
from discreet.solve.fit import Certificate, Fit, FitterBase, Prepared, Status
from discreet.solve.inputs import (
    check_tolerance,
    check_whole,
    checked_start,
    checked_values,
    checked_weights,
    non_negative,
)
from discreet.solve.likelihood.reduction import reduce_table
from discreet.solve.likelihood.refutation import refuted
from discreet.solve.likelihood.schedule import LOG_LINEAR
from discreet.solve.likelihood.stored import StoredPass
from discreet.solve.likelihood.unstored import fit_unstored


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
    vector `u` with :math:`Xu \le 0 < z^\top u`. Weights say only which cells to use (weight zero
    leaves a cell out); margins that contradict each other are the matter of `Poisson`.

    Cost: some hundred passes over the table. Complete tables of more than 100,000 cells are never
    stored. Of others, cells under zero margins and cells that stand alone in a margin are settled
    beforehand, and the open ones take four bytes for each margin that no other margin implies.
    A proof of inconsistency costs ten sweeps of proportional fitting, or a least squares fit.

    Args:
      tolerance: Largest deviation of a published cell, in its own units (counts). Deviations
        below 1e-12 of the largest published cell are beyond double precision and pass as well.
      max_steps: Steps of conjugate gradients after which the fit gives up.
      start: Starting table `s`, one value per inner cell; zeros stay zero. Ones by default.
      device: Where large complete tables are computed: `"cpu"`, `"gpu"` (an NVIDIA card, with the
        extra `[gpu]`), or `"auto"` for the card where there is one. A fit that was asked to use
        a card and did not says why in its notes.

    See Deming & Stephan (1940), Langsrud & Lupp (2021).
    """

    tolerance: float = 1e-6
    max_steps: int = 5_000
    start: Sequence[float] | NDArray[np.floating] | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        check_device(self.device)
        check_tolerance(self.tolerance, below=math.inf)
        check_whole("max_steps", self.max_steps, 1)

    @property
    def name(self) -> str:
        """The fitter's name in the registry."""
        return "log-linear"

    def prepare(self, design: Design) -> Prepared:
        """Index the inner cells once for many right-hand sides, when they are needed first."""
        if self.device == "gpu":
            require_gpu()
        return _Prepared(self, design)


@dataclass(frozen=True, eq=False)
class Indexed:
    """A likelihood fitter's options with what depends on the design alone, found when needed."""

    options: Any
    design: Design

    def __post_init__(self) -> None:
        if self.options.start is not None:
            checked_start(self.design, self.options.start)

    @cached_property
    def members(self) -> Incidence:
        """The published cells of every inner cell."""
        return Incidence.of(self.design)

    @cached_property
    def start(self) -> Real:
        """The starting table."""
        return checked_start(self.design, self.options.start)


class _Prepared(Indexed):
    """The fitter on one design."""

    options: LogLinear

    def __call__(
        self, z: NDArray[np.generic], *, weights: NDArray[np.generic] | None = None
    ) -> Fit:
        began, design, options = time.perf_counter(), self.design, self.options
        used = checked_weights(design, weights) > 0
        values = checked_values(design, z, used)
        target = non_negative(design, values, options.tolerance, options.name)
        fit = fit_complete(options, design, target, used)
        if isinstance(fit, str):
            device = on_processor(options.device, fit)
            fit = fit_stored(options, design, self.members, self.start, target, used)
            fit.notes["device"] = device
        if fit.status is Status.stalled and design.n_inner <= LARGEST_DENSE:
            goal, possible = _goal(options, target), self.start > 0
            proof = refuted(design, self.members, target, used, possible, goal)
            if proof is not None:
                notes = fit.notes | {"conflict": proof}
                fit = replace(fit, status=Status.inconsistent, notes=notes)
        return replace(fit, seconds=time.perf_counter() - began)


def fit_complete(options: LogLinear, design: Design, z: Real, used: Mask) -> Fit | str:
    """The fit of a large complete table in passes; else the reason why its cells are stored."""
    least, structured = LOG_LINEAR.never_stored, design.over_variables
    if design.n_inner < least:
        return f"the table has {design.n_inner:,} inner cells, fewer than {least:,}"
    if structured is None or not structured.has_passes:
        return "the design is not complete, and its zeros are no product of small masks"
    if design.n_published > LOG_LINEAR.most_published * design.n_inner or not z.any():
        return "margins settle many cells"  # and vectors of Newton's method are no shorter
    start = None if options.start is None else checked_start(design, options.start)
    passes = structured.fused("exponential", start=start, device=options.device)
    fit = fit_unstored(structured, passes, z, used, start, _goal(options, z), options.max_steps)
    if fit.is_converged or design.n_inner > LARGEST_DENSE:
        return fit
    return "Newton's method on the dual did not arrive"


def fit_stored(
    options: LogLinear,
    design: Design,
    members: Incidence,
    start: Real,
    z: Real,
    used: Mask,
    is_enough: Callable[[Real], bool] | None = None,
) -> Fit:
    """The fit of a table whose inner cells are indexed.

    Args:
      options: Tolerance and steps.
      design: The design.
      members: Its published cells.
      start: Starting table.
      z: Published values, zero for cells that are not in use.
      used: Which published cells are met.
      is_enough: Whether the published cells will do; by default, whether they deviate by no more
        than the goal.
    """
    began, goal = time.perf_counter(), _goal(options, z)
    needed = _needed(members, z, used, goal)
    groups = members.using(needed, np.zeros(len(members.nested), dtype=bool))
    reduced = reduce_table(groups, z, np.flatnonzero(start > 0), goal)
    open_members = groups.restricted(reduced.left).compact(reduced.held, reduced.held)
    passes = StoredPass(open_members, start[reduced.left])
    newton = passes.newton(reduced.rest[reduced.held], options.max_steps)

    def table() -> Real:
        return reduced.assembled(passes.at(newton.nu), len(start))

    def is_met() -> bool:
        margins = design.aggregate(table())
        return _largest(margins - z, used) <= goal if is_enough is None else is_enough(margins)

    if reduced.is_possible:
        _meet(newton, goal, is_met)
    y, nu = table(), reduced.multipliers(groups, start, newton.nu)
    certificate = certify(design, z, used, y, start, nu, goal)
    status = Status.converged if certificate.holds else Status.stalled
    if not certificate.holds and newton.gradients >= options.max_steps:
        status = Status.max_steps
    notes = {"solver": "Newton on stored cells", "open_cells": len(reduced.left)}
    notes["multipliers"], seconds = nu, time.perf_counter() - began
    return Fit(
        y, design.aggregate(y), status, certificate, newton.gradients, seconds, notes, design
    )


def _meet(newton: DualNewton, goal: float, is_met: Callable[[], bool]) -> None:
    """Newton steps to ever smaller deviations, until cells that others imply are met as well."""
    within = goal
    while newton.solve(0.0, within) and not is_met() and within > LOG_LINEAR.resolution * goal:
        within *= LOG_LINEAR.tighter


def _needed(members: Incidence, z: Real, used: Mask, goal: float) -> Mask:
    """Published cells in use without those that others in use add up to."""
    needed = used.copy()
    for block in members.nested:
        lacking = np.bincount(block.coarse, weights=~used[block.fine], minlength=len(z))
        sums = np.bincount(block.coarse, weights=z[block.fine], minlength=len(z))
        is_implied = (lacking == 0) & (np.abs(sums - z) <= goal / 2)
        needed[block.cells] &= ~is_implied[block.cells]
    return needed


def _goal(options: LogLinear, z: Real) -> float:
    """The deviation to reach, which is never finer than double precision."""
    return max(options.tolerance, LOG_LINEAR.resolution * float(z.max(initial=0.0)))


def _largest(deviation: Real, used: Mask) -> float:
    return float(np.abs(deviation[used]).max(initial=0.0))


def certify(
    design: Design,
    z: Real,
    used: Mask,
    y: Real,
    start: Real,
    multipliers: Real,
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
        feasibility=_largest(design.aggregate(y) - z, used) / scale,
        tolerance=goal / scale,
    )
