r"""Least squares fits of tables that are never stored, with a certificate from fused passes.

The fit is :math:`y = \max(0, X\nu)`, or :math:`X\nu` where it may be negative, with one value of
:math:`\nu` for each published cell. So its form needs no proof, its margins take one pass, and the
largest force on an inner cell that would still move it takes another.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.design.inner import ModelTable
from discreet.design.product import LARGEST_DENSE
from discreet.design.structured import StructuredDesign
from discreet.solve.dual_newton import Passes
from discreet.solve.fit import Certificate, Fit, Status
from discreet.solve.least_squares.dual_fit import SCHEDULE, DualAnswer, fit_by_dual
from discreet.solve.least_squares.goal import RESOLVED, Accuracy
from discreet.solve.least_squares.problem import Targets

Vector = NDArray[np.float64]

_PATIENT = replace(
    SCHEDULE, most_gradients=20_000, most_degenerate=20_000
)  # where no other method could take over


@dataclass(frozen=True, eq=False)
class UnstoredFit:
    """One fit.

    Attributes:
      design: A complete design, or one whose structural zeros are masks.
      passes: Passes over its table with link `"positive"` or `"linear"`.
      targets: Targets and weights.
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
        began = time.perf_counter()
        limit, exact = self._limit(), self.targets.exact
        answer = fit_by_dual(
            self.design,
            self.passes,
            self.targets.z,
            self.targets.weights,
            exact,
            within=SCHEDULE.safely * limit,
            last_ridge=self.penalty or None,
            schedule=SCHEDULE if self.design.n_inner <= LARGEST_DENSE else _PATIENT,
        )
        certificate = self._certificate(answer, limit)
        if not certificate.holds and self.design.n_inner <= LARGEST_DENSE:
            return None
        held = self.targets.held
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

    def _certificate(self, answer: DualAnswer, limit: float) -> Certificate:
        """The conditions of an optimum; the limit of the cell with the strictest one serves all."""
        targets, tolerance = self.targets, self.accuracy.tolerance
        off = (targets.z - answer.margins)[targets.held]
        off = np.abs(off - targets.slack * answer.forces[targets.held])
        margin = np.maximum(self._deviation, RESOLVED * np.abs(targets.z[targets.held]))
        return Certificate(
            stationarity=tolerance * answer.pull / limit,
            feasibility=tolerance * float((off / margin).max(initial=0.0)),
            tolerance=tolerance,
        )

    @property
    def _deviation(self) -> float:
        largest = float(np.abs(self.targets.z).max(initial=0.0))
        return self.accuracy.tolerance * min(self.accuracy.count, largest or np.inf)

    def _limit(self) -> float:
        """A force that no inner cell may exceed: the lowest of the limits of `Goal`, or less."""
        soft = self.targets.weights.copy()
        soft[self.targets.held] = 0.0
        inverse = np.divide(1.0, soft, out=np.zeros_like(soft), where=soft > 0)
        total, spread = self._lowest(soft), self._highest(inverse)
        if total > 0:
            return self._deviation * float(np.sqrt(total / spread))
        return self._deviation * float(soft[soft > 0].min(initial=np.inf) if soft.any() else 1.0)

    def _highest(self, values: Vector) -> float:
        """The largest sum over the published cells that an inner cell counts in."""
        if self._is_constant(values):
            return float(sum(values[self.design.offsets[:-1]]))
        to = self.passes.to_device
        return self.passes.pull(to(np.zeros_like(values)), to(values))

    def _lowest(self, values: Vector) -> float:
        """The smallest such sum; every inner cell counts in each block once."""
        tops = self._of_blocks(values, np.max)
        return float(tops[self.design.offsets[:-1]].sum()) - self._highest(tops - values)

    def _is_constant(self, values: Vector) -> bool:
        return bool((values == self._of_blocks(values, np.max)).all())

    def _of_blocks(self, values: Vector, f: Callable[[Vector], float]) -> Vector:
        ends = zip(self.design.offsets[:-1], self.design.offsets[1:], strict=True)
        return np.repeat([f(values[a:b]) for a, b in ends], np.diff(self.design.offsets))
