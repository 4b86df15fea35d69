r"""Log-linear fits of complete tables that are never stored.

The fit is :math:`y = e^{X\nu}`. Its margins are the derivative of :math:`\sum_i y_i`, so that
:math:`\nu` minimises :math:`\sum_i y_i - z^\top\nu`, and one pass gives value and gradient. Margins
that some table has lie in the range of :math:`X^\top`, where the Hessian is positive: conjugate
gradients with the margins themselves as the diagonal need nothing else, on hierarchies too.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from discreet.design.axis import Level
from discreet.design.fused.source import EXPONENTIAL
from discreet.design.inner import ModelTable
from discreet.design.product import ProductDesign, along
from discreet.design.structured import StructuredDesign
from discreet.solve.dual_newton import DualNewton
from discreet.solve.fit import Certificate, Fit, Status
from discreet.solve.likelihood.schedule import LOG_LINEAR

Vector = NDArray[np.float64]


def fit_unstored(
    design: StructuredDesign, device: str, z: Vector, goal: float, max_steps: int
) -> Fit:
    """The log-linear fit by Newton's method; it is `stalled` where margins contradict each other.

    Args:
      design: A complete design, or one whose structural zeros are masks.
      device: Where to compute.
      z: Published values, not negative, some of them positive.
      goal: Largest deviation of a published cell.
      max_steps: Conjugate gradient steps after which the fit gives up.
    """
    began = time.perf_counter()
    passes, full = design.fused("exponential", device=device), design.crossing
    start = full.taken(independence(full.design, full.widened(z)))
    target, start, nothing = map(passes.to_device, (z, start, np.zeros_like(z)))
    schedule = LOG_LINEAR.newton(max_steps)
    newton = DualNewton(passes, target, nothing, None, start, schedule=schedule)
    newton.solve(0.0, goal)
    nu, margins = passes.to_host(newton.nu), passes.to_host(newton.at.margins)
    scale = float(z.max(initial=0.0)) or 1.0
    certificate = Certificate(
        feasibility=float(np.abs(margins - z).max(initial=0.0)) / scale, tolerance=goal / scale
    )
    return Fit(
        ModelTable(design, EXPONENTIAL, nu),
        margins,
        Status.converged if certificate.holds else Status.stalled,
        certificate,
        newton.gradients,
        time.perf_counter() - began,
        {"solver": "Newton on the dual", "device": passes.device, "multipliers": nu},
        design,
    )


def independence(design: ProductDesign, z: Vector) -> Vector:
    """The point where all variables are independent, with published cells of value zero closed."""
    nu, n = np.zeros_like(z), len(design.axes)
    whole = [k for k, block in enumerate(design.blocks) if all(map(_covers, block.levels))]
    if not whole:
        return np.where(z > 0, nu, LOG_LINEAR.closed)
    total = float(z[design.slice_of(whole[0])].sum())
    nu[design.slice_of(whole[0])] += np.log(total)
    for a, axis in enumerate(design.axes):
        fine = max(whole, key=lambda k: len(design.blocks[k].levels[a] or ()))
        level, place = design.blocks[fine].levels[a], design.slice_of(fine)
        if level is None:
            nu[place] -= np.log(len(axis))
            continue
        table = z[place].reshape(design.blocks[fine].shape)
        sums = table.sum(axis=tuple(b for b in range(n) if b != a))
        share = np.maximum(sums, np.finfo(float).tiny) / (total * np.bincount(level.group))
        nu[place].reshape(design.blocks[fine].shape)[...] += along(np.log(share), a, n)
    return np.where(z > 0, nu, LOG_LINEAR.closed)


def _covers(level: Level | None) -> bool:
    return level is None or level.covers_all
