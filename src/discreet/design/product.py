"""Complete designs: every combination of the categories is an inner cell.

Blocks are summed along axes, coarse ones from finer ones; `X` is never formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Whole, Whole32
from discreet.design.axis import OUTSIDE, Axis
from discreet.design.formula import Block, Margins
from discreet.design.parts import coarsen_axes
from discreet.design.structured import StructuredDesign, flat_position
from discreet.design.support import LARGEST_DENSE, CombinationMask, Embedding
from discreet.errors import DesignError


class ProductDesign(StructuredDesign):
    """The full crossing of the axes.

    Cost: `aggregate` and `adjoint` are one pass over the inner cells for each block that no other
    block refines, and a pass over the refining block for the others.
    """

    is_complete = True
    masks: tuple[CombinationMask, ...] = ()  # every combination is possible

    def __init__(self, axes: Sequence[Axis], margins: Margins) -> None:
        super().__init__(axes, margins)
        self.n_inner = math.prod(self.shape)
        self.n_published = int(self.offsets[-1])

    def __repr__(self) -> str:
        sizes = "×".join(f"{axis.name}({len(axis)})" for axis in self.axes) or "total only"
        return (
            f"ProductDesign({sizes}: {self.n_inner:,} inner, {self.n_published:,} published cells "
            f"in {len(self.blocks)} blocks)"
        )

    def with_margins(self, margins: Margins) -> ProductDesign:
        """The same crossing with other margins published."""
        return ProductDesign(self.axes, margins)

    def over_axes(self, kept: Sequence[int], margins: Margins) -> ProductDesign:
        """The crossing of some of the axes."""
        return ProductDesign([self.axes[a] for a in kept], margins)

    def at_published_levels(self) -> StructuredDesign | None:
        """The crossing of the published groups; `None` where leaves are published."""
        joined = coarsen_axes(self)
        if joined is None:
            return None
        return ProductDesign([axis for axis, _ in joined], self.terms)

    def leaf_positions(self, cells: Array) -> list[NDArray[np.integer[Any]]]:
        """For each axis the leaf positions of some inner cells, without listing those of all."""
        if not self.axes:
            return []
        return [codes.astype(np.int32) for codes in np.unravel_index(cells, self.shape)]

    @property
    def root_blocks(self) -> list[int]:
        """Blocks that no other block refines; each of the others is a sum over one of these."""
        return [k for k, source in self.plan if source is None]

    def _aggregate(self, y: Array) -> Array:
        inner = y.reshape(self.shape)
        z = np.empty(self.n_published, dtype=y.dtype)
        for k in self.root_blocks:
            self._view(z, k)[...] = self.sum_into(inner, self.inner_block, self.blocks[k])
        return self.complete(z)

    def complete(self, z: Array) -> Array:
        """Fill all other blocks of `z`, in place, from its root blocks."""
        for k, source in self.plan:
            if source is not None:
                fine = self.blocks[source]
                self._view(z, k)[...] = self.sum_into(self._view(z, source), fine, self.blocks[k])
        return z

    def places(self, k: int, leaves: Mapping[str, Array], n: int) -> Whole:
        """Published positions in block `k` of `n` cells, -1 for those that lie in none of its.

        Args:
          k: The block.
          leaves: Leaf positions of the cells by variable, for the block's variables at least.
          n: Number of cells.
        """
        flat, inside = self.locate(k, [leaves.get(axis.name) for axis in self.axes])
        return np.broadcast_to(np.where(inside, flat + self.offsets[k], OUTSIDE), n)

    def _adjoint(self, z: Array) -> Array:
        self.require_dense()
        y = np.zeros(self.shape, dtype=z.dtype)
        z = z.copy()
        # Coarsest first: what a block hands to its source goes on from there to the inner cells.
        for k, source in reversed(self.plan):
            target = y if source is None else self._view(z, source)
            to_block = self.inner_block if source is None else self.blocks[source]
            target += self.spread_into(self._view(z, k), self.blocks[k], to_block)
        return y.ravel()

    def _view(self, z: Array, k: int) -> Array:
        return z[self.slice_of(k)].reshape(self.blocks[k].shape)

    def sum_into(self, values: Array, source: Block, target: Block) -> Array:
        """Sum the cells of `source` into the cells of `target`."""
        gone = tuple(
            a
            for a, (fine, coarse) in enumerate(zip(source.levels, target.levels, strict=True))
            if coarse is None and fine is not None
        )
        if gone:
            values = values.sum(axis=gone, keepdims=True)
        for a, up in self._changes(source, target):
            values = sum_groups(values, up, a)
        return values

    def spread_into(self, values: Array, source: Block, target: Block) -> Array:
        """Give every cell of `target` the value of the cell of `source` it lies in, or zero."""
        for a, up in self._changes(target, source):
            values = take_groups(values, up, a)
        return values

    def _changes(self, fine: Block, coarse: Block) -> Iterator[tuple[int, Whole32]]:
        """The axes on which both blocks have a level, but not the same one."""
        for a, (from_level, to_level) in enumerate(zip(fine.levels, coarse.levels, strict=True)):
            if from_level is None or to_level is None or from_level is to_level:
                continue
            up = self.lattice.step(from_level, to_level)
            if up is None:
                raise DesignError("a block was summed from one that does not refine it.")
            yield a, up

    def require_dense(self) -> None:
        """Refuse an array of all inner cells when it cannot be held in memory."""
        if self.n_inner > LARGEST_DENSE:
            raise DesignError(
                f"the full crossing has {self.n_inner:,} inner cells, more than the "
                f"{LARGEST_DENSE:,} that are held in memory. Publish fewer variables in one "
                "design, or use support='occurring'."
            )

    @property
    def product_form(self) -> ProductDesign:
        """The design itself."""
        return self

    def inner_at(self, flat: Whole) -> Whole:
        """The inner cells at some positions of the full crossing: the same."""
        return flat

    def published_at(self, k: int, flat: Whole) -> Whole:
        """The published cells at some positions of block `k`'s crossing."""
        return int(self.offsets[k]) + flat

    @property
    def crossing(self) -> Embedding[ProductDesign]:
        """The design itself."""
        return Embedding(self, slice(None), slice(None))

    def published_in(self, k: int) -> Whole:
        """The published cell of block `k` that each inner cell counts in, -1 for none."""
        self.require_dense()
        leaves = np.indices(self.shape, sparse=True) if self.axes else ()
        flat, inside = self.locate(k, leaves)
        where = np.where(inside, flat + self.offsets[k], OUTSIDE)
        return np.broadcast_to(where, self.shape).ravel()

    def inner_codes(self) -> list[NDArray[np.integer[Any]]]:
        """For each axis the leaf position of every inner cell."""
        self.require_dense()
        n = len(self.axes)
        return [
            np.broadcast_to(along(np.arange(size, dtype=np.int32), a, n), self.shape).ravel()
            for a, size in enumerate(self.shape)
        ]

    def _inner_position(self, leaves: Sequence[int]) -> int:
        return flat_position(leaves, self.shape)

    @cached_property
    def column_sizes(self) -> Whole:
        """Number of inner cells in each published cell: a product over the axes."""
        sizes = []
        for block in self.blocks:
            size = np.ones((1,) * len(self.axes), dtype=np.int64)
            for a, (level, axis) in enumerate(zip(block.levels, self.axes, strict=True)):
                group = np.zeros(len(axis), dtype=np.int64) if level is None else level.group
                in_groups = np.bincount(group[group != OUTSIDE], minlength=block.shape[a])
                size = size * along(in_groups, a, len(self.axes))
            sizes.append(size.ravel())
        return np.concatenate(sizes)

    def sensitivity(self, columns: Array | None = None) -> int:
        """Largest row sum; for whole blocks found from the leaves' kinds, not from the cells."""
        blocks: Sequence[int] = self._block_range
        if columns is not None:
            filled = np.bincount(self.block_of_cell()[columns], minlength=len(self.blocks))
            if not ((filled == 0) | (filled == np.diff(self.offsets))).all():
                return super().sensitivity(columns)
            blocks = [int(k) for k in np.flatnonzero(filled)]
        # Leaves that lie in the same blocks are one kind, of which there are few on each axis.
        kinds = [self._coverage(a) for a in range(len(self.axes))]
        total: Array = np.zeros((1,) * len(self.axes), dtype=np.int64)
        for k in blocks:
            inside: Array = np.ones((1,) * len(self.axes), dtype=np.int64)
            for a, kind in enumerate(kinds):
                inside = inside * along(kind[k], a, len(self.axes))
            total = total + inside
        return int(total.max())

    def _coverage(self, a: int) -> Whole:
        """Blocks × kinds of leaves: whether a leaf of the kind lies in the block's level."""
        covered = [
            np.ones(len(self.axes[a]), dtype=bool) if level is None else level.group != OUTSIDE
            for level in (block.levels[a] for block in self.blocks)
        ]
        return np.unique(np.array(covered), axis=1).astype(np.int64)

    def duplicates(self) -> Whole:
        """Published cells with the same inner cells: those with equal leaf sets on every axis."""
        numbers = [self._leaf_set_numbers(a) for a in range(len(self.axes))]
        if all(len(set(n.values())) == len(n) for n in numbers):
            return np.arange(self.n_published)
        identity = np.zeros(self.n_published, dtype=np.int64)
        for (index, codes), number in zip(self.published_codes(), numbers, strict=True):
            of_code = np.array([number[code] for code in codes])
            # Numbered anew axis by axis: products over many axes would leave 64 bits.
            _, identity = np.unique(identity * len(codes) + of_code[index], return_inverse=True)
        return first_of_equal(identity)

    def _leaf_set_numbers(self, a: int) -> dict[str, int]:
        """A number for every code in use along an axis, equal for codes with the same leaves."""
        axis, sets = self.axes[a], dict[bytes, int]()
        used = {level for block in self.blocks if (level := block.levels[a]) is not None}
        codes = [*(code for level in used for code in level.codes), axis.total]
        return {c: sets.setdefault(axis.code_leaves[c].tobytes(), len(sets)) for c in codes}


