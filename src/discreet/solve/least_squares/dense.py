r"""Least squares fits of small tables by dense factors, right at any weight.

With an orthonormal basis `U` of the published cells that some table has, the fit is :math:`Uc` and
:math:`\min_c \|W^{1/2}(Uc - z)\|` a problem whose rows have scales of their own. A factor with
pivoted columns and sorted rows harms none of these by another, however much heavier it is: an error
amounts to a change of each target by a rounding error of its own size, and moves no fitted cell by
more than a multiple of it that no weight enlarges.

See Stewart (1989), Cox & Higham (1998).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import qr, solve_triangular, svd

from discreet.arrays import Real, Whole
from discreet.solve.fit import Certificate
from discreet.solve.least_squares.problem import LeastSquaresProblem, certify_deviations

# Entries of a dense matrix up to which it is used, and the longer of its sides.
MOST_ENTRIES = 1e6
_LONGEST = 2_000
# Share of the largest singular value, or diagonal entry, below which another is a rounding error.
RANK = 1e-10
_PIVOT = 1e-13
# Corrections of a fit by what it leaves; the second takes out what rounding leaves of the first.
_CORRECTIONS = 3


def is_small(problem: LeastSquaresProblem) -> bool:
    """Whether dense factors of a problem are cheap."""
    design = problem.design
    size = (design.n_inner, design.n_published)
    return max(size) <= _LONGEST and size[0] * size[1] <= MOST_ENTRIES


@dataclass(frozen=True, eq=False)
class DenseFactors:
    """The factors of a problem, for any targets: they depend on weights and variances alone."""

    problem: LeastSquaresProblem

    @cached_property
    def _used_rows(self) -> Whole:
        return np.flatnonzero(self.problem.weights > 0)

    @cached_property
    def _cells(self) -> Whole:
        return np.flatnonzero(self.problem.prior.movable(self.problem.design.n_inner))

    @cached_property
    def _parts(self) -> tuple[Real, Real, Real]:
        """The range of the sums, the tables that answer to it, and those without sums."""
        X = (
            self.problem.design.matrix()[self._cells][:, self._used_rows]
            .toarray()
            .astype(np.float64)
        )
        is_plain = self.problem.prior.variance is None
        V, size, U = svd(X, full_matrices=not is_plain, check_finite=False)
        rank = int(np.count_nonzero(size > RANK * size.max(initial=0.0)))
        return U[:rank].T, V[:, :rank] / size[:rank], V[:, rank:]

    @cached_property
    def _projection(self) -> RowScaledFactor:
        return RowScaledFactor(self._parts[0], np.sqrt(self.problem.weights[self._used_rows]))

    @cached_property
    def _free(self) -> RowScaledFactor:
        return RowScaledFactor(self._parts[2], 1.0 / self.problem.prior.deviations(self._cells))

    def fit(self, z: Real) -> Real:
        """The fit to targets, of smallest move from the starting table."""
        y, used = self.problem.prior.starts(np.arange(self.problem.design.n_inner)), self._used_rows
        y = y.copy()
        for _ in range(_CORRECTIONS):
            left = (z - self.problem.design.aggregate(y))[used]
            y[self._cells] += self._smallest(self.deviation(left))
        return y

    def deviation(self, left: Real) -> Real:
        """The part of residuals of used cells that the fit to them has: what a fit lacks still."""
        scaled = np.sqrt(self.problem.weights[self._used_rows]) * left
        return np.asarray(self._parts[0] @ self._projection.solve(scaled))

    def _smallest(self, fitted: Real) -> Real:
        """The smallest move, in units of the variances, that gives published cells."""
        range_, answers, _ = self._parts
        return self._nearest(answers @ (range_.T @ fitted))

    def _nearest(self, move: Real) -> Real:
        if self.problem.prior.variance is None:
            return move
        free, deviations = self._parts[2], self.problem.prior.deviations(self._cells)
        return np.asarray(move - free @ self._free.solve(move / deviations))

    def certify(self, z: Real, y: Real) -> Certificate:
        """How far published cells are from the optimum, and inner ones from the smallest move."""
        problem, off = self.problem, np.zeros(len(z))
        off[self._used_rows] = self.deviation((z - problem.design.aggregate(y))[self._used_rows])
        move, apart = (y - problem.prior.starts(np.arange(len(y))))[self._cells], np.zeros_like(y)
        apart[self._cells] = move
        sums = problem.design.aggregate(apart)[self._used_rows]
        apart[self._cells] = move - self._smallest(sums)
        return certify_deviations(problem, off, apart)


class RowScaledFactor:
    """Least squares with a matrix whose rows are scaled, by a factor that keeps to each scale."""

    def __init__(self, matrix: Real, scales: Real) -> None:
        scaled = scales[:, None] * matrix
        self._order = np.argsort(-np.abs(scaled).max(axis=1, initial=0.0), kind="stable")
        Q, R, pivots = qr(scaled[self._order], mode="economic", pivoting=True, check_finite=False)
        size = np.abs(np.diag(R))
        rank = int(np.count_nonzero(size > _PIVOT * size.max(initial=0.0)))
        self._Q, self._R, self._pivots = Q[:, :rank], R[:rank, :rank], pivots[:rank]
        self._n = matrix.shape[1]

    def solve(self, values: Real) -> Real:
        """The least squares solution for scaled values."""
        found = np.zeros(self._n)
        if len(self._pivots):
            right = self._Q.T @ values[self._order]
            found[self._pivots] = solve_triangular(self._R, right, check_finite=False)
        return found

    def solve_normal(self, values: Real) -> Real:
        """The solution of the normal equations for a right-hand side."""
        found = np.zeros(self._n)
        if len(self._pivots):
            half = solve_triangular(self._R, values[self._pivots], trans="T", check_finite=False)
            found[self._pivots] = solve_triangular(self._R, half, check_finite=False)
        return found

    def image(self, solution: Real) -> Real:
        """A solution in coordinates in which the scaled squares are plain ones."""
        return np.asarray(self._R @ solution[self._pivots])

    def whiten(self, rows: Real) -> Real:
        """Rows beside the matrix in these coordinates, one to a column.

        The squared length of one is the variance of what the solution makes of the row, under
        noise whose standard deviations are one over the scales.
        """
        right = rows[:, self._pivots].T
        return np.asarray(solve_triangular(self._R, right, trans="T", check_finite=False))
