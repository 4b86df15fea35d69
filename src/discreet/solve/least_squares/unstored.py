r"""Least squares fits of tables that are never stored, with a certificate from fused passes.

The fit is :math:`y = \max(0, s + qX\nu)`, or :math:`s + qX\nu` where it may be negative, with one
value of :math:`\nu` for each published cell. So its form needs no proof, its margins take one pass,
and the largest force on an inner cell that would still move it takes another.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from discreet.design.inner import ModelTable
from discreet.design.product import LARGEST_DENSE
from discreet.design.structured import StructuredDesign
from discreet.solve.dual_newton import Passes
from discreet.solve.fit import Certificate, Fit, Status
from discreet.solve.least_squares.dual_fit import SCHEDULE, fit_by_dual
from discreet.solve.least_squares.goal import RESOLVED, Accuracy
from discreet.solve.least_squares.problem import Prior, Targets

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
      prior: What the passes start from.
    """

    design: StructuredDesign
    passes: Passes
    targets: Targets
    accuracy: Accuracy
    penalty: float
    prior: Prior = field(default_factory=Prior)

    @classmethod
    def of(
        cls,
        design: StructuredDesign,
        link: str,
        targets: Targets,
        accuracy: Accuracy,
        penalty: float = 0.0,
        prior: Prior | None = None,
        device: str = "cpu",
    ) -> Self:
        """With passes of its own; cells that may not move are taken out of the targets."""
        prior = prior or Prior()
        passes = design.fused(link, start=prior.start, variance=prior.variance, device=device)
        if prior.given is not None:
            left = np.where(targets.weights > 0, targets.z - design.aggregate(prior.given), 0.0)
            targets = replace(targets, z=left)
        return cls(design, passes, targets, accuracy, penalty, prior)

    def __call__(self) -> Fit | None:
        """The fit; `None` where it was not reached and the table can be stored."""
        began = time.perf_counter()
        answer = fit_by_dual(
            self.design,
            self.passes,
            self.targets.z,
            self.targets.weights,
            self.targets.exact,
            within=SCHEDULE.safely * self._limit,
            last_ridge=self.penalty or None,
            schedule=SCHEDULE if self.design.n_inner <= LARGEST_DENSE else _PATIENT,
        )
        multipliers, given = answer.forces[self.targets.held], self.prior.given
        margins, certificate = self.certify(answer.nu.copy(), multipliers)
        if not certificate.holds and self.design.n_inner <= LARGEST_DENSE:
            return None
        notes = {
            "solver": "Newton on the dual",
            "device": self.passes.device,
            "passes": self.passes.n_passes,
            "dual": None if self.penalty else answer.nu,
            "held": self.targets.held,
            "multipliers": multipliers,
        }
        return Fit(
            self._table(answer.nu),
            margins if given is None else margins + self.design.aggregate(given),
            Status.converged if certificate.holds else Status.stalled,
            certificate,
            answer.gradients,
            time.perf_counter() - began,
            notes,
            self.design,
        )

    def certify(self, nu: Vector, multipliers: Vector) -> tuple[Vector, Certificate]:
        r"""Margins of the table at :math:`\nu`, and how well they meet an optimum's conditions.

        Nothing that the solver computed is used but :math:`\nu` and the multipliers of the margins
        that are held. The limit of the cell with the strictest one serves all.
        """
        targets, tolerance, passes = self.targets, self.accuracy.tolerance, self.passes
        at = passes.to_device(nu)
        margins = passes.to_host(passes.table(at).margins)
        forces = targets.weights * (targets.z - margins)
        forces[targets.held] = multipliers
        pull, cell = passes.strongest(at, passes.to_device(forces - self.penalty * nu))
        off = np.abs((targets.z - margins)[targets.held] - targets.slack * multipliers)
        allowed = np.maximum(self._deviation, RESOLVED * np.abs(targets.z[targets.held]))
        stationarity, feasibility = pull / self._limit, float((off / allowed).max(initial=0.0))
        deviation, worst = self._in_counts(pull, cell)
        if feasibility > stationarity:
            far = int((off / allowed).argmax())
            deviation, worst = float(off[far]), int(targets.held[far])
        return margins, Certificate(
            stationarity=tolerance * stationarity,
            feasibility=tolerance * feasibility,
            tolerance=tolerance,
            deviation=deviation,
            cell=worst,
        )

    def _in_counts(self, pull: float, leaves: tuple[int, ...]) -> tuple[float, int | None]:
        """A pull on an inner cell as the deviation of a published cell, and which one."""
        design, weights = self.design, self.targets.weights
        found = (design.placed(k, leaves) for k in range(len(design.blocks)))
        members = [int(design.published_at(k, flat)) for k, (flat, _) in enumerate(found)]
        counting = [k for k in members if weights[k] > 0]
        cells = [k for k in counting if k not in self.targets.held] or counting
        if not cells:
            return 0.0, None
        cell = min(cells, key=lambda k: weights[k])
        return pull / float(weights[cell]), cell

    def _table(self, nu: Vector) -> ModelTable:
        prior = self.prior
        start = prior.start
        if start is not None and prior.given is not None:
            start = start + prior.given
        return ModelTable(self.design, self.passes.link, nu, start, prior.variance)

    @property
    def _deviation(self) -> float:
        largest = float(np.abs(self.targets.z).max(initial=0.0))
        return self.accuracy.tolerance * min(self.accuracy.count, largest or np.inf)

    @cached_property
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
