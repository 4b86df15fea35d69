"""Faces: the sets of variables that a pass sums over, each at the level of all categories.

A block at a coarser level, or over fewer variables, is a sum over a face. So a pass needs a value
for each cell of a face only: coarser blocks are spread over it before, and summed from it after.
A mask of structural zeros is a value of a face, so low that the table is zero wherever it joins the
sum; a mask over variables that are not published together has a face of its own, never summed.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.design.axis import Level
from discreet.design.formula import Block
from discreet.design.product import ProductDesign, sum_groups, take_groups
from discreet.design.structured import StructuredDesign
from discreet.design.support import CombinationMask, Embedding

AxisSet = tuple[int, ...]
Place = tuple[int, ...]

IMPOSSIBLE = -1e300  # what a structural zero adds to a sum: no infinity, so that sums stay numbers


@dataclass(frozen=True, eq=False)
class Faces:
    """The largest sets of variables that a design publishes together."""

    embedding: Embedding[ProductDesign]  # of the design's published cells in the full crossing
    order: AxisSet  # the axes as a pass walks them: the longest one innermost, the others by length
    masks: tuple[CombinationMask, ...] = ()  # which combinations are possible

    @classmethod
    def of(cls, design: StructuredDesign) -> Self:
        """The faces of a design whose structural zeros are masks."""
        # The longest axis is innermost: rows are long, and what lies outside them is done seldom.
        order = tuple(int(a) for a in np.argsort(design.shape, kind="stable"))
        return cls(design.crossing, order, design.masks or ())

    @property
    def design(self) -> ProductDesign:
        """The full crossing."""
        return self.embedding.design

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Categories of the axes in the order of the pass."""
        return tuple(self.design.shape[a] for a in self.order)

    def leaves(self, place: int) -> Place:
        """The leaf positions, by axis of the design, of a cell in the order of the pass."""
        along = dict(zip(self.order, np.unravel_index(place, self.sizes), strict=True))
        return tuple(int(along[a]) for a in range(len(self.order)))

    @cached_property
    def sets(self) -> tuple[AxisSet, ...]:
        """The faces, sets of places in the order of the pass; those only read come last."""
        return (
            *self.summed_sets,
            *_largest({self._in_order(m.axes) for m in self.masks}, self.summed_sets),
        )

    @cached_property
    def summed_sets(self) -> tuple[AxisSet, ...]:
        """The faces that margins are summed from, none inside another."""
        return _largest({self._places(block) for block in self.design.blocks})

    @cached_property
    def zeros(self) -> Any:
        """What masks add to the faces, if there are any."""
        if not self.masks:
            return None
        faces = np.zeros(self.n)
        for mask in self.masks:
            places = self._in_order(mask.axes)
            f = next(f for f, face in enumerate(self.sets) if set(places) <= set(face))
            ordered = mask.possible.transpose([mask.axes.index(self.order[p]) for p in places])
            wide = [self.sizes[p] if p in places else 1 for p in self.sets[f]]
            self.view(faces, f)[...] += np.where(ordered, 0.0, IMPOSSIBLE).reshape(wide)
        return self._to_device(faces)

    def with_zeros(self, faces: Any) -> Any:
        """Values on the faces, with structural zeros."""
        return faces if self.zeros is None else faces + self.zeros

    @cached_property
    def offsets(self) -> Whole:
        """Where each face starts in a vector that holds them all, and its length at the end."""
        lengths = [math.prod(self.sizes[p] for p in face) for face in self.sets]
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @property
    def n(self) -> int:
        """Cells of all faces together."""
        return int(self.offsets[-1])

    def spread(self, values: Real) -> Real:
        """Published values on the faces: each cell gets the sum of the blocks it lies in."""
        values = self.embedding.as_public_cells(values)
        if self._order is not None:  # the common case, every block a face: one gather is enough
            laid: Real = values[self._order[0]]
            return laid
        faces = np.zeros_like(values, shape=self.n)
        for k, block in enumerate(self.design.blocks):
            wide = values[self.design.slice_of(k)].reshape(block.shape)
            for a, level in enumerate(block.levels):
                if level is not None and not level.is_identity:
                    wide = self._spread_groups(wide, level, a)
            self.view(faces, self._home[k])[...] += self._laid(wide, self._home[k])
        return faces

    def to_published(self, faces: Real) -> Real:
        """Published values summed from the faces: the adjoint of `spread`."""
        if self._order is not None:
            return self.embedding.from_public_cells(faces[self._order[1]])
        values = np.empty_like(faces, shape=self.design.n_published)
        for k, block in enumerate(self.design.blocks):
            summed = self._sum_face(faces, self._home[k], block)
            for a, level in enumerate(block.levels):
                if level is not None and not level.is_identity:
                    summed = self._sum_groups(summed, level, a)
            values[self.design.slice_of(k)] = summed.ravel()
        return self.embedding.from_public_cells(values)

    @cached_property
    def _home(self) -> list[int]:
        """For each block the smallest face that it is a sum over."""
        length = np.diff(self.offsets)
        found = []
        for block in self.design.blocks:
            inside = [
                f
                for f, face in enumerate(self.summed_sets)
                if set(self._places(block)) <= set(face)
            ]
            found.append(min(inside, key=lambda f: length[f]))
        return found

    def _to_device(self, values: Array) -> Any:
        """An array where the passes compute."""
        return values

    @cached_property
    def _order(self) -> tuple[Any, Any] | None:
        """The published cells in the order of the faces, and back, where every block is a face."""
        for block in self.design.blocks:
            is_flat = all(level is None or level.is_identity for level in block.levels)
            if not is_flat or self._places(block) not in self.summed_sets:
                return None
        if self.n != self.design.n_published:
            return None
        order = np.empty(self.n, dtype=np.int64)
        for k, block in enumerate(self.design.blocks):
            cells = int(self.design.offsets[k]) + np.arange(block.size).reshape(block.shape)
            order[self._slice(self._home[k])] = self._laid(cells, self._home[k]).ravel()
        return self._to_device(order), self._to_device(np.argsort(order))

    def _places(self, block: Block) -> AxisSet:
        return self._in_order([a for a, level in enumerate(block.levels) if level is not None])

    def _in_order(self, axes: Collection[int]) -> AxisSet:
        """Where axes of the design come in the order of the pass."""
        return tuple(p for p, a in enumerate(self.order) if a in axes)

    def _spread_groups(self, wide: Real, level: Level, a: int) -> Real:
        """Values of groups along an axis as values of its categories."""
        return take_groups(wide, level.group, a)

    def _sum_groups(self, values: Real, level: Level, a: int) -> Real:
        """Values of categories along an axis, summed into groups."""
        return sum_groups(values, level.group, a)

    def _slice(self, f: int) -> slice:
        return slice(int(self.offsets[f]), int(self.offsets[f + 1]))

    def view(self, faces: Real, f: int) -> Real:
        """One face of a vector that holds them all, as an array over its axes."""
        return faces[self._slice(f)].reshape([self.sizes[p] for p in self.sets[f]])

    def _laid(self, wide: Array, f: int) -> Array:
        """An array over the design's axes as one over the axes of a face."""
        ordered = wide.transpose(self.order)
        return ordered.reshape([ordered.shape[p] for p in self.sets[f]])

    def _sum_face(self, faces: Real, f: int, block: Block) -> Real:
        """A face summed over the variables that a block leaves out, over the design's axes."""
        face, kept = self.sets[f], self._places(block)
        gone = tuple(i for i, p in enumerate(face) if p not in kept)
        values = self.view(faces, f)
        if gone:
            values = values.sum(axis=gone, keepdims=True)
        full = [1] * len(self.order)
        for i, p in enumerate(face):
            full[p] = values.shape[i]
        laid: Real = values.reshape(full).transpose(np.argsort(self.order).tolist())
        return laid


def _largest(sets: set[AxisSet], others: tuple[AxisSet, ...] = ()) -> tuple[AxisSet, ...]:
    """The sets that lie inside no other one, and inside none of some others."""
    inside = {s for s in sets if any(set(s) < set(other) for other in sets)}
    inside |= {s for s in sets if any(set(s) <= set(other) for other in others)}
    return tuple(sorted(sets - inside))
