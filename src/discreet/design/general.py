"""General matrices: the fallback when a table has no structure to use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

    axes = ()
    is_complete = False  # nothing is known about combinations of categories

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
        self.n_inner, self.n_published = (int(n) for n in matrix.shape)

    def __repr__(self) -> str:
        return f"MatrixDesign({self.n_inner:,} inner, {self.n_published:,} published cells)"

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
            where[self._inner_cells(k)] = k
            yield where, slice(k, k + 1)

    def duplicates(self) -> Whole:
        """Published cells with equal columns."""
        first: dict[bytes, int] = {}
        found = np.empty(self.n_published, dtype=np.int64)
        for k in range(self.n_published):
            found[k] = first.setdefault(np.sort(self._inner_cells(k)).tobytes(), k)
        return found

    def _inner_cells(self, k: int) -> Whole32:
        cells: Whole32 = self._XT.indices[self._XT.indptr[k] : self._XT.indptr[k + 1]]
        return cells

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
