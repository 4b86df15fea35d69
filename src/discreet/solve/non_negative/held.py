r"""Exact margins and very heavy ones, held by multipliers instead of weights.

A margin that must be met exactly, or whose weight :math:`w` exceeds the others' by far, would make
the equations ill-conditioned. It gets an ordinary weight :math:`\kappa` instead, and its target is
shifted to :math:`z + e` until its multiplier, :math:`\mu = \kappa(z + e - x^\top y)`, is right:

.. math:: e \leftarrow e + (z - x^\top y) - \mu / w,

with :math:`\mu / w = 0` for an exact margin. This is the method of multipliers; see Bertsekas
(1982).

A proof that exact margins cannot be met at all closes the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.solve.least_squares.problem import LeastSquaresProblem
from discreet.solve.non_negative.ridge_path import DENSE, DIRECT, LIGHT, RidgePath

# Tolerance of the projection that takes contradictions out of heavy margins. It is repeated on what
# is left, so it need not be tight.
_PROJECTION = 1e-6

# Accuracy of the fit of exact margins alone, of which the residuals are to be a proof,
_PROOF_ACCURACY = 1e-5
# stages of its ridge path after which no proof is expected any more,
_PROOF_STAGES = 20
# and the share of the terms of a sum that may be a rounding error.
_PROOF_ROUNDING = 1e-12


class HeldMargins:
    """The margins that a problem holds, met by shifting their targets.

    `project` gives the published cells of a problem's least squares fit without bounds.

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
        """By how much heavy targets differ from those of some table; it costs any fit the same."""
        problem = self.given
        heavy, apart = self.at[problem.slack > 0], np.zeros_like(problem.z)
        if len(heavy):
            weights = problem.weights[heavy]
            # Multipliers are heavy weights times the contradiction, rounding errors included.
            # The second projection leaves errors of its own size instead of the targets'.
            for left in (problem.z.copy(), apart):
                alone = problem.with_targets(left).among(heavy, weights, _PROJECTION)
                apart[heavy] = (left - self._project(alone))[heavy]
        return apart

    @property
    def consistent(self) -> LeastSquaresProblem:
        """The problem with heavy targets as some table has them."""
        return self.given.with_targets(self.given.z - self._contradiction)

    @property
    def constant(self) -> Real:
        """Multipliers of what no table can answer; no gradient depends on them."""
        return (self.given.weights * self._contradiction)[self.at]

    def weigh(self, factor: float) -> None:
        """Give held margins an ordinary weight: a multiple of the median of the others."""
        weights = self.given.weights.copy()
        soft = np.delete(weights, self.at)
        soft = soft[soft > 0]
        # With a typical weight these margins make the equations no stiffer than others do.
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
        limits = self.given.limits.margin[self.at]
        return float((np.abs(self.missing_in(fitted)) / limits).max(initial=0.0))

    def shift(self, by: Real) -> None:
        """Shift the targets further."""
        z = self.problem.z.copy()
        z[self.at] += by
        self.problem = self.problem.with_targets(z)

    def impose(self, multipliers: Real, fitted: Real) -> None:
        """Shift the targets so that a fit has these multipliers."""
        self.shift((multipliers - self.multipliers(fitted)) / self._weight)

    def zeros(self) -> tuple[Mask, Mask]:
        """Which of the margins must be zero, and which inner cells are zero for that reason."""
        is_zero = (self.given.slack == 0) & (self.given.z[self.at] == 0)
        marks = np.zeros(len(self.given.z))
        marks[self.at[is_zero]] = 1.0
        return is_zero, np.asarray(self.given.design.adjoint(marks) > 0)


def is_infeasible(problem: LeastSquaresProblem, exact: Whole, max_steps: int) -> bool:
    """Whether exact margins provably have no table; `False` may also mean that it is unknown."""
    alone = problem.among(exact, 1.0, _PROOF_ACCURACY)
    entries = problem.design.n_inner * problem.design.n_published
    path = RidgePath(alone, DIRECT if entries <= DENSE else LIGHT, max_steps)
    for _ in range(_PROOF_STAGES):
        if proves_infeasible(problem, alone.misfit(path.fitted)):
            return True
        path.stage()
    return False


def proves_infeasible(problem: LeastSquaresProblem, f: Real) -> bool:
    r"""Whether `f` shows that no table without negative cells has the margins it is not zero on.

    One that has them would have :math:`f^\top z = (Xf)^\top y \le \max(Xf)_+ \sum_i y_i`, and the
    cells they count sum to no more than they do. What a fit of the margins leaves over is such a
    vector (the lemma of Farkas 1902).
    """
    movable = problem.prior.movable(problem.design.n_inner)
    steepest = float(problem.design.adjoint(f)[movable].max(initial=0.0))
    most = float(np.maximum(problem.z[f != 0], 0.0).sum())
    slack = float(f @ problem.z) - steepest * most
    return slack > _PROOF_ROUNDING * float(np.abs(f * problem.z).sum())
