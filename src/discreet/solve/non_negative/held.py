r"""Exact margins and very heavy ones, held by multipliers instead of weights.

A margin that must be met exactly, or whose weight :math:`w` exceeds the others' by far, would make
the equations ill-conditioned. It gets an ordinary weight :math:`\kappa` instead, and its target is
shifted to :math:`z + e` until its multiplier, :math:`\mu = \kappa(z + e - x^\top y)`, is right:

.. math:: e \leftarrow e + (z - x^\top y) - \mu / w,

with :math:`\mu / w = 0` for an exact margin. This is the method of multipliers; see Bertsekas
(1982).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from discreet.arrays import Mask, Real
from discreet.solve.least_squares.problem import LeastSquaresProblem
from discreet.solve.non_negative.schedule import HELD as SCHEDULE


class HeldMargins:
    """The margins that a problem holds, met by shifting.

    Args:
      problem: Targets and weights.
      project: The published cells of the least squares fit of a problem, without bounds.

    Attributes:
      given: The problem as it was given.
      at: Published positions of the held margins.
      problem: The problem with ordinary weights and shifted targets, see `weigh`.
    """

    def __init__(
        self, problem: LeastSquaresProblem, project: Callable[[LeastSquaresProblem], Real]
    ) -> None:
        self.given, self.at, self._project = problem, problem.held, project

    def __bool__(self) -> bool:
        return len(self.at) > 0

    @cached_property
    def _contradiction(self) -> Real:
        """By how much heavy targets differ from those of some table, which costs any fit the same.

        Projected twice, so that its multipliers are rounded as it is, not as the targets are.
        """
        problem = self.given
        heavy, apart = self.at[problem.slack > 0], np.zeros_like(problem.z)
        if len(heavy):
            weights, accuracy = problem.weights[heavy], SCHEDULE.projection
            for left in (problem.z.copy(), apart):
                alone = problem.aiming(left).among(heavy, weights, accuracy)
                apart[heavy] = (left - self._project(alone))[heavy]
        return apart

    @property
    def consistent(self) -> LeastSquaresProblem:
        """The problem with heavy targets as some table has them."""
        return self.given.aiming(self.given.z - self._contradiction)

    @property
    def constant(self) -> Real:
        """Multipliers of what no table can answer; no gradient depends on them."""
        return (self.given.weights * self._contradiction)[self.at]

    def weigh(self, factor: float) -> None:
        """Give held margins an ordinary weight: a multiple of the median of the others."""
        weights = self.given.weights.copy()
        soft = np.delete(weights, self.at)
        soft = soft[soft > 0]
        self._factor = factor
        self._weight = factor * float(np.median(soft)) if len(soft) else factor
        weights[self.at] = self._weight
        self.problem = replace(self.consistent, weights=weights)

    def weigh_more(self, times: float, heaviest: float, fitted: Real) -> None:
        """Raise that weight, up to a multiple of the others; the multipliers stay what they are."""
        if times * self._factor <= heaviest:
            multipliers = self.multipliers(fitted)
            self.weigh(times * self._factor)
            self.impose(multipliers, fitted)

    @property
    def residual_slack(self) -> Real:
        """Deviation that a unit of the multiplier allows beyond what the ordinary weight does."""
        return self.given.slack / (1.0 - self._weight * self.given.slack)

    def multipliers(self, fitted: Real) -> Real:
        """The multipliers of the margins in a fit to the shifted targets."""
        return self._weight * (self.problem.z - fitted)[self.at]

    def missing_in(self, fitted: Real) -> Real:
        """By how much the targets should be shifted after a fit."""
        off = (self.given.z - self._contradiction - fitted)[self.at]
        return off - self.given.slack * self.multipliers(fitted)

    def deviation(self, fitted: Real) -> float:
        """How far a fit to the shifted targets is from what was asked, in units of what may be."""
        limits = self.given.goal.margin[self.at]
        return float((np.abs(self.missing_in(fitted)) / limits).max(initial=0.0))

    def shift(self, by: Real) -> None:
        """Shift the targets further."""
        z = self.problem.z.copy()
        z[self.at] += by
        self.problem = self.problem.aiming(z)

    def impose(self, multipliers: Real, fitted: Real) -> None:
        """Shift the targets so that a fit has these multipliers."""
        self.shift((multipliers - self.multipliers(fitted)) / self._weight)

    def zeros(self) -> tuple[Mask, Mask]:
        """Which of the margins must be zero, and which inner cells are zero for that reason."""
        is_zero = (self.given.slack == 0) & (self.given.z[self.at] == 0)
        marks = np.zeros(len(self.given.z))
        marks[self.at[is_zero]] = 1.0
        return is_zero, np.asarray(self.given.design.adjoint(marks) > 0)
