"""Inner cells of a fit: stored, or computed from the model where they are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from discreet.arrays import Array, Mask, Real, Whole, Whole32
from discreet.columns import Column
from discreet.design.axis import Axis
from discreet.design.base import Design
from discreet.design.codes import canonical
from discreet.design.fused.links import CellLink
from discreet.design.structured import StructuredDesign
from discreet.design.support import LARGEST_DENSE
from discreet.errors import DesignError
from discreet.files import PARQUET, ending_of, written_whole
from discreet.frames import Frame
from discreet.parquet import write_parquet

KEPT = 2_000_000  # inner cells up to which a computed table is kept once it was asked for
SLICE = 1_000_000  # inner cells that are computed at once when a table is written


class ModelTable(NDArrayOperatorsMixin):
    r"""The table :math:`y = \varphi(s + qX\nu)`, computed cell by cell where it is asked for.

    It stands in for an array of inner cells: it has a length, can be indexed by positions, and
    becomes an array wherever NumPy needs one.

    Args:
      design: A complete design, or one whose structural zeros are masks.
      link: The function :math:`\varphi`.
      nu: One value for each published cell.
      start: The table :math:`s`, one value for each inner cell, if there is one.
      variance: The table :math:`q`, if there is one.
    """

    dtype = np.dtype(np.float64)
    ndim = 1

    def __init__(
        self,
        design: StructuredDesign,
        link: CellLink,
        nu: Real,
        start: Real | None = None,
        variance: Real | None = None,
    ) -> None:
        self.design, self.link, self.nu = design, link, nu
        self.start, self.variance = start, variance
        self._kept: Real | None = None

    def __len__(self) -> int:
        return self.design.n_inner

    @property
    def size(self) -> int:
        """Number of inner cells, as for arrays."""
        return self.design.n_inner

    @property
    def shape(self) -> tuple[int]:
        """The shape of the array that this stands for."""
        return (len(self),)

    def __getitem__(self, positions: Any) -> Real:
        if self._kept is not None:
            return np.asarray(self._kept[positions])
        if isinstance(positions, slice):
            positions = np.arange(*positions.indices(len(self)))
        elif np.asarray(positions).dtype == np.bool_:
            positions = np.flatnonzero(positions)
        return self.at(self.design.leaf_positions(np.asarray(positions)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.y, dtype=dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        given = [np.asarray(v) if isinstance(v, ModelTable) else v for v in inputs]
        return getattr(ufunc, method)(*given, **options)

    @property
    def y(self) -> Real:
        """All inner cells; kept where they are few."""
        if self._kept is not None:
            return self._kept
        if len(self) > LARGEST_DENSE:
            raise DesignError(
                f"the table has {len(self):,} inner cells, more than the {LARGEST_DENSE:,} that "
                "are held in memory. Ask for some of them with `fit.inner(codes)`, or write them "
                "to a file with `fit.write(path)`."
            )
        y = self.link.of(self.design.adjoint(self.nu), self.start, self.variance)
        y.flags.writeable = False
        if len(self) <= KEPT:
            self._kept = y
        return y

    def at(self, index: Sequence[Array]) -> Real:
        """Cells by the leaf position on each axis: arrays that NumPy can bring to one shape.

        Structural zeros are zero.
        """
        embedding = self.design.crossing
        full, nu = embedding.design, embedding.as_public_cells(self.nu)
        total: Real = np.zeros((1,) * np.ndim(index[0]) if len(index) else ())
        for k in range(len(full.blocks)):
            flat, inside = full.locate(k, index)
            values = nu[full.slice_of(k)][np.where(inside, flat, 0)]
            total = total + np.where(inside, values, 0.0)
        y = self.link.of(np.asarray(total), *self._stored_at(index))
        return np.where(self.is_possible(index), y, 0.0)

    def _stored_at(self, index: Sequence[Array]) -> tuple[Real | None, Real | None]:
        """Start and variance of cells by their leaf positions; any value at structural zeros."""
        if self.start is None and self.variance is None:
            return None, None
        flat = np.ravel_multi_index(np.broadcast_arrays(*index), self.design.shape)
        cells = np.minimum(self.design.inner_at(flat), len(self) - 1)
        start = None if self.start is None else self.start[cells]
        return start, None if self.variance is None else self.variance[cells]

    def is_possible(self, index: Sequence[Array]) -> Mask:
        """Whether cells, by the leaf position on each axis, are no structural zeros."""
        possible = np.ones((), dtype=bool)
        for mask in self.design.masks or ():
            possible = possible & mask.at(index)
        return possible


class ListedTable:
    """Whole numbers of records in the cells of a crossing of any size, as a list of the records.

    Args:
      design: The design; only its variables and its published side are used.
      records: Records × axes: leaf positions.
    """

    dtype = np.dtype(np.int64)

    def __init__(self, design: StructuredDesign, records: Whole32) -> None:
        self.design, self.records = design, records

    @property
    def size(self) -> int:
        """Number of inner cells, nearly all of which are zero."""
        return self.design.n_inner

    @property
    def y(self) -> Whole:
        """All inner cells, where they can be held in memory."""
        self.design.require_dense()
        flat = np.ravel_multi_index(tuple(self.records.T), self.design.shape)
        return np.bincount(self.design.inner_at(flat), minlength=self.size).astype(np.int64)

    def cells(self) -> tuple[list[Whole32], Whole]:
        """Leaf positions and counts of the cells that are not zero."""
        some, counts = np.unique(self.records, axis=0, return_counts=True)
        return [leaf.astype(np.int32) for leaf in some.T], counts.astype(np.int64)

    def at(self, leaves: Sequence[Whole]) -> Whole:
        """The cells of the crossing of some leaves of each axis, as an array over them."""
        chosen, counts = self.cells()
        found = np.zeros([len(leaf) for leaf in leaves], dtype=np.int64)
        places = [np.searchsorted(leaf, c) for leaf, c in zip(leaves, chosen, strict=True)]
        inside = np.ones(len(counts), dtype=bool)
        for leaf, c, place in zip(leaves, chosen, places, strict=True):
            inside &= np.append(leaf, -1)[place] == c
        found[tuple(place[inside] for place in places)] = counts[inside]
        return found

    def aggregate(self, design: StructuredDesign) -> Whole:
        """The published cells of a design over the same variables."""
        z = np.zeros(design.n_published, dtype=np.int64)
        leaves = [leaf.astype(np.int64) for leaf in self.records.T]
        for k in range(len(design.blocks)):
            flat, inside = design.locate(k, leaves)
            places = np.broadcast_to(flat, len(self.records))[
                np.broadcast_to(inside, len(self.records))
            ]
            z += np.bincount(design.published_at(k, places), minlength=design.n_published)
        return z


def chosen_cells(
    design: Design, cells: Real | ModelTable | ListedTable, codes: Mapping[str, Any]
) -> Array:
    """Inner cells with these codes, in the order of the design; see `Fit.inner`."""
    design = design.require_variables("variables to choose inner cells by")
    for name in codes:
        design.axis(name)
    leaves = [_leaves(axis, codes.get(axis.name)) for axis in design.axes]
    if isinstance(cells, ListedTable):
        return cells.at(leaves).ravel()
    if isinstance(cells, ModelTable):
        index = np.ix_(*leaves)
        values = cells.at(index)
        return values[np.broadcast_to(cells.is_possible(index), values.shape)]
    inside = np.ones(len(cells), dtype=bool)
    for chosen, leaf in zip(leaves, design.inner_codes(), strict=True):
        inside &= np.isin(leaf, chosen)
    return cells[inside]


def _leaves(axis: Axis, given: Any) -> Whole:
    """Leaf positions of one code, of several, or of all for `None`; in their order."""
    if given is None:
        return np.arange(len(axis))
    several = [given] if isinstance(given, (str, int, np.integer)) else list(given)
    codes = [canonical(code) for code in several]
    axis.check_codes(code for code in codes if code not in axis.code_leaves)
    found = [axis.code_leaves[code] for code in codes]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))


def write_cells(design: Design, cells: Real | ModelTable | ListedTable, path: str | Path) -> Path:
    """Write the inner cells that are not zero to Parquet, slice by slice; see `Fit.write`."""
    ending_of(path, PARQUET)
    design = design.require_variables("codes to write beside its cells")
    codes = [Column(list(axis.leaves), "string") for axis in design.axes]
    names = [axis.name for axis in design.axes]

    def frame(index: Sequence[Array], values: Array) -> Frame:
        labels = map(Column.of_codes, index, codes)
        return Frame({**dict(zip(names, labels, strict=True)), "value": values})

    nothing = [np.empty(0, dtype=np.int32)] * len(names), np.empty(0, dtype=cells.dtype)
    with written_whole(path) as part:
        slices = itertools.chain([nothing], _slices(design, cells))
        write_parquet(part, itertools.starmap(frame, slices))
    return Path(path)


def _slices(
    design: StructuredDesign, cells: Real | ModelTable | ListedTable
) -> Iterator[tuple[list[Whole32], Array]]:
    """Leaf positions and values of the cells that are not zero, some at a time."""
    if isinstance(cells, ListedTable):
        yield cells.cells()
        return
    for start in range(0, len(cells), SLICE):
        places = np.arange(start, min(start + SLICE, len(cells)))
        index = design.leaf_positions(places)
        values = cells.at(index) if isinstance(cells, ModelTable) else cells[places]
        some = np.flatnonzero(values)
        yield [leaf[some].astype(np.int32) for leaf in index], values[some]
