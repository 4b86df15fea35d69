r"""Non-negative least squares through its dual, on complete designs.

For a ridge :math:`\rho` the optimum is :math:`y = \max(0, s + qX\nu)`, and :math:`\nu` is found by
Newton's method. The ridge is lowered until its systems would become ill-conditioned; then its bias
is taken out by moving its centre to the last point, again and again (the proximal point method on
the dual, which is Bregman iteration on the fit). Every iterate keeps the form
:math:`\max(0, s + qX\nu)`, so that of all tables that fit equally well the one nearest to the
starting table is approached.

Exact margins are margins of a very large weight: what is left of their deviation is that weight's
inverse times a force, below any count. Nothing forces cells of weight zero: their :math:`\nu` is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.fused.contradictions import Contradictions
from discreet.design.fused.null_space import MOST_UNUSED, NullSpace
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
      nu: The point; the fit is :math:`\max(0, s + qX\nu)`.
      forces: Weighted residuals; those of exact margins are their multipliers.
      gradients: Conjugate gradient steps.
    """

    nu: Vector
    forces: Vector
    gradients: int


def suits(design: Design, weights: Vector) -> TypeGuard[StructuredDesign]:
    """Whether the method applies: passes, the finest margins, and not too many cells unused."""
    return (
        isinstance(design, StructuredDesign)
        and not any(block.order == len(design.axes) for block in design.blocks)
        and design.has_passes
        and NullSpace.is_known(design.crossing.design)
        and (
            _is_flat(design.crossing.design)
            or design.n_published <= MOST_WITH_LEVELS * design.n_inner
        )
        and bool((weights > 0).any())
        and len(_unused(design, weights)) <= MOST_UNUSED
    )


def _unused(design: StructuredDesign, weights: Vector) -> NDArray[np.int64]:
    """Cells of weight zero, but for blocks that the null space leaves out as a whole."""
    empty = [not w.any() for w in _by_block(design, weights)]
    is_left_out = np.repeat(empty, np.diff(design.offsets)) & _is_flat(design.crossing.design)
    return np.flatnonzero((weights == 0) & ~is_left_out)


def _by_block(design: StructuredDesign, values: Vector) -> list[Vector]:
    return [values[design.slice_of(k)] for k in range(len(design.blocks))]


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
      weights: Their weights.
      exact: Positions of the targets that must be met.
      within: Largest force that may be left on an inner cell.
      last_ridge: A ridge that is part of the objective; none when absent.
      schedule: Constants.
    """
    soft = np.delete(weights, exact)
    soft = soft[soft > 0]
    largest = float(soft.max(initial=0.0)) or 1.0
    held = weights.copy()
    held[exact] = schedule.exact * largest
    used = held > 0
    sizes = _sizes(design, passes)
    newton = _newton(design, passes, z, held, sizes)
    ridge = float((sizes * np.minimum(held, largest))[used].mean())
    typical = float(np.exp(np.log(soft if len(soft) else held[used]).mean()))
    variance = float(sizes[design.slice_of(0)].sum()) / design.n_inner
    floor = last_ridge or schedule.floor * len(design.blocks) * typical * variance
    bound, bias = np.inf, last_ridge or 0.0
    largest_target = float(np.abs(z).max(initial=1.0))
    scales = passes.to_device(1.0 / np.where(used, weights, 1.0))
    z, weights, exact = (passes.to_device(values) for values in (z, weights, exact))
    for stage in range(schedule.stages):
        newton.solve(ridge, bound * scales if stage else largest_target / 10)
        forces = weights * (z - newton.at.margins)
        forces[exact] = ridge * (newton.nu - newton.centre)[exact]
        pull = passes.pull(newton.nu, forces - bias * newton.nu)
        report("fit", stage / schedule.stages)
        ended = ridge <= floor and pull <= within
        if ended or newton.gradients > _most(design, newton, schedule, variance):
            break
        if ridge > floor:
            ridge = max(schedule.lower * ridge, floor)
        elif last_ridge is None:
            newton.centre = newton.nu
        bound = max(schedule.loose * pull, within / 4) / len(design.blocks)
    return DualAnswer(passes.to_host(newton.nu), passes.to_host(forces), newton.gradients)


def _sizes(design: StructuredDesign, passes: Passes) -> Vector:
    """Margins of the variances; where all are one, how many inner cells each margin counts."""
    anywhere = np.zeros(design.n_published)
    anywhere[design.slice_of(0)] = 1.0
    return passes.to_host(passes.slope(passes.to_device(anywhere)))


def _most(
    design: StructuredDesign, newton: DualNewton, schedule: DualSchedule, variance: float
) -> int:
    """Conjugate gradient steps that may be taken, given about how many cells are positive."""
    positive = float(newton.passes.slope(newton.nu)[design.slice_of(0)].sum()) / variance
    is_degenerate = positive < design.n_published
    return schedule.most_degenerate if is_degenerate else schedule.most_gradients


def _newton(
    design: StructuredDesign, passes: Passes, z: Vector, weights: Vector, sizes: Vector
) -> DualNewton:
    """Where the method begins; cells that are not used are held like others, at zero."""
    used = weights > 0
    by_block = tuple(
        float(np.exp(np.log(w[w > 0]).mean())) if w.any() else 0.0
        for w in _by_block(design, weights)
    )
    if not _is_flat(design.crossing.design):
        by_block = tuple(weight or 1.0 for weight in by_block)
    lift = design.crossing
    unused = np.arange(lift.design.n_published)[lift.published][_unused(design, weights)]
    null = NullSpace(lift, by_block, unused)
    variances = 1.0 / np.where(used, weights, 1.0)
    vectors = (z, variances, null, used * _even(design, passes, z, sizes, used))
    newton = DualNewton(passes, *map(passes.to_device, vectors))
    if not used.all():
        newton.used = passes.to_device(used.astype(np.float64))
    return newton


def _even(
    design: StructuredDesign, passes: Passes, z: Vector, sizes: Vector, used: NDArray[np.bool_]
) -> Vector:
    """The point of an even table: all its cells answer, so that the first step is a fair one.

    With a starting table it is the one moved evenly to the total that is asked for.
    """
    fullest = max(range(len(design.blocks)), key=lambda k: used[design.slice_of(k)].mean())
    nu, place = np.zeros_like(z), design.slice_of(fullest)
    begin = passes.to_host(passes.table(passes.to_device(nu)).margins)[place].sum()
    total = max(float(z[place].sum()), 1.0)
    nu[place] = (total - begin) / sizes[place].sum()
    return nu
