r"""Which inner cells a set of sums leaves open, and the equations that tie them together.

Of :math:`x_k^\top y = z_k` for some published cells `k`, an equation with one unknown inner cell
gives that cell; what is known is taken out of the others, and so on.

For equations :math:`B^\top v = 0` every vector is :math:`g = Bc + v`; the free part `v` is the
nearest point to `g` that satisfies all of them: the part that they say nothing about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Index, Mask, Real, Whole
from discreet.errors import NotConvergedError
from discreet.randomness import stream

if TYPE_CHECKING:
    from scipy.sparse import csc_array

# Sums that are no whole numbers may be off by this share of the largest one.
_ROUNDING = 1e-12
# Tolerance of one round of least squares, as small as it can be asked for; the remainder is
# projected again, which brings it down to rounding errors.
_PRECISION, _ROUNDS, _MOST_STEPS = 1e-15, 3, 100_000
# Share of a vector's length that may remain where equations say something.
_ACCEPTED = 1e-10


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Inner cells that given sums leave open."""

    cells: Whole  # positions of the unknown inner cells
    # Unknown cells × equations, 0/1; every equation has at least two unknown cells, and no two have
    # the same.
    equations: csc_array
    right: Real  # what the unknown cells of each equation add up to
    known: Real  # values of the inner cells that are known; zero where they are not
    # How far sums may be off: nothing for whole numbers, else what rounding errors explain.
    slack: float

    def restrict(self, targets: Any) -> csc_array:
        """The unknown part of sums of inner cells, given as columns."""
        part: csc_array = targets.tocsr()[self.cells].tocsc().astype(np.float64)
        return part

    def constant(self, targets: Any) -> Real:
        """The known part of sums of inner cells."""
        found: Real = targets.T @ self.known
        return found


def unknowns(
    X: Any, values: Array, *, signs: bool = False, known: Mask | None = None, y: Any = None
) -> Unknowns:
    """Reduce a system of sums, `X` of inner cells × sums, to the cells it leaves open.

    With `signs` no cell is negative, so that a sum of zero gives all its cells. Inner cells that
    are `known` beforehand have their values in `y`, or the value zero.
    """
    X = X.tocsc()
    given = np.zeros(X.shape[0], dtype=bool) if known is None else known
    start = np.zeros(X.shape[0]) if y is None else np.where(given, y, 0.0)
    slack = _ROUNDING * float(np.abs(values).max(initial=0.0))
    is_whole = bool((values == np.rint(values)).all() and (start == np.rint(start)).all())
    is_open, value = solved_cells(X, values, given, start, zero=slack if signs else -np.inf)
    cells = np.flatnonzero(is_open)
    open_part = X[cells].tocsc()
    several = np.flatnonzero(np.diff(open_part.indptr) > 1)
    columns = several[np.sort(distinct_columns(open_part[:, several])[0])]
    right = (values - X.T @ value)[columns]
    equations = open_part[:, columns].astype(np.float64)
    return Unknowns(cells, equations, right, value, 0.0 if is_whole else slack)


def solved_cells(
    X: Any, values: Array, known: Mask, value: Real, *, zero: float = -np.inf
) -> tuple[Mask, Real]:
    """Fix cells that are alone in a sum, or in a sum of zero when signs count, until none is left.

    `value` holds the cells that are known beforehand. Sums of at most `zero` give all their cells.
    Returns which cells are still open, and the values of the others.
    """
    is_open, value = ~known, value.copy()
    while True:
        number, left = X.T @ is_open.astype(np.int64), values - X.T @ value
        given = np.flatnonzero((number == 1) | ((number > 0) & (left <= zero)))
        part = X[:, given]
        amount = np.repeat(np.where(number[given] == 1, left[given], 0.0), np.diff(part.indptr))
        fresh = is_open[part.indices]
        if not fresh.any():
            return is_open, value
        value[part.indices[fresh]] = amount[fresh]
        is_open[part.indices] = False


def connected_parts(matrix: Any) -> list[tuple[Index, Index]]:
    """The rows and the columns of each part of a sparse matrix that shares nothing with others."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    n = matrix.shape[0]
    if not n:
        return []
    graph = sparse.block_array([[None, matrix], [matrix.T, None]], format="csr")
    label = connected_components(graph, directed=False)[1]
    order = np.argsort(label, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    return [(part[part < n], part[part >= n] - n) for part in parts]


def distinct_columns(columns: Any) -> tuple[Index, Index]:
    """The first column of each kind with the same entries, and the kind of each column.

    Columns of whole numbers are told apart by fingerprints of 2 × 62 bits.
    """
    words = stream(0, "sums").integers(2**62, size=(columns.shape[0], 2))
    prints = columns.T.astype(np.int64) @ words
    _, first, kind = np.unique(prints, axis=0, return_index=True, return_inverse=True)
    return first, kind.ravel()


def free_part(equations: Any, vectors: Real) -> Real:
    """Project vectors, as columns, on the solutions of homogeneous equations.

    Cost: some hundred products with the equations, by least squares on columns of unit length; the
    remainder is projected again, which brings it down to rounding errors.
    """
    if not equations.shape[1] or not vectors.size:
        return vectors.astype(np.float64)
    scaled, parts = _unit_columns(equations)[0], []
    for vector in vectors.T:
        free = vector.astype(np.float64)
        size = float(np.linalg.norm(free)) or 1.0
        for _ in range(_ROUNDS):
            free = free - scaled @ _combination(scaled, free)
            worst = float(np.abs(scaled.T @ free).max()) / size
            if worst <= _ACCEPTED / 100:
                break
        if worst > _ACCEPTED:
            raise NotConvergedError(
                f"a projection on what the published cells leave open stopped at {worst:.1e} of "
                f"its size, more than {_ACCEPTED:.0e}."
            )
        parts.append(free)
    return np.stack(parts, axis=1)


def combination(equations: Any, target: Real) -> Real:
    """Coefficients with which equations come nearest to a target, the smallest ones."""
    scaled, lengths = _unit_columns(equations)
    return _combination(scaled, target) / lengths


def _combination(scaled: Any, target: Real) -> Real:
    from scipy.sparse.linalg import lsmr

    tight, most = _PRECISION, _MOST_STEPS
    found: Real = lsmr(scaled, target, atol=tight, btol=tight, conlim=0, maxiter=most)[0]
    return found


def _unit_columns(equations: Any) -> tuple[Any, Real]:
    """Columns of unit length, and the lengths they had."""
    from scipy import sparse

    lengths: Real = np.asarray(sparse.linalg.norm(equations, axis=0), dtype=np.float64)
    return (equations @ sparse.diags_array(1 / lengths)).tocsr(), lengths
