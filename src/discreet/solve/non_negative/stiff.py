r"""Exact margins and very heavy ones, met by shifting their targets.

A margin that must be met exactly, or whose weight :math:`w` exceeds the others' by far, would make
the equations stiff. It gets an ordinary weight :math:`\kappa` instead, and its target is shifted to
:math:`z + e` until the force on it, :math:`f = \kappa(z + e - x^\top y)`, is the one it should be:

.. math:: e \leftarrow e + (z - x^\top y) - f / w,

with :math:`f / w = 0` for an exact margin. This is the method of multipliers; see Bertsekas (1982).
Where the deviation does not become smaller, because cells at zero do not answer to small forces,
:math:`\kappa` is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.solve.least_squares.problem import Problem

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class StiffSchedule:
    """The constants of shifting.

    Attributes:
      slow: Share of the last deviation that is too much of it.
      worthwhile: Factor by which a weight is raised at least, or not at all: it costs a solve.
      projection: Tolerance at which contradictions among heavy margins are taken out.
    """

    slow: float = 0.8
    worthwhile: float = 1.2
    projection: float = 1e-6


SCHEDULE = StiffSchedule()


class StiffMargins:
    """The margins that a problem holds, met by shifting.

    Args:
      problem: Targets and weights.
      factor: What a stiff margin weighs instead, times the median of the other weights.
      project: The published cells of the least squares fit of a problem, without bounds.

    Attributes:
      given: The problem as it was given.
      asked: The same with working weights, and heavy targets as some table has them.
      problem: The same with the targets shifted.
      at: Published positions of the stiff margins.
      typical: Median of the other weights.
      weight: What each stiff margin weighs now.
    """

    def __init__(
        self, problem: Problem, factor: float, project: Callable[[Problem], Vector]
    ) -> None:
        self.given, self.at = problem, problem.held
        soft = np.delete(problem.weights, self.at)
        soft = soft[soft > 0]
        self.typical = float(np.median(soft)) if len(soft) else 1.0
        self._last = np.inf
        contradiction = _contradiction(problem, project)
        self._constant = (problem.weights * contradiction)[self.at]
        self.weight = np.full(len(self.at), factor * self.typical)
        self.asked = self.problem = self._weighing(problem.aiming(problem.z - contradiction))

    def _weighing(self, problem: Problem) -> Problem:
        weights = problem.weights.copy()
        weights[self.at] = self.weight
        return replace(problem, weights=weights)

    def __bool__(self) -> bool:
        return len(self.at) > 0

    def multipliers(self, fitted: Vector) -> Vector:
        """The forces that hold the stiff margins in a fit to the shifted targets."""
        return self._force(fitted[self.at], self.problem.z[self.at]) + self._constant

    @property
    def residual_slack(self) -> Vector:
        """Deviation that a unit of force allows beyond what the working weight exerts."""
        return self.given.slack / (1.0 - self.weight * self.given.slack)

    def held_by(self, forces: Vector, fitted: Vector) -> Vector:
        """The multipliers when these forces act beside the working weight."""
        return self._force(fitted[self.at], self.asked.z[self.at]) + forces + self._constant

    def _force(self, fitted: Vector, targets: Vector) -> Vector:
        return self.weight * (targets - fitted)

    def deviation(self, fitted: Vector) -> float:
        """How far a fit to the shifted targets is from what was asked, in units of what may be."""
        limits = self.given.goal.margin[self.at]
        return float((np.abs(self.missing_in(fitted)) / limits).max(initial=0.0))

    def is_slow(self, fitted: Vector) -> bool:
        """Whether the last shift did not help."""
        return self.deviation(fitted) > SCHEDULE.slow * self._last

    def shift(self, fitted: Vector, times: Vector | float = 1.0) -> Problem:
        """Shift the targets after a fit, by a multiple of what is missing."""
        self._last = self.deviation(fitted)
        return self.aim(self.problem.z[self.at] + times * self.missing_in(fitted))

    def weigh_more(self, fitted: Vector, factor: float, heaviest: float) -> None:
        """Raise the working weights, none beyond the margin's own; the forces stay what they are.

        Args:
          fitted: Published cells of the last fit.
          factor: By how much.
          heaviest: Up to which, times a typical weight.
        """
        weight = np.minimum(factor * self.weight.max(), heaviest * self.typical)
        weight = weight / np.maximum(1.0, weight * self.given.slack)
        if weight.max() < SCHEDULE.worthwhile * self.weight.max():
            return
        force = self._force(fitted[self.at], self.problem.z[self.at])
        self.weight = weight
        self.asked = self._weighing(self.asked)
        self.aim(fitted[self.at] + force / weight)

    def missing_in(self, fitted: Vector) -> Vector:
        """By how much the targets should be shifted after a fit."""
        force = self._force(fitted[self.at], self.problem.z[self.at])
        return self.asked.z[self.at] - fitted[self.at] - self.given.slack * force

    def aim(self, targets: Vector) -> Problem:
        """Take shifted targets for the stiff margins."""
        z = self.asked.z.copy()
        z[self.at] = targets
        self.problem = self.asked.aiming(z)
        return self.problem


def _contradiction(problem: Problem, project: Callable[[Problem], Vector]) -> Vector:
    """By how much heavy targets differ from those of some table, which costs any fit the same.

    Projected twice, so that the forces it makes are rounded as it is, not as the targets are.
    """
    heavy, apart = problem.held[problem.slack > 0], np.zeros_like(problem.z)
    if len(heavy):
        for left in (problem.z.copy(), apart):
            alone = problem.aiming(left).among(heavy, problem.weights[heavy], SCHEDULE.projection)
            apart[heavy] = (left - project(alone))[heavy]
    return apart
