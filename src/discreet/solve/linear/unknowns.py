r"""Which inner cells a set of sums leaves open, and the equations that tie them together.

Of :math:`x_k^\top y = z_k` for some published cells `k`, an equation with one unknown inner cell
gives that cell; what is known is taken out of the others, and so on. What remains falls into
components that share no equation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.randomness import stream

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]
Marks = NDArray[np.bool_]

ROUNDING = 1e-12
"""Sums may be off by this share of the largest one when they are not whole numbers."""


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Inner cells that given sums leave open.

    Attributes:
      cells: Positions of the unknown inner cells.
      equations: Unknown cells × equations, 0/1; every equation has at least two unknown cells, and
        no two have the same.
      columns: For each equation the position of its sum among the given ones.
      right: What the unknown cells of each equation add up to.
      known: Values of the inner cells that are known; zero where they are not.
      slack: How far sums may be off: nothing for whole numbers, else what rounding errors explain.
      component: For each unknown cell the number of its component.
      component_of_equation: The same for each equation.
    """

    cells: Whole
    equations: csc_array
    columns: Whole
    right: Vector
    known: Vector
    slack: float
    component: Whole
    component_of_equation: Whole

    @property
    def n_components(self) -> int:
        """Number of groups of unknown cells that share no equation."""
        return int(self.component.max(initial=-1)) + 1

    def restrict(self, targets: Any) -> csc_array:
        """The unknown part of sums of inner cells, given as columns."""
        part: csc_array = targets.tocsr()[self.cells].tocsc().astype(np.float64)
        return part

    def constant(self, targets: Any) -> Vector:
        """The known part of sums of inner cells."""
        found: Vector = targets.T @ self.known
        return found


def unknowns(
    X: Any, values: NDArray[Any], *, signs: bool = False, known: Marks | None = None, y: Any = None
) -> Unknowns:
    """Reduce a system of sums to the cells it leaves open.

    Args:
      X: Inner cells × sums, 0/1, sparse.
      values: The sums.
      signs: Whether cells are known not to be negative, so that a sum of zero gives all its cells.
      known: Inner cells that are known beforehand.
      y: Their values, for all inner cells; zeros when absent.
    """
    X = X.tocsr()
    by_sum = X.tocsc()
    given = np.zeros(X.shape[0], dtype=bool) if known is None else known.copy()
    start = np.zeros(X.shape[0]) if y is None else np.where(given, y, 0.0)
    slack = ROUNDING * float(np.abs(values).max(initial=0.0))
    is_whole = bool((values == np.rint(values)).all() and (start == np.rint(start)).all())
    found, value, left = _peel(
        X.indptr,
        X.indices,
        by_sum.indptr,
        by_sum.indices,
        values - by_sum.T @ start,
        given,
        start,
        slack if signs else -np.inf,
    )
    return _assembled(by_sum, found, value, left, 0.0 if is_whole else slack)


def _assembled(by_sum: Any, known: Marks, value: Vector, left: Vector, slack: float) -> Unknowns:
    cells = np.flatnonzero(~known)
    open_part = by_sum[cells].tocsc()
    several = np.flatnonzero(np.diff(open_part.indptr) > 1)
    columns = several[_first_of_equal(open_part[:, several])]
    equations = open_part[:, columns].astype(np.float64)
    component, of_equation = _components(equations)
    right = left[columns]
    return Unknowns(cells, equations, columns, right, value, slack, component, of_equation)


def _first_of_equal(columns: Any) -> NDArray[np.intp]:
    """The first of the columns with the same entries, found by fingerprints of 2 × 62 bits."""
    words = stream(0, "unknowns").integers(2**62, size=(columns.shape[0], 2))
    prints = columns.T.astype(np.int64) @ words
    _, first = np.unique(prints, axis=0, return_index=True)
    return np.sort(first)


def _components(equations: Any) -> tuple[Whole, Whole]:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n, m = equations.shape
    if n == 0:
        return np.zeros(0, np.int64), np.zeros(m, np.int64)
    graph = sparse.block_array([[None, equations], [equations.T, None]], format="csr")
    labels = connected_components(graph, directed=False)[1].astype(np.int64)
    return labels[:n], labels[n:]


@njit(cache=True)
def _peel(
    sum_of: NDArray[Any],
    sums: NDArray[Any],
    cell_of: NDArray[Any],
    cells: NDArray[Any],
    left: Vector,
    known: Marks,
    value: Vector,
    zero: float,
) -> tuple[Marks, Vector, Vector]:
    """Fix cells that are alone in a sum, or in a sum of zero when signs count, until none is left.

    Sums of at most `zero` give all their cells; that is minus infinity when signs do not count.
    """
    unknown = np.zeros(len(left), dtype=np.int64)
    for k in range(len(left)):
        for a in range(cell_of[k], cell_of[k + 1]):
            unknown[k] += not known[cells[a]]
    waiting = [np.int64(k) for k in range(len(left)) if unknown[k] == 1 or left[k] <= zero]
    while len(waiting):
        k = int(waiting.pop())
        if unknown[k] == 0 or (unknown[k] > 1 and left[k] > zero):
            continue
        alone = unknown[k] == 1
        for a in range(cell_of[k], cell_of[k + 1]):
            i = cells[a]
            if known[i]:
                continue
            known[i] = True
            value[i] = left[k] if alone else 0.0
            for b in range(sum_of[i], sum_of[i + 1]):
                other = sums[b]
                unknown[other] -= 1
                if other != k:
                    left[other] -= value[i]
                if unknown[other] == 1 or (unknown[other] > 0 and left[other] <= zero):
                    waiting.append(np.int64(other))
    return known, value, left
