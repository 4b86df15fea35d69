"""Designs over variables: what complete and sparse ones share.

Published cells come in *blocks*, one level for each axis. A block is numbered in reading order of
its crossing; a sparse design leaves out the cells that no inner cell reaches. Blocks are summed
from one another along `plan`, finest first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Mask, Real, Whole, Whole32
from discreet.design.axis import OUTSIDE, Axis, Level
from discreet.design.base import MAKERS, Design, Restricted
from discreet.design.codes import canonical
from discreet.design.formula import Block, Lattice, Margins, Term, parse, resolve
from discreet.design.parts import DesignPart, named_terms, part_of
from discreet.design.support import CombinationMask, Embedding
from discreet.errors import CodeError, DesignError, UnknownNameError, suggest

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from discreet.design.fused.passes import Passes
    from discreet.design.product import ProductDesign


class StructuredDesign(Design):
    """A design whose published cells are blocks over axes."""

    def __init__(self, axes: Sequence[Axis], margins: Margins) -> None:
        names = [axis.name for axis in axes]
        if len(set(names)) != len(names):
            raise DesignError(f"variables must have different names, got {names}.")
        self.axes = tuple(axes)
        self.terms: list[Term] = parse(margins)
        self.blocks: list[Block] = resolve(self.axes, self.terms)
        self.lattice = Lattice()

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of inner categories of each variable."""
        return tuple(len(axis) for axis in self.axes)

    @cached_property
    def inner_block(self) -> Block:
        """The block of all inner categories of all variables."""
        return Block(tuple(axis.finest for axis in self.axes))

    def slice_of(self, k: int) -> slice:
        """Published positions of block `k`."""
        return slice(int(self.offsets[k]), int(self.offsets[k + 1]))

    @cached_property
    def offsets(self) -> Whole:
        """First published position of each block, and their number at the end."""
        return np.concatenate([[0], np.cumsum([self._block_length(k) for k in self._block_range])])

    @property
    def _block_range(self) -> range:
        return range(len(self.blocks))

    def _block_length(self, k: int) -> int:
        """Number of published cells of block `k`."""
        return self.blocks[k].size

    def block_cells(self, k: int) -> Whole:
        """Positions of block `k`'s published cells within its full crossing, increasing."""
        return np.arange(self.blocks[k].size)

    @cached_property
    def plan(self) -> list[tuple[int, int | None]]:
        """Blocks with the block each is summed from, in an order in which that one comes first."""
        # By size in the full crossing, so that parts of one design share the plan of the whole.
        sizes = [block.size for block in self.blocks]
        sources = self.lattice.sources(self.blocks, sizes)
        return [(k, sources[k]) for k in sorted(self._block_range, key=lambda k: (-sizes[k], k))]

    def locate(
        self, k: int, groups: Sequence[Any], source: int | None = None
    ) -> tuple[Array, Mask]:
        """Where cells lie in block `k`'s crossing, and which lie in it; others have no position.

        Args:
          k: The block.
          groups: For each axis leaf positions, or groups of the source's level: arrays that NumPy
            can bring to one shape. Those of axes that the block sums over are not looked at.
          source: A block that refines it; that of the inner cells by default.
        """
        fine = self.inner_block if source is None else self.blocks[source]
        flat, inside = np.zeros((), dtype=np.int64), np.ones((), dtype=bool)
        for below, above, group in zip(fine.levels, self.blocks[k].levels, groups, strict=True):
            if above is None or below is None:
                continue
            if below is not above:
                up = np.asarray(self.lattice.step(below, above))
                group = up[group]
                if (up == OUTSIDE).any():
                    inside = inside & (group != OUTSIDE)
            flat = flat * len(above) + group
        return flat, inside

    def block_coarsening(self, source: int, target: int) -> tuple[Whole, Whole]:
        """Cells of a block that lie in a coarser one, and the cells there that they add to."""
        cells = self.block_cells(source)
        groups = np.unravel_index(cells, self.blocks[source].shape) if self.axes else ()
        flat, inside = (np.broadcast_to(v, len(cells)) for v in self.locate(target, groups, source))
        chosen = np.flatnonzero(inside)
        return int(self.offsets[source]) + chosen, self.published_at(target, flat[chosen])

    def axis(self, name: str) -> Axis:
        """The axis of a variable."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise UnknownNameError("variable", name, [axis.name for axis in self.axes])

    def block_of_cell(self) -> Whole32:
        """The block that each published cell belongs to."""
        return np.repeat(np.arange(len(self.blocks), dtype=np.int32), np.diff(self.offsets))

    def published_codes(self) -> list[tuple[Whole32, list[str]]]:
        """For each axis: index of each published cell's code, and the codes (the total last)."""
        tables = [_code_table(axis, self.blocks, a) for a, axis in enumerate(self.axes)]
        index = [np.empty(self.n_published, dtype=np.int32) for _ in self.axes]
        for k, block in enumerate(self.blocks):
            groups = np.unravel_index(self.block_cells(k), block.shape) if self.axes else ()
            for a, level in enumerate(block.levels):
                codes, starts = tables[a]
                where = len(codes) - 1 if level is None else starts[level] + groups[a]
                index[a][self.slice_of(k)] = where
        return [(index[a], tables[a][0]) for a in range(len(self.axes))]

    def position(self, cell: Mapping[str, object]) -> int:
        """Position of a published cell given by its codes; variables left out are totals."""
        for name in cell:
            self.axis(name)
        nodes = [self._nodes(axis, cell.get(axis.name)) for axis in self.axes]
        for k, block in enumerate(self.blocks):
            pairs = zip(block.levels, nodes, strict=True)
            groups = [found[level] for level, found in pairs if level in found]
            if len(groups) == len(self.axes):
                flat = flat_position(groups, block.shape)
                place = int(np.searchsorted(self.block_cells(k), flat))
                if place < self._block_length(k) and self.block_cells(k)[place] == flat:
                    return int(self.offsets[k]) + place
        raise DesignError(f"cell {dict(cell)} is not among the published cells of this design.")

    def inner_position(self, cell: Mapping[str, object]) -> int:
        """Position of an inner cell given by a code for every variable."""
        for name in cell:
            self.axis(name)
        leaves = []
        for axis in self.axes:
            if axis.name not in cell:
                raise DesignError(f"an inner cell needs a code for {axis.name!r} as well.")
            code = canonical(cell[axis.name])
            axis.check_codes([code])
            leaves.append(axis.leaf_position[code])
        return self._inner_position(leaves)

    @abstractmethod
    def _inner_position(self, leaves: Sequence[int]) -> int:
        """Position of the inner cell with these leaf positions."""

    def _nodes(self, axis: Axis, code: object) -> dict[Level | None, int]:
        """The levels a code belongs to, with its place in each; the total is level `None`."""
        text = axis.total if code is None else canonical(code)
        if text in axis.total_codes:
            return {None: 0}
        table: dict[str, dict[Level | None, int]] = {}
        for level in {*axis.levels, axis.finest}:
            for i, known in enumerate(level.codes):
                table.setdefault(known, {})[level] = i
        if text not in table:
            hint = suggest(text, [*table, axis.total])
            raise CodeError(f"unknown code {text!r} of variable {axis.name!r}. {hint}")
        return table[text]

    @property
    def orders(self) -> Whole:
        """The number of variables of each published cell."""
        of_block = np.array([block.order for block in self.blocks], dtype=np.int64)
        return np.repeat(of_block, np.diff(self.offsets))

    @property
    @abstractmethod
    def crossing(self) -> Embedding[ProductDesign]:
        """The full crossing, and where this design's published cells lie in it."""

    def crossing_with_inner(self) -> Embedding[ProductDesign]:
        """The full crossing, and where both published and inner cells lie in it."""
        return self.crossing

    @property
    @abstractmethod
    def masks(self) -> tuple[CombinationMask, ...] | None:
        """Masks whose product are the inner cells; `None` where there are no such masks."""

    @property
    def has_passes(self) -> bool:
        """Whether the inner cells are a product of masks."""
        return self.masks is not None

    def fused(
        self,
        link: str,
        *,
        start: Real | None = None,
        variance: Real | None = None,
        threads: int | None = None,
        device: str = "cpu",
    ) -> Passes:
        r"""Passes over :math:`y = \varphi(s + qX\nu)` that keep margins only; see `Passes`.

        Args:
          link: `"positive"`, `"exponential"` or `"linear"`.
          start: The table :math:`s`, a value for each inner cell.
          variance: The table :math:`q`.
          threads: Threads at most; as many as there are processors by default.
          device: `"cpu"`, `"gpu"`, or `"auto"` for a graphics processor where there is one, this
            design has kernels for it, and the table is large enough to make up for compiling them.
        """
        made: Passes = MAKERS["passes"](
            self, link, start=start, variance=variance, threads=threads, device=device
        )
        return made

    @property
    def over_variables(self) -> StructuredDesign:
        """The design itself."""
        return self

    @property
    def without_inner_cells(self) -> Mask:
        """None: published cells that no inner cell belongs to are left out."""
        return np.zeros(self.n_published, dtype=bool)

    @property
    def shows_inner_cells(self) -> bool:
        """Whether the block of all inner categories is published."""
        return any(block.levels == self.inner_block.levels for block in self.blocks)

    def flat_cells(self) -> Whole:
        """The positions of the inner cells in the full crossing."""
        codes = [codes.astype(np.int64) for codes in self.inner_codes()]
        return np.ravel_multi_index(codes, self.shape) if codes else np.zeros(1, dtype=np.int64)

    @abstractmethod
    def inner_at(self, flat: Whole) -> Whole:
        """The inner cells at some positions of the full crossing, `n_inner` where there is none."""

    def published_at(self, k: int, flat: Whole) -> Whole:
        """The published cells at some positions of block `k`'s crossing, all of them published."""
        return int(self.offsets[k]) + np.searchsorted(self.block_cells(k), flat)

    def leaf_positions(self, cells: Array) -> list[NDArray[np.integer[Any]]]:
        """For each axis the leaf positions of some inner cells."""
        return [codes[cells] for codes in self.inner_codes()]

    @abstractmethod
    def published_in(self, k: int) -> Whole:
        """The published cell of block `k` that each inner cell counts in, -1 for none."""

    def member_blocks(self) -> Iterator[tuple[Array, slice]]:
        """For each block the published cell of every inner cell, -1 where it has none."""
        for k in self._block_range:
            yield self.published_in(k), self.slice_of(k)

    def members(self, cells: Array) -> Whole32:
        """For some inner cells the published cells they count in, a column for each block."""
        leaves = self.leaf_positions(cells)
        found = np.empty((len(cells), len(self.blocks)), dtype=np.int32)
        for k in self._block_range:
            flat, inside = self.locate(k, leaves)
            found[:, k] = np.where(inside, self.published_at(k, flat), self.n_published)
        return found

    def matrix(self) -> csr_array:
        """The matrix X itself, sparse."""
        from scipy import sparse

        self.require_dense()
        rows, columns = [], []
        for where, _ in self.member_blocks():
            inside = np.flatnonzero(where != OUTSIDE)
            rows.append(inside)
            columns.append(where[inside])
        at = np.concatenate(rows), np.concatenate(columns)
        ones = np.ones(len(at[0]), dtype=np.int64)
        return sparse.csr_array((ones, at), shape=(self.n_inner, self.n_published))

    @abstractmethod
    def with_margins(self, margins: Margins) -> StructuredDesign:
        """The same inner cells with other margins published."""

    @abstractmethod
    def over_axes(self, kept: Sequence[int], margins: Margins) -> StructuredDesign:
        """Margins over some of the axes; combinations that are possible there are inner cells."""

    @property
    def tables(self) -> dict[str, list[Term]]:
        """The tables of the design: each largest margin with those inside it, by its name."""
        return named_terms(self)

    def part(self, margins: Margins) -> DesignPart:
        """Some of the published margins as a design over their own variables."""
        return part_of(self, margins)

    def restricted(self, cells: Array, *, occurring: bool = False) -> Restricted:
        """The design on some inner cells; see `Design.restricted`."""
        chosen = MAKERS["within"](self, self.leaf_positions(cells), occurring=occurring)
        places = [self.published_at(k, chosen.block_cells(k)) for k in self._block_range]
        return Restricted(chosen, np.concatenate(places))