def first_of_equal(identity: Array) -> Whole:
    """For each entry the position of the first entry equal to it."""
    _, first, inverse = np.unique(identity, return_index=True, return_inverse=True)
    return first[inverse].astype(np.int64)


def along(values: Array, a: int, n: int) -> Array:
    """A vector laid along axis `a` of an `n`-way array."""
    return values.reshape((1,) * a + (-1,) + (1,) * (n - a - 1))


def sum_groups(values: Array, up: Whole32, a: int) -> Array:
    """Sum along axis `a` into the groups `up` (-1: left out); every group has a member."""
    # `reduceat` sums runs, so members of a group must stand side by side; outsiders sort first.
    order = np.argsort(up, kind="stable")[int((up == OUTSIDE).sum()) :]
    if not np.array_equal(order, np.arange(len(up))):
        values = values.take(order, axis=a)
    sorted_up = up[order]
    starts = np.flatnonzero(np.diff(sorted_up, prepend=OUTSIDE))
    return np.add.reduceat(values, starts, axis=a)


def take_groups(values: Array, up: Whole32, a: int) -> Array:
    """The adjoint of `sum_groups`: each member receives its group's value, outsiders zero."""
    if (up == OUTSIDE).any():  # position -1 then takes the zero at the end
        padding = [(0, 0)] * values.ndim
        padding[a] = (0, 1)
        values = np.pad(values, padding)
    return values.take(up, axis=a)
