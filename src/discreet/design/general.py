"""General matrices: the fallback when a table has no structure to use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Whole, Whole32
from discreet.design.axis import OUTSIDE
from discreet.design.base import Design, Restricted
from discreet.errors import DesignError

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class MatrixDesign(Design):
    """A design given by its 0/1 matrix, inner × published; cells have numbers, not codes."""

    def __init__(self, X: Any) -> None:
        from scipy import sparse

        matrix = sparse.csr_array(X)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if matrix.nnz and not (matrix.data == 1).all():
            odd = matrix.data[matrix.data != 1][0]
            raise DesignError(f"a design matrix holds only 0 and 1, found {odd}.")
        self._X = matrix.astype(np.int64)
        self._XT = self._X.T.tocsr()
        self.axes = ()
        self.n_inner, self.n_published = (int(n) for n in matrix.shape)

    def __repr__(self) -> str:
        return f"MatrixDesign({self.n_inner:,} inner, {self.n_published:,} published cells)"

    @property
    def is_complete(self) -> bool:
        """Never: nothing is known about combinations of categories."""
        return False

    @property
    def orders(self) -> Whole:
        """Cells have no variables; all count as those of a table."""
        return np.full(self.n_published, 2)

    def members(self, cells: Array) -> Whole32:
        """The published cells of some inner cells; as many columns as the longest row needs."""
        rows = self._X[cells]
        counts = np.diff(rows.indptr)
        shape = len(cells), int(counts.max(initial=0))
        found = np.full(shape, self.n_published, dtype=np.int32)
        place = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], counts)
        found[np.repeat(np.arange(len(cells)), counts), place] = rows.indices
        return found

    def restricted(self, cells: Array, *, occurring: bool = False) -> Restricted:
        """The rows of some inner cells, with the columns that they reach."""
        rows = self._X[cells]
        reached = np.unique(rows.indices).astype(np.int64)
        return Restricted(MatrixDesign(rows[:, reached]), reached)

    def _aggregate(self, y: Array) -> Array:
        z: Array = self._XT @ y
        return z

    def _adjoint(self, z: Array) -> Array:
        y: Array = self._X @ z
        return y

    def matrix(self) -> csr_array:
        """The matrix X itself."""
        return self._X.copy()

    def member_blocks(self) -> Iterator[tuple[Array, slice]]:
        """One published cell at a time."""
        for k in range(self.n_published):
            where = np.full(self.n_inner, OUTSIDE, dtype=np.int64)
            where[self._XT.indices[self._XT.indptr[k] : self._XT.indptr[k + 1]]] = k
            yield where, slice(k, k + 1)

    def duplicates(self) -> Whole:
        """Published cells with equal columns."""
        first: dict[bytes, int] = {}
        found = np.empty(self.n_published, dtype=np.int64)
        for k in range(self.n_published):
            members = np.sort(self._XT.indices[self._XT.indptr[k] : self._XT.indptr[k + 1]])
            found[k] = first.setdefault(members.tobytes(), k)
        return found

    def published_codes(self) -> list[tuple[Whole32, list[str]]]:
        """A matrix has no variables."""
        return []

    def inner_codes(self) -> list[NDArray[np.integer[Any]]]:
        """A matrix has no variables."""
        return []

    def position(self, cell: Mapping[str, object]) -> int:
        """A matrix has no codes to look up."""
        raise DesignError("a design made from a matrix has no codes; use positions.")

    inner_position = position


def assemble(n_inner: int, n_published: int, members: Iterable[tuple[Array, slice]]) -> csr_array:
    """The sparse matrix with a one at (inner cell, published position) for every membership."""
    from scipy import sparse

    rows, columns = [], []
    for where, _ in members:
        inside = np.flatnonzero(where != OUTSIDE)
        rows.append(inside)
        columns.append(where[inside])
    i, k = np.concatenate(rows), np.concatenate(columns)
    ones = np.ones(len(i), dtype=np.int64)
    return sparse.csr_array((ones, (i, k)), shape=(n_inner, n_published))
