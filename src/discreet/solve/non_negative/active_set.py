r"""Non-negative least squares of small tables by active sets, right at any weight.

On cells `S` the optimum has forces :math:`u = W(z - \hat z)` with :math:`X_S u = 0`, so
:math:`u = Ns` with a basis `N` of what no table of these cells has, and `s` solves
:math:`\min \|W^{-1/2} N s - W^{1/2} z\|`. Exact margins have :math:`W^{-1} = 0` and bound nothing.
Cells that come out negative leave the set, and the one with the steepest descent enters it, until
:math:`Xu \le 0`. Each force is known to the scale of its own weight, so that no margin hides behind
a heavier one.

See Lawson & Hanson (1974), Stewart (1989).
"""

from __future__ import annotations

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
# Share of the terms of a slope that may be a rounding error,
_ROUNDING = 1e-11
# and the part of what a certificate allows at which a slope counts.
_SHARE = 0.01
# Changes of the set, times the number of cells, and entries handled, after which the search ends.
_CHANGES, _MOST_WORK = 4, 1e7


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

    def run(self, max_steps: int) -> None:
        """Change the set until no cell wants to leave or to enter, or so many sets were tried."""
        chosen = self._movable & (self.y > 0)
        most = int(min(_CHANGES * len(self.y) + 10, _MOST_WORK / max(self._X.size, 1)))
        for _ in range(min(most, max_steps)):
            self.steps += 1
            aim, self.forces = self._fit_on(chosen)
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
            if slope.max(initial=0.0) <= _SHARE:
                return
            chosen[int(slope.argmax())] = True

    def _fit_on(self, chosen: Mask) -> tuple[Real, Real]:
        """The fit on some cells without bounds, and the forces there."""
        used, cells = np.flatnonzero(self._used), np.flatnonzero(chosen)
        A, slack = self._X[np.ix_(cells, used)].T, self._slack[used]
        U, size, V = svd(A, check_finite=False)
        rank = int(np.count_nonzero(size > RANK * size.max(initial=0.0)))
        N, range_ = U[:, rank:], U[:, :rank]
        factor, is_exact = RowScaledFactor(N, np.sqrt(slack)), slack == 0
        aim, forces = np.where(chosen, self.y, 0.0), np.zeros(len(self._used))
        for _ in range(_CORRECTIONS):
            left = (self.problem.z - aim @ self._X)[used]
            s = factor.solve(np.sqrt(pseudo_inverse(slack)) * left)
            s += factor.solve_normal(N.T @ np.where(is_exact, left, 0.0))
            forces[used] = N @ s
            aim[cells] += V[:rank].T @ (range_.T @ (left - slack * forces[used]) / size[:rank])
        return aim, forces

    def _slopes(self) -> Real:
        """How much each cell wants to rise, in units of what a certificate allows."""
        rounding = _ROUNDING * (self._X @ np.abs(self.forces))
        deviation = self.problem.limits.accuracy.deviation(self.problem.z)
        return np.asarray((self._X @ self.forces) / (deviation * self._unit + rounding / _SHARE))

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
