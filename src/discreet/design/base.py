r"""What every design answers: the linear model of a table, :math:`z = X^\top y`.

Above this file lie designs over variables (`structured`), their two kinds (`product`, the full
crossing, and `sparse`, chosen inner cells), and plain matrices (`general`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Mask, Whole, Whole32
from discreet.columns import Column
from discreet.design.axis import Axis, Variables, axes_of
from discreet.design.codes import cell_text
from discreet.design.support import Embedding, Kind
from discreet.errors import DesignError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from discreet.design.formula import Block, Margins, Term
    from discreet.design.product import ProductDesign
    from discreet.design.structured import StructuredDesign


Cell = dict[str, str]


# Kinds of designs lie above this file, but every design can make one of another kind.
# The room's front door, `discreet.design`, enters how.
MAKERS: dict[str, Callable[..., Any]] = {}


class Design(ABC):
    r"""The linear model of a table, :math:`z = X^\top y`.

    Row :math:`i` of :math:`X` is an inner cell, column :math:`k` a published cell, and
    :math:`X_{ik} = 1` when inner cell :math:`i` counts in published cell :math:`k`. Subclasses use
    the structure of the table; :math:`X` itself is built only by `matrix`.
    """

    axes: tuple[Axis, ...]
    terms: Sequence[Term] = ()
    blocks: Sequence[Block] = ()
    n_inner: int
    n_published: int

    @staticmethod
    def product(
        variables: Variables, margins: Margins, structural_zeros: Sequence[Mapping[str, Any]] = ()
    ) -> Design:
        """A complete design: every combination of the categories is an inner cell.

        Args:
          variables: By variable the number of categories, their codes, or a hierarchy; or axes.
          margins: A formula, or a list of tuples of names.
          structural_zeros: Combinations that cannot occur, as {variable: codes}.
        """
        made: Design = MAKERS["complete"](axes_of(variables), margins, structural_zeros)
        return made

    @staticmethod
    def sparse(variables: Variables, margins: Margins, codes: Sequence[Array]) -> Design:
        """A design on chosen inner cells only.

        Args:
          variables: As for `product`.
          margins: As for `product`.
          codes: For each variable the leaf positions of the inner cells.
        """
        made: Design = MAKERS["chosen"](axes_of(variables), margins, codes)
        return made

    @staticmethod
    def from_matrix(X: Any) -> Design:
        """Any 0/1 matrix, inner × published, when there is no structure to use."""
        made: Design = MAKERS["matrix"](X)
        return made

    def aggregate(self, y: Array) -> Array:
        r"""Published cells :math:`X^\top y`; whole numbers stay whole numbers."""
        return self._aggregate(self._as_cells(y, self.n_inner, "inner"))

    def adjoint(self, z: Array) -> Array:
        r"""For each inner cell the sum over the published cells it counts in, :math:`Xz`."""
        return self._adjoint(self._as_cells(z, self.n_published, "published"))

    def residual(self, y: Array, z: Array) -> Array:
        r""":math:`X^\top y - z`."""
        difference: Array = self.aggregate(y) - z
        return difference

    @abstractmethod
    def _aggregate(self, y: Array) -> Array: ...

    @abstractmethod
    def _adjoint(self, z: Array) -> Array: ...

    @abstractmethod
    def matrix(self) -> csr_array:
        """The matrix X itself, sparse; for small designs and general solvers."""

    @abstractmethod
    def member_blocks(self) -> Iterator[tuple[Array, slice]]:
        """Groups of published cells of which each inner cell counts in at most one.

        Yields, group by group, the published position of each inner cell (-1: none) and the
        slice of published positions the group occupies.
        """

    @abstractmethod
    def duplicates(self) -> Whole:
        """For each published cell the first one with the same inner cells (itself if none)."""

    @abstractmethod
    def published_codes(self) -> list[tuple[Whole32, list[str]]]:
        """For each axis: index of each published cell's code, and the codes (the total last)."""

    @abstractmethod
    def inner_codes(self) -> list[NDArray[np.integer[Any]]]:
        """For each axis the leaf position of every inner cell."""

    @abstractmethod
    def position(self, cell: Mapping[str, object]) -> int:
        """Position of a published cell given by its codes; variables left out are totals."""

    @abstractmethod
    def inner_position(self, cell: Mapping[str, object]) -> int:
        """Position of an inner cell given by a code for every variable."""

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """Whether the inner cells are the full crossing of the categories."""

    @property
    def support(self) -> Kind:
        """Which combinations are inner cells; `"occurring"` is confidential."""
        return "all"

    def public(self) -> Embedding[Any]:
        """The design with public support, and where this one's cells lie in it."""
        return Embedding(self, slice(None), slice(None))

    @property
    def is_confidential(self) -> bool:
        """Whether the choice of inner cells was read from confidential records."""
        return self.support == "occurring"

    def require_public_size(self) -> None:
        """Refuse a confidential support when the public one cannot be published."""
        return

    def require_dense(self) -> None:
        """Refuse an array of all inner cells when it cannot be held in memory."""
        return

    @property
    def without_inner_cells(self) -> Mask:
        """Published cells that no inner cell belongs to."""
        return np.asarray(self.column_sizes == 0)

    @property
    def shows_inner_cells(self) -> bool:
        """Whether the inner cells are themselves published, whichever of them occur."""
        alone = (self.column_sizes == 1).astype(np.int64)
        return bool((self.adjoint(alone) > 0).all())

    @property
    def has_passes(self) -> bool:
        """Whether `fused` gives passes over the table that store nothing of its size."""
        return False

    @abstractmethod
    def restricted(self, cells: Array, *, occurring: bool = False) -> Restricted:
        """The design on some inner cells.

        Args:
          cells: Positions of the inner cells.
          occurring: Whether the choice was read from confidential records.
        """

    @abstractmethod
    def members(self, cells: Array) -> Whole32:
        """For some inner cells the published cells they count in, one column for each table.

        The entry is the number of published cells where an inner cell has no cell in a column.
        Memory: 4 bytes for each inner cell and column.

        Args:
          cells: Positions of the inner cells.
        """

    @property
    @abstractmethod
    def orders(self) -> Whole:
        """The number of variables of each published cell; 2 where there are no variables."""

    @property
    def tables(self) -> Mapping[str, Sequence[Any]]:
        """The tables of the design by name; a matrix has none."""
        return {}

    @property
    def over_variables(self) -> StructuredDesign | None:
        """The design itself where it is made of variables, `None` where it is a matrix."""
        return None

    def at_published_levels(self) -> StructuredDesign | None:
        """The same published cells over inner cells that they tell apart; `None` where these do."""
        return None

    @property
    def product_form(self) -> ProductDesign | None:
        """The design itself where it is a full crossing of variables, else `None`."""
        return None

    def require_variables(self, wanted: str) -> StructuredDesign:
        """The design, if it is made of variables; the error says what they are wanted for."""
        if self.over_variables is None:
            raise DesignError(f"a design made from a matrix has no {wanted}.")
        return self.over_variables

    def row_sums(self, columns: Array | None = None) -> Whole:
        """In how many of the published cells `columns` (all by default) each inner cell counts."""
        chosen = np.ones(self.n_published, dtype=np.int64)
        if columns is not None:
            chosen = np.zeros(self.n_published, dtype=np.int64)
            chosen[columns] = 1
        return self.adjoint(chosen)

    def sensitivity(self, columns: Array | None = None) -> int:
        """Largest row sum over the published cells `columns`: what one record can change."""
        return int(self.row_sums(columns).max(initial=0))

    @cached_property
    def column_sizes(self) -> Whole:
        """Number of inner cells in each published cell."""
        return self.aggregate(np.ones(self.n_inner, dtype=np.int64))

    def inner_in_published(self) -> Whole:
        """For each inner cell a published cell that holds it alone, -1 where there is none."""
        found = np.full(self.n_inner, -1, dtype=np.int64)
        for positions, _ in self.member_blocks():
            alone = (positions >= 0) & (self.column_sizes[positions] == 1)
            found[alone] = positions[alone]
        return found

    def cell(self, position: int) -> Cell:
        """The codes of one published cell, totals left out."""
        found = {}
        for axis, (index, codes) in zip(self.axes, self.published_codes(), strict=True):
            code = codes[int(index[position])]
            if code not in axis.total_codes:
                found[axis.name] = code
        return found

    def name_of(self, position: int) -> str:
        """A published cell in words: its codes, or its number where there are none."""
        if not self.axes:
            return f"number {position}"
        return cell_text(self.cell(position))

    def inner_cell(self, position: int) -> Cell:
        """The codes of one inner cell."""
        pairs = zip(self.axes, self.inner_codes(), strict=True)
        return {axis.name: axis.leaves[int(leaf[position])] for axis, leaf in pairs}

    def label_columns(self) -> dict[str, Column]:
        """Code columns of the published cells, by variable; each code is kept once."""
        return {
            axis.name: Column.of_codes(index, codes)
            for axis, (index, codes) in zip(self.axes, self.published_codes(), strict=True)
        }

    def inner_label_columns(self, positions: Array | None = None) -> dict[str, Column]:
        """Code columns of the inner cells, or of some of them; each code is kept once."""
        chosen = slice(None) if positions is None else positions
        return {
            axis.name: Column.of_codes(leaf[chosen], axis.leaves)
            for axis, leaf in zip(self.axes, self.inner_codes(), strict=True)
        }

    def _as_cells(self, values: Array, expected: int, kind: str) -> Array:
        values = np.asarray(values)
        if values.ndim != 1 or len(values) != expected:
            raise DesignError(
                f"the design has {expected:,} {kind} cells, but the array has shape {values.shape}."
            )
        # Sums of small whole numbers outgrow their type: int8 holds no more than 127 records.
        if values.dtype == np.bool_ or values.dtype.kind in "iu" and values.dtype.itemsize < 8:
            return values.astype(np.int64)
        return values


class Restricted(NamedTuple):
    """A design on some inner cells of another one."""

    design: Design  # the design
    published: Whole  # positions in the other one of the published cells that they reach


def dot(a: Array, b: Array) -> float:
    """The sum of the products of two vectors' entries."""
    return float(np.einsum("i,i->", a, b))
