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
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from discreet.solve.continuous.problem import Problem

Vector = NDArray[np.float64]

_SLOW = 0.8  # share of the last deviation that is too much of it
_WORTHWHILE = 1.2  # factor by which a weight is raised at least, or not at all
_GAP = 30.0  # factor between one weight and the next from which the upper ones are stiff


class StiffMargins:
    """The margins of a problem that are met by shifting.

    Args:
      problem: Targets and weights.
      exact: Published positions that must be met; their weights do not matter.
      factor: What a stiff margin weighs instead, times the median of the other weights.
      project: The published cells of the least squares fit of a problem, without bounds.

    Attributes:
      asked: The problem with its own targets and working weights.
      problem: The same with the targets shifted.
      at: Published positions of the stiff margins.
      slack: Deviation that a unit of multiplier allows there: one over the weight, zero if exact.
      typical: Median of the other weights.
      weight: What each stiff margin weighs now.
    """

    def __init__(
        self,
        problem: Problem,
        exact: NDArray[np.int64],
        factor: float,
        project: Callable[[Problem], Vector],
    ) -> None:
        weights = problem.weights.copy()
        weights[exact] = np.inf
        self.at = np.flatnonzero(weights >= _first_stiff(weights))
        heavy = np.setdiff1d(self.at, exact)
        if len(heavy):
            problem = _without_contradictions(problem, heavy, project)
        soft = weights[(weights > 0) & (weights < weights[self.at].min(initial=np.inf))]
        typical = float(np.median(soft)) if len(soft) else 1.0
        self._own = weights[self.at]
        self.slack = 1.0 / self._own
        self.weight = np.full(len(self.at), factor * typical)
        self.typical = typical
        self._last = np.inf
        self.asked = self.problem = problem
        if len(self.at):
            self.asked = self.problem = self._softened(problem, typical)

    def _softened(self, problem: Problem, typical: float) -> Problem:
        """Working weights; gradients are measured as if stiff margins had a typical one."""
        plain, working = problem.weights.copy(), problem.weights.copy()
        plain[self.at], working[self.at] = typical, self.weight
        return replace(problem.weighing(plain), weights=working)

    def __bool__(self) -> bool:
        return len(self.at) > 0

    def multipliers(self, fitted: Vector) -> Vector:
        """The forces that hold the stiff margins in a fit to the shifted targets."""
        return self.weight * (self.problem.z[self.at] - fitted[self.at])

    def deviation(self, fitted: Vector) -> float:
        """How far a fit to the shifted targets is from what was asked, relative to the largest."""
        return float(np.abs(self._missing(fitted)).max(initial=0.0)) / self.asked.size

    def is_slow(self, fitted: Vector) -> bool:
        """Whether the last shift did not help."""
        return self.deviation(fitted) > _SLOW * self._last

    def shift(self, fitted: Vector) -> Problem:
        """Shift the targets after a fit."""
        self._last = self.deviation(fitted)
        return self.aim(self.problem.z[self.at] + self._missing(fitted))

    def weigh_more(self, fitted: Vector, factor: float, heaviest: float) -> None:
        """Raise the working weights, none beyond the margin's own; the forces stay what they are.

        Args:
          fitted: Published cells of the last fit.
          factor: By how much.
          heaviest: Up to which, times a typical weight.
        """
        weight = np.minimum(factor * self.weight.max(), heaviest * self.typical)
        weight = np.minimum(weight, self._own)
        if weight.max() < _WORTHWHILE * self.weight.max():
            return
        force, self.weight = self.multipliers(fitted), weight
        weights = self.asked.weights.copy()
        weights[self.at] = self.weight
        self.asked = replace(self.asked, weights=weights)
        self.aim(fitted[self.at] + force / self.weight)

    def _missing(self, fitted: Vector) -> Vector:
        return self.missing(fitted[self.at], self.problem.z[self.at])

    def missing(self, fitted: Vector, targets: Vector) -> Vector:
        """By how much the targets of the stiff margins should be shifted, given their fit."""
        force = self.weight * (targets - fitted)
        return self.asked.z[self.at] - fitted - self.slack * force

    def aim(self, targets: Vector) -> Problem:
        """Take shifted targets for the stiff margins."""
        z = self.asked.z.copy()
        z[self.at] = targets
        self.problem = self.asked.aiming(z)
        return self.problem


def _without_contradictions(
    problem: Problem, heavy: NDArray[np.int64], project: Callable[[Problem], Vector]
) -> Problem:
    """Heavy targets as some table has them; the loss changes by a constant."""
    only = np.zeros_like(problem.weights)
    only[heavy] = problem.weights[heavy]
    z = problem.z.copy()
    z[heavy] = project(problem.weighing(only))[heavy]
    return problem.aiming(z)


def _first_stiff(weights: Vector) -> float:
    """The smallest weight above the widest gap between weights."""
    different = np.unique(weights[(weights > 0) & np.isfinite(weights)])
    ratios = different[1:] / different[:-1]
    if len(ratios) and ratios.max() >= _GAP:
        return float(different[ratios.argmax() + 1])
    return np.inf
