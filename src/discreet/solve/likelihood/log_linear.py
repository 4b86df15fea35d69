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
from discreet.design.fused.links import EXPONENTIAL, check_device, on_processor, require_gpu
from discreet.design.fused.passes import Passes
from discreet.design.incidence import Incidence
from discreet.design.inner import ModelTable
from discreet.design.product import ProductDesign, along
from discreet.design.structured import StructuredDesign
from discreet.design.support import LARGEST_DENSE
from discreet.errors import whole
from discreet.solve.dual_newton import DualNewton
from discreet.solve.fit import (
    Certificate,
    Fit,
    FitterBase,
    Prepared,
    Status,
    check_tolerance,
    checked_counts,
    checked_start,
    checked_values,
    checked_weights,
)
from discreet.solve.least_squares.problem import excused_rounding
from discreet.solve.likelihood.stored import (
    MOST_DENSE,
    MOST_GRADIENTS,
    StoredPass,
    find_refutation,
    reduce_table,
)

# Inner cells from which passes that store nothing beat stored ones.
NEVER_STORED = 100_000
# Share of the inner cells up to which published ones are few. With more, they settle many cells,
# and the vectors of Newton's method are no shorter than the table.
MOST_PUBLISHED = 0.125
# Deviations below this share of the largest cell are not resolved.
_RESOLUTION = 1e-12
# Factor by which the goal falls while cells that others imply still deviate.
_TIGHTER = 0.3
# Steps of conjugate gradients before factors take over, where these are small.
_BEFORE_FACTORS = 1_000
# The multiplier of a published zero; its exponential is zero.
_CLOSED = -1000.0


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
        below 1e-12 of the largest published cell are beyond double precision and pass as well, up
        to a twentieth of a count.
      max_steps: Steps of conjugate gradients after which the fit gives up.
      start: Starting table `s`, one value per inner cell; zeros stay zero. Ones by default.
      device: Where large complete tables are computed: `"cpu"`, `"gpu"` (an NVIDIA card, with the
        extra `[gpu]`), or `"auto"` for the card where there is one. A fit that was asked to use
        a card and did not says why in its notes.

    See Deming & Stephan (1940), Langsrud & Lupp (2021).
    """

    name = "log-linear"
    tolerance: float = 1e-6
    max_steps: int = 5_000
    start: Sequence[float] | NDArray[np.floating] | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        check_device(self.device)
        check_tolerance(self.tolerance, below=math.inf)
        whole("max_steps", self.max_steps, 1)

    def prepare(self, design: Design) -> Prepared:
        """Index the inner cells once for many right-hand sides, when they are needed first."""
        if self.device == "gpu":
            require_gpu()
        return _PreparedLogLinear(self, design)


@dataclass(frozen=True, eq=False)
class PreparedLikelihood:
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


class _PreparedLogLinear(PreparedLikelihood):
    """The fitter on one design."""

    options: LogLinear

    def __call__(
        self, z: NDArray[np.generic], *, weights: NDArray[np.generic] | None = None
    ) -> Fit:
        began, design, options = time.perf_counter(), self.design, self.options
        used = checked_weights(design, weights) > 0
        values = checked_values(design, z, used)
        target = checked_counts(design, values, options.tolerance, options.name)
        fit = fit_complete(options, design, target, used)
        if isinstance(fit, str):
            fit = self._fit_stored(target, used, on_processor(options.device, fit))
        elif fit.status is Status.stalled and design.n_inner <= LARGEST_DENSE:
            fit = self._refute(fit, target, used)
        return replace(fit, seconds=time.perf_counter() - began)

    def _fit_stored(self, z: Real, used: Mask, device: str) -> Fit:
        """Conjugate gradients first; where they do not arrive, a proof why not, or factors."""
        options, most = self.options, self.options.max_steps
        given, has_factors = (self.design, self.members, self.start, z, used), False
        if self.design.n_published <= MOST_DENSE:
            most, has_factors = min(most, _BEFORE_FACTORS), most > _BEFORE_FACTORS
        fit = fit_stored(replace(options, max_steps=most), *given)
        if fit.status is Status.stalled or (has_factors and not fit.is_converged):
            fit = self._refute(fit, z, used)
            if has_factors and fit.status is not Status.inconsistent:
                again = fit_stored(options, *given, by_factors=True)
                fit = min(fit, again, key=lambda found: found.certificate.worst)
        fit.notes["device"] = device
        return fit

    def _refute(self, fit: Fit, z: Real, used: Mask) -> Fit:
        """The fit, called inconsistent where a proof shows that no table has the margins."""
        given = (self.design, self.members, z, used, self.start > 0, _goal(self.options, z))
        proof = find_refutation(*given)
        if proof is None:
            return fit
        return replace(fit, status=Status.inconsistent, notes=fit.notes | {"conflict": proof})


def fit_complete(options: LogLinear, design: Design, z: Real, used: Mask) -> Fit | str:
    """The fit of a large complete table in passes; else the reason why its cells are stored."""
    structured = design.over_variables
    if design.n_inner < NEVER_STORED:
        return f"the table has {design.n_inner:,} inner cells, fewer than {NEVER_STORED:,}"
    if structured is None or not structured.has_passes:
        return "the design is not complete, and its zeros are no product of small masks"
    if design.n_published > MOST_PUBLISHED * design.n_inner or not z.any():
        return "margins settle many cells"
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
    by_factors: bool = False,
) -> Fit:
    """The fit of a table whose inner cells are indexed, to the published cells that are used.

    Other published cells must be zero in `z`. The fit ends when `is_enough` says so of its
    published cells; by default, when they deviate by no more than the goal. Newton's systems are
    met by dense factors or by conjugate gradients.
    """
    began, goal = time.perf_counter(), _goal(options, z)
    needed = _needed_cells(members, z, used, goal)
    groups = members.using(needed, np.zeros(len(members.nested), dtype=bool))
    reduced = reduce_table(groups, z, np.flatnonzero(start > 0), goal)
    open_members = groups.restrict(reduced.left).compact(reduced.held, reduced.held)
    passes = StoredPass(open_members, start[reduced.left])
    newton = passes.newton(reduced.rest[reduced.held], options.max_steps, by_factors)

    def table() -> Real:
        return reduced.assemble(passes.at(newton.nu), len(start))

    def is_met() -> bool:
        margins = design.aggregate(table())
        if is_enough is not None:
            return is_enough(margins)
        return _largest_deviation(margins - z, used) <= goal

    within = goal
    if reduced.is_possible:
        # Newton's method sees only cells that no others imply. The errors of the others add up, so
        # the goal is lowered until cells that were left out are met as well.
        while newton.solve(0.0, within) and not is_met() and within > _RESOLUTION * goal:
            within *= _TIGHTER
    y, nu = table(), reduced.multipliers(groups, start, newton.nu)
    certificate = certify_log_linear(design, z, used, y, start, nu, goal)
    status = Status.converged if certificate.holds else Status.stalled
    if not certificate.holds and newton.gradients >= options.max_steps:
        status = Status.max_steps
    notes = {"solver": "Newton on stored cells", "open_cells": len(reduced.left)}
    notes["multipliers"], seconds = nu, time.perf_counter() - began
    return Fit(
        y, design.aggregate(y), status, certificate, newton.gradients, seconds, notes, design
    )


def _needed_cells(members: Incidence, z: Real, used: Mask, goal: float) -> Mask:
    """Published cells in use without those that others in use add up to."""
    needed = used.copy()
    for block in members.nested:
        lacking = np.bincount(block.coarse, weights=~used[block.fine], minlength=len(z))
        sums = np.bincount(block.coarse, weights=z[block.fine], minlength=len(z))
        # Half the goal is left for the errors of the cells that imply this one.
        is_implied = (lacking == 0) & (np.abs(sums - z) <= goal / 2)
        needed[block.cells] &= ~is_implied[block.cells]
    return needed


def _goal(options: LogLinear, z: Real) -> float:
    """The deviation to reach, which is never finer than double precision."""
    return float(excused_rounding(z, 1.0, _RESOLUTION).max(initial=options.tolerance))


def _largest_deviation(deviation: Real, used: Mask) -> float:
    return float(np.abs(deviation[used]).max(initial=0.0))


def certify_log_linear(
    design: Design, z: Real, used: Mask, y: Real, start: Real, multipliers: Real, goal: float
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
        feasibility=_largest_deviation(design.aggregate(y) - z, used) / scale,
        tolerance=goal / scale,
    )


def fit_unstored(
    design: StructuredDesign,
    passes: Passes,
    z: Real,
    used: Mask,
    start: Real | None,
    goal: float,
    max_steps: int,
) -> Fit:
    r"""The log-linear fit in passes; it is `stalled` where margins contradict each other.

    The margins of :math:`y = s\,e^{X\nu}` are the derivative of :math:`\sum_i y_i`, so that
    :math:`\nu` minimises :math:`\sum_i y_i - z^\top\nu`, and one pass gives value and gradient.
    Margins that some table has lie in the range of :math:`X^\top`, where the Hessian is positive:
    conjugate gradients with the margins themselves as the diagonal need nothing else, on
    hierarchies too.

    The passes have the link `"exponential"` and the same starting table, and some published value
    is positive. Published cells that are not used have no multiplier.
    """
    began = time.perf_counter()
    target, nothing = passes.to_device(z), passes.to_device(np.zeros_like(z))
    before = passes.to_host(passes.table(nothing).margins)
    first = passes.to_device(independence(design, z, before, used))
    most = min(MOST_GRADIENTS, max_steps)
    mask = None if used.all() else passes.to_device(used.astype(np.float64))
    newton = DualNewton(
        passes, target, nothing, None, first, mask, most_gradients=most, most_in_all=max_steps - 1
    )
    newton.solve(0.0, goal)
    nu = passes.to_host(newton.nu)
    margins, certificate = certify_margins(passes, nu.copy(), z, used, goal)
    notes = {"solver": "Newton on the dual", "device": passes.device, "passes": passes.n_passes}
    return Fit(
        ModelTable(design, EXPONENTIAL, nu, start),
        margins,
        Status.converged if certificate.holds else Status.stalled,
        certificate,
        newton.gradients,
        time.perf_counter() - began,
        notes | {"multipliers": nu},
        design,
    )


def certify_margins(
    passes: Passes, nu: Real, z: Real, used: Mask, goal: float
) -> tuple[Real, Certificate]:
    r"""Margins of the table at :math:`\nu`, and how far they are from those asked for.

    Nothing that the solver computed is used but :math:`\nu`.
    """
    margins = passes.to_host(passes.table(passes.to_device(nu)).margins)
    scale = float(z.max(initial=0.0)) or 1.0
    off = np.where(used, np.abs(margins - z), 0.0)
    cell = int(off.argmax())
    return margins, Certificate(
        feasibility=float(off[cell]) / scale,
        tolerance=goal / scale,
        deviation=float(off[cell]),
        cell=cell,
    )


def independence(design: StructuredDesign, z: Real, before: Real, used: Mask) -> Real:
    """The point that moves every variable on its own from the margins before to those of `z`.

    Published cells of value zero are closed. Those that are not used have no value here.
    """
    embedding, full = design.crossing, design.crossing.design
    share = [used[design.slice_of(k)].mean() for k in range(len(design.blocks))]
    whole = [
        k
        for k, block in enumerate(full.blocks)
        if all(level is None or level.covers_all for level in block.levels)
    ]
    if not whole:
        return np.where(used & (z == 0), _CLOSED, 0.0)
    nu = np.zeros(full.n_published)
    for values, sign in ((z, 1.0), (before, -1.0)):
        nu += sign * _logarithms(full, embedding.as_public_cells(values), whole, share)
    return np.where(used, np.where(z > 0, embedding.from_public_cells(nu), _CLOSED), 0.0)


def _logarithms(
    design: ProductDesign, z: Real, whole: Sequence[int], share: Sequence[float]
) -> Real:
    """The logarithms of a total and of the shares of each variable's categories in it."""
    nu, n = np.zeros_like(z), len(design.axes)
    # Every variable is read off the block that has most of its categories, and of these off the
    # one with most cells in use: cells that are not used are zeros here.
    first = max(whole, key=lambda k: share[k])
    total = float(z[design.slice_of(first)].sum())
    nu[design.slice_of(first)] += np.log(total)
    for a in range(n):
        fine = max(whole, key=lambda k: (len(design.blocks[k].levels[a] or ()), share[k]))
        place, shape = design.slice_of(fine), design.blocks[fine].shape
        if design.blocks[fine].levels[a] is None:
            continue
        sums = z[place].reshape(shape).sum(axis=tuple(b for b in range(n) if b != a))
        logs = np.log(np.maximum(sums, np.finfo(float).tiny) / total)
        nu[place].reshape(shape)[...] += along(logs, a, n)
    return nu
