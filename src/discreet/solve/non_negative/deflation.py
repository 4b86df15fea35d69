r"""Very heavy margins taken out of the equations on the positive cells.

Weights :math:`\kappa` far above the others make :math:`DXWX^\top D + \lambda I` ill-conditioned in
the few directions :math:`E = DX_e` of the margins that bear them. The preconditioner

.. math:: P^{-1} = I - E\,(E^\top E + \operatorname{diag} \varepsilon)^{-1} E^\top

shrinks just those: with :math:`\varepsilon = c/\kappa` they get about the curvature :math:`c` of
the others, and the steps of conjugate gradients no longer depend on the weights.

:math:`E^\top E` counts the cells that two margins share. The cells of the largest block share none
with each other, so that block is diagonal and is eliminated first; the rest is dense.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsv
from scipy.linalg.lapack import dpotrf
from scipy.sparse import csr_array

from discreet.arrays import Real, Whole
from discreet.design.incidence import Incidence
from discreet.solve.least_squares.conjugate import Deflate
from discreet.solve.least_squares.problem import Problem
from discreet.solve.non_negative.schedule import RIDGE_PATH as SCHEDULE

_NONE = -1


class Deflation:
    """The held margins of a problem, for changing sets of positive cells.

    Args:
      problem: Its design and prior.
      at: Published positions of the held margins.

    Attributes:
      at: The same positions, those of the largest block first.
    """

    def __init__(self, problem: Problem, at: Whole) -> None:
        groups = _groups(Incidence.of(problem.design), at)
        by_size = sorted(range(len(groups.cells)), key=lambda g: -len(groups.cells[g]))
        self.at = np.concatenate([groups.cells[g] for g in by_size]).astype(np.int64)
        self._n_large, self._prior = len(groups.cells[by_size[0]]), problem.prior
        rank = np.full(problem.design.n_published + 1, len(at), dtype=np.int32)
        rank[self.at] = np.arange(len(at))
        self._rank = rank[groups.index[by_size]]
        self._n_published = problem.design.n_published

    def on(self, cells: Whole, position: Whole, lift: Real) -> Deflate:
        r"""The preconditioner on some cells.

        Args:
          cells: The positive inner cells.
          position: Published position of each entry of the images it will be given.
          lift: The numbers :math:`\varepsilon`, in the order of `at`.

        Cost: the factor of the dense part.
        """
        E = self._margins_on(cells)
        solve = _Solver(csr_array(E.T @ E), self._n_large, lift)
        node_of = np.full(self._n_published, _NONE)
        node_of[position] = np.arange(len(position))
        node = node_of[self.at]
        here = node != _NONE
        node = node[here]

        def deflate(s: Real, up: Real) -> Real:
            values = np.zeros(len(here))
            values[here] = up[node]
            image = s.copy()
            image[node] -= solve(values)[here]
            return image

        return deflate

    def _margins_on(self, cells: Whole) -> csr_array:
        """The matrix E: a row for each cell, a column for each held margin."""
        rank, n = self._rank[:, cells], len(self.at)
        values = np.repeat(self._prior.deviations(cells), len(rank))
        rows = np.arange(0, rank.size + 1, len(rank))
        padded = csr_array((values, rank.T.ravel(), rows), shape=(len(cells), n + 1))
        return csr_array(padded[:, :n])


class _Solver:
    """Solves with a matrix whose first part is diagonal, by its Schur complement.

    Args:
      matrix: The matrix.
      n: The size of its first part.
      lift: What is added to the diagonal.
    """

    def __init__(self, matrix: csr_array, n: int, lift: Real) -> None:
        self._pivot = 1.0 / (matrix.diagonal()[:n] + lift[:n])
        self._between = matrix[n:, :n]
        self._factor = rest = matrix[n:, n:].toarray(order="F")
        if len(rest):
            between = self._between.toarray(order="F") * np.sqrt(self._pivot)
            complement = dsyrk(-1.0, between, beta=1.0, c=rest, lower=1, overwrite_c=1)
            self._factor = _factor(complement, lift[n:])

    def __call__(self, values: Real) -> Real:
        n = len(self._pivot)
        first = self._pivot * values[:n]
        if len(values) == n:
            return first
        second = values[n:] - self._between @ first
        second = dtrsv(self._factor, second, lower=1, overwrite_x=1)
        second = dtrsv(self._factor, second, lower=1, trans=1, overwrite_x=1)
        return np.concatenate([first - self._pivot * (self._between.T @ second), second])


def _factor(matrix: Real, lift: Real) -> Real:
    """The Cholesky factor of a lifted matrix; lifted more where rounding makes it indefinite."""
    lifted = matrix.copy(order="F")
    np.einsum("ii->i", lifted)[:] += lift
    factor, failed = dpotrf(lifted, lower=1, overwrite_a=1, clean=0)
    return _factor(matrix, SCHEDULE.raised * lift) if failed else np.asarray(factor)


def _groups(members: Incidence, at: Whole) -> Incidence:
    """The held margins in groups of which a cell counts in at most one."""
    held = np.zeros(members.n_published, dtype=bool)
    held[at] = True
    return members.using(held, np.zeros(len(members.nested), dtype=bool))
