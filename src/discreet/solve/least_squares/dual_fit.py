r"""Non-negative least squares through its dual, on complete designs.

For a ridge :math:`\rho` the optimum is :math:`y = \max(0, X\nu)`, and :math:`\nu` is found by
Newton's method. The ridge is lowered until its systems would become ill-conditioned; then its bias
is taken out by moving its centre to the last point, again and again (the proximal point method on
the dual, which is Bregman iteration on the fit). Every iterate keeps the form
:math:`\max(0, X\nu)`, so that of all tables that fit equally well the smallest is approached.

Exact margins are margins of a very large weight: what is left of their deviation is that weight's
inverse times a force, below any count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.fused.contradictions import Contradictions
from discreet.design.fused.null_space import NullSpace
from discreet.design.product import ProductDesign
from discreet.design.structured import StructuredDesign
from discreet.progress import report
from discreet.solve.dual_newton import DualNewton, Passes

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class DualSchedule:
    """The constants of the method.

    Attributes:
      lower: Factor by which the ridge falls; each stage starts near its end with a tenth.
      floor: Lowest ridge, relative to the typical weight of all margins of a cell together: below
        it conjugate gradients slow down, and moving the centre is cheaper.
      loose: A stage may leave this part of the gradient that the last one ended with.
      stages: Stages after which the fit gives up.
      most_gradients: Conjugate gradient steps after which it does; then another method takes over.
      most_degenerate: The same where fewer cells are positive than there are unknowns: Newton
        systems are nearly singular then, and conjugate gradients on these cells are faster.
      exact: Weight of exact margins, times the largest of the others.
      safely: Part of what a certificate allows that the method may leave.
    """

    lower: float = 0.1
    floor: float = 1e-3
    loose: float = 0.002
    stages: int = 60
    most_gradients: int = 1500
    most_degenerate: int = 100
    exact: float = 1e8
    safely: float = 0.5


SCHEDULE = DualSchedule()
MOST_WITH_LEVELS = 0.125
"""Share of the inner cells that hierarchies may publish; with more, active sets are faster."""


@dataclass(frozen=True, eq=False)
class DualAnswer:
    r"""Where the method ended.

    Attributes:
      nu: The point; the fit is :math:`\max(0, X\nu)`.
      margins: Published cells of the fit.
      forces: Weighted residuals; those of exact margins are their multipliers.
      pull: The largest force on an inner cell that would still move it.
      gradients: Conjugate gradient steps.
      is_reached: Whether the pull is as small as asked for.
    """

    nu: Vector
    margins: Vector
    forces: Vector
    pull: float
    gradients: int
    is_reached: bool


def suits(design: Design, weights: Vector) -> TypeGuard[StructuredDesign]:
    """Whether the method applies: passes, the finest margins, and all cells weighted."""
    return (
        isinstance(design, StructuredDesign)
        and not any(block.order == len(design.axes) for block in design.blocks)
        and design.has_passes
        and NullSpace.is_known(design.crossing.design)
        and (
            _is_flat(design.crossing.design)
            or design.n_published <= MOST_WITH_LEVELS * design.n_inner
        )
        and bool((weights > 0).all())
    )


def _is_flat(design: ProductDesign) -> bool:
    return len(Contradictions.flat_blocks(design)) == len(design.blocks)


def fit_by_dual(
    design: StructuredDesign,
    passes: Passes,
    z: Vector,
    weights: Vector,
    exact: NDArray[np.int64],
    *,
    within: float,
    last_ridge: float | None = None,
    schedule: DualSchedule = SCHEDULE,
) -> DualAnswer:
    """Lower the ridge, then move its centre, until no force moves a cell.

    Args:
      design: The design.
      passes: Passes over its table with link `"positive"`.
      z: Targets.
      weights: Their weights, all positive.
      exact: Positions of the targets that must be met.
      within: Largest force that may be left on an inner cell.
      last_ridge: A ridge that is part of the objective; none when absent.
      schedule: Constants.
    """
    soft = np.delete(weights, exact)
    largest = float(soft.max(initial=0.0)) or 1.0
    held = weights.copy()
    held[exact] = schedule.exact * largest
    newton = _newton(design, passes, z, held)
    ridge = float((design.column_sizes * np.minimum(held, largest)).mean())
    typical = float(np.exp(np.log(soft if len(soft) else held).mean()))
    floor = last_ridge or schedule.floor * len(design.blocks) * typical
    bound, pull = np.inf, np.inf
    largest_target = float(np.abs(z).max(initial=1.0))
    z, weights, exact = (passes.to_device(values) for values in (z, weights, exact))
    for stage in range(schedule.stages):
        newton.solve(ridge, bound / weights if stage else largest_target / 10)
        forces = weights * (z - newton.at.margins)
        forces[exact] = ridge * (newton.nu - newton.centre)[exact]
        bias = 0.0 if last_ridge is None else last_ridge
        pull = (
            passes.pull(newton.nu, forces - bias * newton.nu)
            if ridge <= floor
            else ridge * newton.at.largest
        )
        report("fit", stage / schedule.stages)
        ended = ridge <= floor and pull <= within
        if ended or newton.gradients > _most(design, newton, schedule):
            break
        if ridge > floor:
            ridge = max(schedule.lower * ridge, floor)
        elif last_ridge is None:
            newton.centre = newton.nu
        bound = max(schedule.loose * pull, within / 4) / len(design.blocks)
    reached = ridge <= floor and pull <= within
    nu, margins, forces = map(passes.to_host, (newton.nu, newton.at.margins, forces))
    return DualAnswer(nu, margins, forces, pull, newton.gradients, reached)


def _most(design: StructuredDesign, newton: DualNewton, schedule: DualSchedule) -> int:
    """Conjugate gradient steps that may be taken, given how many cells are positive."""
    positive = newton.passes.slope(newton.nu)[design.slice_of(0)].sum()
    is_degenerate = positive < design.n_published
    return schedule.most_degenerate if is_degenerate else schedule.most_gradients


def _newton(design: StructuredDesign, passes: Passes, z: Vector, weights: Vector) -> DualNewton:
    by_block = tuple(
        float(np.exp(np.log(weights[design.slice_of(k)]).mean())) for k in range(len(design.blocks))
    )
    vectors = (z, 1.0 / weights, NullSpace(design.crossing, by_block), _even(design, z))
    return DualNewton(passes, *map(passes.to_device, vectors))


def _even(design: StructuredDesign, z: Vector) -> Vector:
    """The point of an even table: all its cells answer, so that the first step is a fair one."""
    nu, first = np.zeros_like(z), design.slice_of(0)
    nu[first] = max(float(z[first].sum()), 1.0) / design.n_inner
    return nu
