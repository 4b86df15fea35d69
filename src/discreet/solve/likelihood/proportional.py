r"""Accelerated sweeps of iterative proportional fitting, and the proof when they cannot succeed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discreet.design.membership import Membership
from discreet.design.membership_kernels import add_sums, spread
from discreet.progress import report
from discreet.solve.fit import Status
from discreet.solve.likelihood.acceleration import Anderson
from discreet.solve.likelihood.ipf_kernels import sweep, tilt
from discreet.solve.likelihood.schedule import SWEEPS

Vector = NDArray[np.float64]


class ProportionalFit:
    r"""The state of one run: :math:`y = s\,e^{X\nu}` with margins ever nearer to `z`.

    Sweeps are exact maximisations of the dual likelihood :math:`z^\top\nu - \sum_i y_i`, group by
    group; an extrapolated :math:`\nu` is taken only if it has at least the sweep's likelihood.

    Args:
      members: Published cells of the open inner cells.
      z: Published values, zero where a cell is not used; positive wherever an open cell counts.
      start: Starting table, positive.
      goal: Largest deviation at which the run ends.
      memory: Length of the acceleration's history.
    """

    def __init__(
        self, members: Membership, z: Vector, start: Vector, goal: float, memory: int
    ) -> None:
        self.members, self.goal = members, goal
        self._counts = members.sizes() > 0
        self._z = np.append(np.where(self._counts, z, 0.0), 0.0)
        self._log_start = np.log(start)
        self.y = start.copy()
        self.nu = np.zeros(len(self._z))
        self._sums, self._factors = np.zeros(len(self._z)), np.ones(len(self._z))
        self._sum_first_group()
        self._anderson = Anderson(memory, np.sqrt(np.maximum(self._z, 0.0)))
        self._is_plain, self._slack = False, goal
        self.steps = 0
        self.conflict: Vector | None = None
        self._best, self._best_step, self._first = math.inf, 0, 0.0

    def run(self, max_steps: int, is_enough: Callable[[], bool]) -> Status:
        """Sweep until the deviation is small enough or no table has these margins.

        Args:
          max_steps: Sweeps after which to give up.
          is_enough: Asked from time to time whether the table will do as it is.
        """
        while self.steps < max_steps:
            before = self.nu.copy()
            deviation = self._sweep()
            if deviation <= self.goal and self.deviation() <= self.goal:
                return Status.converged
            if self.steps % SWEEPS.check_every == 0:
                self._report(deviation)
                if is_enough():
                    return Status.converged
                if self._is_refuted_by(self.nu - before):
                    return Status.inconsistent
                if self._is_stuck():
                    if self._is_plain:
                        return Status.stalled
                    self._go_plain()
            if not self._is_plain:
                self._extrapolate(before)
        return Status.max_steps

    def deviation(self) -> float:
        """Largest deviation of a used published cell."""
        sums = np.zeros(len(self._z))
        for row in self.members.index:
            add_sums(row, self.y, sums)
        return float(np.abs(np.where(self._counts, sums[:-1] - self._z[:-1], 0.0)).max(initial=0.0))

    def _sweep(self) -> float:
        self.steps += 1
        m = self.members
        if not len(m.index):
            return 0.0
        deviation = float(
            sweep(self.y, m.index, m.ordered, m.starts, self._z, self._sums, self._factors, self.nu)
        )
        if deviation < SWEEPS.progress * self._best:
            self._best, self._best_step = deviation, self.steps
        return deviation

    def _extrapolate(self, before: Vector) -> None:
        """Move on to the accelerated multipliers unless the likelihood falls."""
        proposal = self._anderson.propose(before, self.nu)
        if proposal is None or np.abs(proposal).max() > SWEEPS.farthest:
            return
        y = np.empty_like(self.y)
        total = tilt(self.members.index, proposal, self._log_start, y)
        now = float(self.y.sum())
        gain = (total - now) - float(self._z @ (proposal - self.nu))
        if gain <= SWEEPS.noise * now:
            self.y, self.nu = y, proposal
            self._sum_first_group()
        else:
            self._anderson.forget()

    def _sum_first_group(self) -> None:
        self._sums[:] = 0.0
        if len(self.members.index):
            add_sums(self.members.index[0], self.y, self._sums)

    def _is_refuted_by(self, u: Vector) -> bool:
        r"""Whether `u` proves that no table comes within the slack of these margins.

        A table :math:`y \ge 0` with :math:`|X^\top y - z| \le g` has
        :math:`z^\top u - g\|u\|_1 \le y^\top Xu \le \max(Xu)_+ \sum_k (z_k + g)`. When margins
        contradict each other, what a sweep adds to the multipliers tends to a `u` that breaks this.
        Lowered by :math:`\max(Xu)_+` everywhere, it has :math:`Xu \le 0 < z^\top u`.
        """
        needed = float(self._z @ u - self._slack * np.abs(u).sum())
        if needed <= 0:
            return False
        exponents = np.empty(self.members.n_inner)
        spread(self.members.index, u, exponents)
        bound = float(np.sum(self._z[:-1] + self._slack, where=self._counts))
        highest = max(float(exponents.max(initial=0.0)), 0.0)
        if needed <= highest * bound:
            return False
        self.conflict = u - highest * np.append(self._counts, False)
        return True

    def _is_stuck(self) -> bool:
        """Whether the deviation has not fallen by a tenth for long."""
        return self.steps - self._best_step > max(SWEEPS.patience, self.steps // 4)

    def _go_plain(self) -> None:
        """Leave the acceleration: plain sweeps drift along the proof when there is one.

        As no better fit was found, margins that contradict each other at all are reported.
        """
        self._is_plain, self._slack = True, 0.0
        self._best, self._best_step = math.inf, self.steps

    def _report(self, deviation: float) -> None:
        self._first = self._first or deviation
        if self._first > self.goal:
            done = math.log(self._first / deviation) / math.log(self._first / self.goal)
            report("log-linear fit", done)
