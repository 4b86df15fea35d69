r"""Least squares fits of tables that are never stored, through their dual.

For a ridge :math:`\rho` the optimum is :math:`y = \max(0, X\nu)`, or :math:`X\nu` where it may be
negative, with one value of :math:`\nu` for each published cell, found by Newton's method. The ridge
is lowered until its systems would become ill-conditioned; then its bias is taken out by moving its
centre to the last point, again and again (the proximal point method on the dual, which is Bregman
iteration on the fit). Every iterate keeps its form, so that of all tables that fit equally well the
smallest is approached. The form needs no proof, its margins take one pass, and the largest force on
an inner cell that would still move it takes another.

Exact margins are margins of a very large weight: what is left of their deviation is that weight's
inverse times a force, below any count.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.fused.contradictions import Contradictions
from discreet.design.fused.null_space import NullSpace
from discreet.design.inner import ModelTable
from discreet.design.product import LARGEST_DENSE
from discreet.design.structured import StructuredDesign
from discreet.progress import report
from discreet.solve.dual_newton import DualNewton, Passes
from discreet.solve.fit import Certificate, Fit, Status
from discreet.solve.least_squares.basis import pseudo_inverse
from discreet.solve.least_squares.goal import Accuracy
from discreet.solve.least_squares.problem import Targets
from discreet.solve.least_squares.schedule import DUAL, GOAL

Vector = NDArray[np.float64]


def suits(design: Design, weights: Vector) -> TypeGuard[StructuredDesign]:
    """Whether the method applies: passes, margins alone, and all cells weighted."""
    if not isinstance(design, StructuredDesign) or not (weights > 0).all():
        return False
    publishes_inner_cells = any(block.order == len(design.axes) for block in design.blocks)
    if publishes_inner_cells or not design.has_passes:
        return False
    full = design.crossing.design
    is_flat = len(Contradictions.flat_blocks(full)) == len(full.blocks)
    are_few = design.n_published <= DUAL.most_with_levels * design.n_inner
    return NullSpace.is_known(full) and (is_flat or are_few)


class _Answer(NamedTuple):
    """Where the method ended.

    Attributes:
      nu: The point.
      margins: Published cells of the fit.
      forces: Weighted residuals; those of exact margins are their multipliers.
      pull: The largest force on an inner cell that would still move it.
      gradients: Conjugate gradient steps.
    """

    nu: Vector
    margins: Vector
    forces: Vector
    pull: float
    gradients: int


@dataclass(frozen=True, eq=False)
class UnstoredFit:
    """One fit.

    Attributes:
      design: A complete design, or one whose structural zeros are masks.
      passes: Passes over its table with link `"positive"` or `"linear"`.
      targets: Targets and weights, all positive.
      accuracy: What was asked for.
      penalty: Factor of the ridge that is part of the objective, zero without.
    """

    design: StructuredDesign
    passes: Passes
    targets: Targets
    accuracy: Accuracy
    penalty: float

    def __call__(self) -> Fit | None:
        """The fit; `None` where it was not reached and the table can be stored."""
        began, limit, held = time.perf_counter(), self._limit(), self.targets.held
        answer = self._answer(DUAL.safely * limit)
        certificate = self._certificate(answer, limit)
        if not certificate.holds and self.design.n_inner <= LARGEST_DENSE:
            return None
        notes = {
            "solver": "Newton on the dual",
            "device": self.passes.device,
            "dual": None if self.penalty else answer.nu,
            "held": held,
            "multipliers": answer.forces[held],
        }
        return Fit(
            ModelTable(self.design, self.passes.link, answer.nu),
            answer.margins,
            Status.converged if certificate.holds else Status.stalled,
            certificate,
            answer.gradients,
            time.perf_counter() - began,
            notes,
            self.design,
        )

    def _answer(self, within: float) -> _Answer:
        """Lower the ridge, then move its centre, until no force above a limit moves a cell."""
        passes, n = self.passes, len(self.design.blocks)
        newton, ridge, floor = self._newton()
        given = (self.targets.z, self.targets.weights, self.targets.exact)
        z, weights, exact = map(passes.to_device, given)
        bound = float(np.abs(self.targets.z).max(initial=1.0)) / 10
        for stage in range(DUAL.stages):
            newton.solve(ridge, bound if stage == 0 else bound / weights)
            forces = weights * (z - newton.at.margins)
            forces[exact] = ridge * (newton.nu - newton.centre)[exact]
            is_lowest, pull = ridge <= floor, ridge * newton.at.largest
            if is_lowest:
                pull = passes.pull(newton.nu, forces - self.penalty * newton.nu)
            report("fit", stage / DUAL.stages)
            if (is_lowest and pull <= within) or newton.gradients > self._most_gradients(newton):
                break
            if not is_lowest:
                ridge = max(DUAL.lower * ridge, floor)
            elif not self.penalty:
                newton.centre = newton.nu
            bound = max(DUAL.loose * pull, within / 4) / n
        nu, margins, forces = map(passes.to_host, (newton.nu, newton.at.margins, forces))
        return _Answer(nu, margins, forces, pull, newton.gradients)

    def _newton(self) -> tuple[DualNewton, float, float]:
        """Newton's method from an even table, to whose first step all cells answer; ridges."""
        design, z, weights = self.design, self.targets.z, self.targets.weights.copy()
        soft = np.delete(weights, self.targets.exact)
        largest = float(soft.max(initial=0.0)) or 1.0
        weights[self.targets.exact] = DUAL.exact * largest
        by_block = [_typical(weights[design.slice_of(k)]) for k in range(len(design.blocks))]
        even, first = np.zeros_like(z), design.slice_of(0)
        even[first] = max(float(z[first].sum()), 1.0) / design.n_inner
        vectors = (z, 1.0 / weights, NullSpace(design.crossing, tuple(by_block)), even)
        newton = DualNewton(self.passes, *map(self.passes.to_device, vectors))
        ridge = float((design.column_sizes * np.minimum(weights, largest)).mean())
        typical = _typical(soft if len(soft) else weights)
        return newton, ridge, self.penalty or DUAL.floor * len(design.blocks) * typical

    def _most_gradients(self, newton: DualNewton) -> int:
        """Conjugate gradient steps that may be taken, given how many cells are positive."""
        if self.design.n_inner > LARGEST_DENSE:
            return DUAL.most_unstored
        positive = self.passes.slope(newton.nu)[self.design.slice_of(0)].sum()
        is_degenerate = positive < self.design.n_published
        return DUAL.most_degenerate if is_degenerate else DUAL.most_gradients

    def _certificate(self, answer: _Answer, limit: float) -> Certificate:
        """The conditions of an optimum; the limit of the cell with the strictest one serves all."""
        targets, tolerance = self.targets, self.accuracy.tolerance
        z, forces = targets.z[targets.held], answer.forces[targets.held]
        off = np.abs(z - answer.margins[targets.held] - targets.slack * forces)
        margin = np.maximum(self.accuracy.deviation(targets.z), GOAL.resolved * np.abs(z))
        return Certificate(
            stationarity=tolerance * answer.pull / limit,
            feasibility=tolerance * float((off / margin).max(initial=0.0)),
            tolerance=tolerance,
        )

    def _limit(self) -> float:
        """A force that no inner cell may exceed: the lowest of the limits of `Goal`, or less."""
        soft, deviation = self.targets.weights.copy(), self.accuracy.deviation(self.targets.z)
        soft[self.targets.held] = 0.0
        starts = self.design.offsets[:-1]
        total = float(np.minimum.reduceat(soft, starts).sum())
        spread = float(np.maximum.reduceat(pseudo_inverse(soft), starts).sum())
        if total > 0:
            return deviation * float(np.sqrt(total / spread))
        return deviation * (float(soft[soft > 0].min()) if soft.any() else 1.0)


def _typical(weights: Vector) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(weights).mean()))
