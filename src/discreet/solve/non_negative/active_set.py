r"""Non-negative least squares of small tables by active sets, right at any weight.

On cells `S` the optimum has forces :math:`u = W(z - \hat z)` with :math:`X_S u = 0`, so
:math:`u = Ns` with a basis `N` of what no table of these cells has, and `s` solves
:math:`\min \|W^{-1/2} N s - W^{1/2} z\|`. Exact margins have :math:`W^{-1} = 0` and bound nothing.
Cells that come out negative leave the set, and the one with the steepest descent enters it, until
:math:`Xu \le 0`. Each force is known to the scale of its own weight, so that no margin hides behind
a heavier one.

See Lawson & Hanson (1974); Stewart (1989).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import svd

from discreet.arrays import Mask, Real
from discreet.solve.fit import Certificate
from discreet.solve.least_squares.basis import pseudo_inverse
from discreet.solve.least_squares.dense import RANK, RowScaledFactor
from discreet.solve.least_squares.problem import LeastSquaresProblem, excused_rounding

# Entries of a dense matrix up to which sets are changed cell by cell.
MOST_ENTRIES = 1e5
# Corrections of the fit on a set by what it leaves.
_CORRECTIONS = 3
# and in extended precision, where the former are not enough.
_REFINEMENTS = 5
# Share of the terms of a slope that may be a rounding error,
_ROUNDING = 1e-11
# and the part of what a certificate allows at which a slope counts.
_COUNTED = 0.01
# Changes of the set, times the number of cells, and entries handled, after which the search ends.
_CHANGES, _MOST_WORK = 4, 1e7


@dataclass(frozen=True, eq=False)
class _Parts:
    """What tables of some cells have, and what none of them has, with the slack of targets."""

    range: Real  # the sums that tables have, orthonormal
    size: Real  # their singular values
    inner: Real  # the tables that have them
    beyond: Real  # what no table has
    slack: Real  # deviation of each published cell for a unit of its force

    @classmethod
    def of(cls, A: Real, slack: Real) -> _Parts:
        """Of the sums `A` of the cells, a row for each published one."""
        U, size, V = svd(A, check_finite=False)
        rank = int(np.count_nonzero(size > RANK * size.max(initial=0.0)))
        return cls(U[:, :rank], size[:rank], V[:rank].T, U[:, rank:], slack)

    @cached_property
    def _factor(self) -> RowScaledFactor:
        return RowScaledFactor(self.beyond, np.sqrt(self.slack))

    def forces(self, left: Real) -> Real:
        """Those that explain best what is left of the targets, and give no cell a slope."""
        s = self._factor.solve(np.sqrt(pseudo_inverse(self.slack)) * left)
        s += self._factor.solve_normal(self.beyond.T @ np.where(self.slack == 0, left, 0.0))
        return np.asarray(self.beyond @ s)

    def answer(self, left: Real) -> Real:
        """The smallest change of cells that answers what is left of the targets."""
        return np.asarray(self.inner @ (self.range.T @ left / self.size))

    def against(self, slope: Real) -> Real:
        """The smallest forces that take slopes off the cells."""
        return np.asarray(-self.range @ (self.inner.T @ slope / self.size))


class ActiveSet:
    """The positive cells of a fit, changed until the conditions of an optimum hold.

    Attributes:
      y: Inner cells, none negative.
      forces: Weighted residuals of published cells, with the multipliers of exact margins.
      steps: Sets that were tried.
    """

    def __init__(self, problem: LeastSquaresProblem, y: Real) -> None:
        self.problem, self.y, self.steps = problem, np.maximum(y, 0.0), 0
        design = problem.design
        self._X = design.matrix().toarray().astype(np.float64)
        self._movable = problem.prior.movable(design.n_inner)
        self._used = problem.weights > 0
        self._slack = np.where(self._used, pseudo_inverse(problem.weights), 0.0)
        self._slack[problem.exact] = 0.0
        self.y[~self._movable] = 0.0
        self.forces = np.zeros(design.n_published)
        soft = np.where(self._slack > 0, problem.weights, np.inf)
        lightest = np.where(self._X > 0, soft, np.inf).min(axis=1, initial=np.inf)
        self._unit = np.where(np.isfinite(lightest), lightest, soft.min(initial=np.inf))
        self._unit[~np.isfinite(self._unit)] = 1.0
        self._deviation = problem.limits.accuracy.deviation(problem.z)
        self._nothing = _COUNTED * self._deviation

    def run(self, max_steps: int) -> None:
        """Change the set until no cell wants to leave or to enter, or so many sets were tried."""
        if self._settles(max_steps) and not self.certify(self.y, 0.0).holds:
            self._refine()

    def _settles(self, max_steps: int) -> bool:
        chosen = self._movable & (self.y > 0)
        most = int(min(_CHANGES * len(self.y) + 10, _MOST_WORK / max(self._X.size, 1)))
        for _ in range(min(most, max_steps)):
            self.steps += 1
            aim, self.forces = self._fit_on(chosen)
            # A cell that is zero in the optimum comes out a rounding error below it: taken out of
            # the set it would enter again, and so on.
            aim[chosen & (aim < 0) & (aim >= -self._nothing)] = 0.0
            falling = chosen & (aim < 0)
            if falling.any():
                # On the way to the fit on these cells some reach zero first, and leave the set.
                share = self.y[falling] / (self.y[falling] - aim[falling])
                step = float(share.min())
                self.y += step * (aim - self.y)
                leaving = np.flatnonzero(falling)[share <= step]
                chosen[leaving], self.y[leaving] = False, 0.0
                continue
            self.y = aim
            slope = np.where(chosen | ~self._movable, 0.0, self._slopes())
            if slope.max(initial=0.0) <= _COUNTED:
                return True
            chosen[int(slope.argmax())] = True
        return False

    def _fit_on(self, chosen: Mask) -> tuple[Real, Real]:
        """The fit on some cells without bounds, and the forces there."""
        parts = _Parts.of(self._X[np.ix_(chosen, self._used)].T, self._slack[self._used])
        aim, forces = np.where(chosen, self.y, 0.0), np.zeros(len(self._used))
        for _ in range(_CORRECTIONS):
            left = (self.problem.z - aim @ self._X)[self._used]
            forces[self._used] = parts.forces(left)
            aim[chosen] += parts.answer(left - parts.slack * forces[self._used])
        return aim, forces

    def _refine(self) -> None:
        """Correct cells and forces by what their equations leave, in extended precision.

        The forces of heavy cells may be so large that their rounding errors move light ones.
        """
        chosen, used = self.y > 0, self._used
        A = self._X[np.ix_(chosen, used)].T
        parts = _Parts.of(A, self._slack[used])
        given = (A, parts.slack, self.problem.z[used], self.y[chosen], self.forces[used])
        wide, slack, z, y, u = (values.astype(np.longdouble) for values in given)
        for _ in range(_REFINEMENTS):
            # First forces that leave no cell of the set a slope, then what fits the targets.
            u += parts.against((wide.T @ u).astype(float))
            left = (z - wide @ y - slack * u).astype(float)
            change = parts.forces(left)
            u += change
            y += parts.answer(left - parts.slack * change)
        self.y[chosen], self.forces[used] = np.maximum(y, 0.0), u

    def _slopes(self) -> Real:
        """How much each cell wants to rise, in units of what a certificate allows."""
        rounding = _ROUNDING * (self._X @ np.abs(self.forces))
        allowed = self._deviation * self._unit + rounding / _COUNTED
        return np.asarray((self._X @ self.forces) / allowed)

    def meet(self, y: Real, dual: Real) -> tuple[Real, Real]:
        r"""A table of smallest norm with the very published cells, from one that nearly has them.

        Its positive cells stay what :math:`s + qX\nu` is there, for another :math:`\nu`.
        """
        y, dual, prior = y.copy(), dual.copy(), self.problem.prior
        cells, used = np.flatnonzero(y > 0), np.flatnonzero(self._used)
        deviations, fitted = prior.deviations(cells), self.y @ self._X
        V, size, U = svd(deviations[:, None] * self._X[np.ix_(cells, used)], full_matrices=False)
        rank = int(np.count_nonzero(size > RANK * size.max(initial=0.0)))
        V, size, U = V[:, :rank], size[:rank], U[:rank]
        for _ in range(_CORRECTIONS):
            left = U @ (fitted - y @ self._X)[used] / size
            dual[used] += U.T @ (left / size)
            y[cells] += deviations * (V @ left)
        return np.maximum(y, 0.0), dual

    def certify(self, y: Real, selection: float) -> Certificate:
        """How well a table with nearly the same published cells meets an optimum's conditions.

        The forces are those that residuals make, to the deviation of each cell; they raise no cell,
        and hold down none that is positive.
        """
        problem, tolerance = self.problem, self.problem.limits.accuracy.tolerance
        off = np.where(self._used, problem.z - y @ self._X - self._slack * self.forces, 0.0)
        count = problem.limits.accuracy.count
        floor = excused_rounding(problem.z, count, _ROUNDING).max(initial=0.0)
        share = np.abs(off) / np.maximum(problem.limits.margin, floor)
        slope = np.where(self._movable, self._slopes(), 0.0)
        slope = np.maximum(slope, np.where(self.y > 0, -slope, 0.0))
        worst, exact = int(share.argmax()), problem.exact
        return Certificate(
            stationarity=tolerance * max(float(share[worst]), float(slope.max(initial=0.0))),
            feasibility=tolerance * float(share[exact].max(initial=0.0)),
            selection=selection,
            tolerance=tolerance,
            deviation=abs(float(off[worst])),
            cell=worst,
        )
