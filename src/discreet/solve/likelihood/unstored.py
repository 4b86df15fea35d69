r"""Log-linear fits of tables that are never stored, by Newton's method on the likelihood.

The fit is :math:`y = s\,e^{X\nu}`. Its margins are the derivative of :math:`\sum_i y_i`, so that
:math:`\nu` minimises :math:`\sum_i y_i - z^\top\nu`, and one pass gives value and gradient. Margins
that some table has lie in the range of :math:`X^\top`, where the Hessian is positive: conjugate
gradients with the margins themselves as the diagonal need nothing else, on hierarchies too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from discreet.arrays import Mask, Real
from discreet.design.axis import Level
from discreet.design.fused.links import EXPONENTIAL
from discreet.design.fused.passes import Passes
from discreet.design.inner import ModelTable
from discreet.design.product import ProductDesign, along
from discreet.design.structured import StructuredDesign
from discreet.solve.dual_newton import DualNewton
from discreet.solve.fit import Certificate, Fit, Status
from discreet.solve.likelihood.schedule import LOG_LINEAR


def fit_unstored(
    design: StructuredDesign,
    passes: Passes,
    z: Real,
    used: Mask,
    start: Real | None,
    goal: float,
    max_steps: int,
) -> Fit:
    """The log-linear fit by Newton's method; it is `stalled` where margins contradict each other.

    Args:
      design: A complete design, or one whose structural zeros are masks.
      passes: Passes over its table with link `"exponential"`.
      z: Published values, not negative, some of them positive.
      used: Which of them are used; others have no multiplier.
      start: The starting table of the passes, if there is one.
      goal: Largest deviation of a published cell.
      max_steps: Conjugate gradient steps after which the fit gives up.
    """
    began = time.perf_counter()
    target, nothing = passes.to_device(z), passes.to_device(np.zeros_like(z))
    before = passes.to_host(passes.table(nothing).margins)
    first = passes.to_device(independence(design, z, before, used))
    schedule = LOG_LINEAR.newton(max_steps)
    mask = None if used.all() else passes.to_device(used.astype(np.float64))
    newton = DualNewton(passes, target, nothing, None, first, mask, schedule=schedule)
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
    """The point that moves every variable on its own to its margin.

    Published cells of value zero are closed. Those that are not used have no value here.

    Args:
      design: A complete design, or one whose structural zeros are masks.
      z: Published values.
      before: Margins of the starting table.
      used: Which published values are used.
    """
    lift, full = design.crossing, design.crossing.design
    share = [used[design.slice_of(k)].mean() for k in range(len(design.blocks))]
    whole = [k for k, block in enumerate(full.blocks) if all(map(_covers, block.levels))]
    if not whole:
        return np.where(used & (z == 0), LOG_LINEAR.closed, 0.0)
    nu = np.zeros(full.n_published)
    for values, sign in ((z, 1.0), (before, -1.0)):
        nu += sign * _logarithms(full, lift.widened(values), whole, share)
    return np.where(used, np.where(z > 0, lift.taken(nu), LOG_LINEAR.closed), 0.0)


def _logarithms(
    design: ProductDesign, z: Real, whole: Sequence[int], share: Sequence[float]
) -> Real:
    """The logarithms of a total and of the shares of each variable's categories in it."""
    nu, n = np.zeros_like(z), len(design.axes)
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


def _covers(level: Level | None) -> bool:
    return level is None or level.covers_all
