r"""Very heavy margins taken out of the equations on the positive cells.

Weights :math:`\kappa` far above the others make :math:`DXWX^\top D + \lambda I` stiff in the few
directions :math:`E = DX_e` of the margins that bear them. The preconditioner

.. math:: P^{-1} = I - E\,(E^\top E + \operatorname{diag} \varepsilon)^{-1} E^\top

shrinks just those: with :math:`\varepsilon = c/\kappa` they get about the curvature :math:`c` of
the others, and the steps of conjugate gradients no longer depend on the weights.

:math:`E^\top E` counts the cells that two margins share. The cells of the largest block share none
with each other, so that block is diagonal and is eliminated first; the rest is dense.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, dtrsv
from scipy.linalg.lapack import dpotrf
from scipy.sparse import csr_array

from discreet.design.incidence import Incidence
from discreet.solve.least_squares.conjugate import Deflate
from discreet.solve.least_squares.problem import Problem

Vector = NDArray[np.float64]
Index = NDArray[np.int32]

_NONE = -1
_MORE = 10.0  # lifts the equations where rounding spoils their factor


class Deflation:
    """The stiff margins of a problem, for changing sets of positive cells.

    Args:
      problem: Its design and prior.
      at: Published positions of the stiff margins.

    Attributes:
      at: The same positions, those of the largest block first.
    """

    def __init__(self, problem: Problem, at: NDArray[np.int64]) -> None:
        design = problem.design
        groups = _groups(Incidence.of(design), at)
        by_size = sorted(range(len(groups.cells)), key=lambda g: -len(groups.cells[g]))
        self._n_published = design.n_published
        self.at = np.concatenate([groups.cells[g] for g in by_size]).astype(np.int64)
        rank = np.full(design.n_published + 1, _NONE, dtype=np.int32)
        rank[self.at] = np.arange(len(at))
        self._index = np.ascontiguousarray(rank[groups.index[by_size]].T)
        self._variance = problem.prior.deviations(np.arange(design.n_inner)) ** 2
        self._counted = np.zeros(design.n_inner)
        n_large = len(groups.cells[by_size[0]])
        n_rest = len(at) - n_large
        self._large = np.zeros(n_large)
        self._between = np.zeros((n_rest, n_large), order="F")
        self._rest = np.zeros((n_rest, n_rest), order="F")

    def on(self, cells: NDArray[np.int64], position: NDArray[np.int64], lift: Vector) -> Deflate:
        r"""The preconditioner on some cells.

        Args:
          cells: The positive inner cells.
          position: Published position of each entry of the images it will be given.
          lift: The numbers :math:`\varepsilon`, in the order of `at`.

        Cost: some floating point operations for every cell that was not in the last set, or no
        longer is; the factor of the dense part.
        """
        self._count(cells)
        solve = _Solver(self._large, self._between, self._rest, lift)
        node_of = np.full(self._n_published, _NONE)
        node_of[position] = np.arange(len(position))
        node = node_of[self.at]
        here = node != _NONE
        node = node[here]

        def deflate(s: Vector, up: Vector) -> Vector:
            values = np.zeros(len(here))
            values[here] = up[node]
            image = s.copy()
            image[node] -= solve(values)[here]
            return image

        return deflate

    def _count(self, cells: NDArray[np.int64]) -> None:
        """Bring the shared variances up to date."""
        now = np.zeros_like(self._counted)
        now[cells] = self._variance[cells]
        change = now - self._counted
        changed = np.flatnonzero(change)
        _add_shared(self._index[changed], change[changed], self._large, self._between, self._rest)
        self._counted = now


class _Solver:
    """Solves with a matrix whose first part is diagonal, by its Schur complement.

    Args:
      diagonal: The first part.
      between: Its coupling to the second.
      rest: The second part, lower triangle.
      lift: What is added to the diagonal.
    """

    def __init__(self, diagonal: Vector, between: Vector, rest: Vector, lift: Vector) -> None:
        n = len(diagonal)
        self._pivot = 1.0 / (diagonal + lift[:n])
        self._between = csr_array(between)
        self._factor = rest
        if len(rest):
            complement = dsyrk(-1.0, between * np.sqrt(self._pivot), beta=1.0, c=rest, lower=1)
            self._factor = _factor(complement, lift[n:])

    def __call__(self, values: Vector) -> Vector:
        n = len(self._pivot)
        first = self._pivot * values[:n]
        if len(values) == n:
            return first
        second = values[n:] - self._between @ first
        second = dtrsv(self._factor, second, lower=1, overwrite_x=1)
        second = dtrsv(self._factor, second, lower=1, trans=1, overwrite_x=1)
        return np.concatenate([first - self._pivot * (self._between.T @ second), second])


def _factor(matrix: Vector, lift: Vector) -> Vector:
    """The Cholesky factor of a lifted matrix; lifted more where rounding makes it indefinite."""
    lifted = matrix.copy(order="F")
    np.einsum("ii->i", lifted)[:] += lift
    factor, failed = dpotrf(lifted, lower=1, overwrite_a=1, clean=0)
    return _factor(matrix, _MORE * lift) if failed else np.asarray(factor)


def _groups(members: Incidence, at: NDArray[np.int64]) -> Incidence:
    """The stiff margins in groups of which a cell counts in at most one."""
    stiff = np.zeros(members.n_published, dtype=bool)
    stiff[at] = True
    return members.using(stiff, np.zeros(len(members.nested), dtype=bool))


@njit(cache=True)
def _add_shared(index: Index, change: Vector, large: Vector, between: Vector, rest: Vector) -> None:
    """Add to every pair of margins the change of the cells they share; lower triangles alone."""
    n = len(large)
    for i in range(len(change)):
        a = index[i, 0]
        if a != _NONE:
            large[a] += change[i]
        for g in range(1, index.shape[1]):
            b = index[i, g]
            if b == _NONE:
                continue
            if a != _NONE:
                between[b - n, a] += change[i]
            for h in range(1, g + 1):
                c = index[i, h]
                if c != _NONE:
                    rest[max(b, c) - n, min(b, c) - n] += change[i]