def rank_positions(flat: Whole, size: int) -> tuple[Whole, Whole32]:
    """The different positions below `size`, increasing, and the rank of each entry among them."""
    # A mask needs no sort, but memory for the whole crossing: use it where cells fill an eighth.
    if size > 8 * len(flat) + 1024:
        cells, rank = np.unique(flat, return_inverse=True)
        return cells, rank.astype(np.int32)
    reached = np.zeros(size, dtype=bool)
    reached[flat] = True
    cells = np.flatnonzero(reached)
    of_position = np.empty(size, dtype=np.int32)
    of_position[cells] = np.arange(len(cells), dtype=np.int32)
    return cells, of_position[flat]


def flat_position(indices: Sequence[int], shape: Sequence[int]) -> int:
    """Position of one entry of an array in reading order."""
    position = 0
    for index, size in zip(indices, shape, strict=True):
        position = position * size + index
    return position


def _code_table(
    axis: Axis, blocks: Sequence[Block], a: int
) -> tuple[list[str], dict[Level | None, int]]:
    """Codes used along one axis, the total last, and where each level's codes start."""
    codes: list[str] = []
    starts: dict[Level | None, int] = {}
    for level in dict.fromkeys(block.levels[a] for block in blocks):
        if level is not None:
            starts[level] = len(codes)
            codes += level.codes
    return [*codes, axis.total], starts
