"""The full crossing without declared structural zeros, however large it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Whole, Whole32
from discreet.design.axis import Axis
from discreet.design.blocks import Block
from discreet.design.formula import Margins
from discreet.design.product import ProductDesign
from discreet.design.sparse import SparseDesign
from discreet.design.structured import StructuredDesign
from discreet.design.support import (
    Possible,
    declared_masks,
    is_worth_a_pass,
    n_possible,
    possible_cells,
)


class DeclaredDesign(SparseDesign):
    """A crossing whose structural zeros are a product of masks.

    Published cells are found from the masks alone. Inner cells are listed, and summed through index
    arrays as in any sparse design, only where somebody asks for them; passes do not.

    Args:
      axes: The variables.
      margins: A formula, or a list of tuples of names.
      masks: Which combinations are possible; all others are structural zeros.
    """

    def __init__(self, axes: Sequence[Axis], margins: Margins, masks: tuple[Possible, ...]) -> None:
        StructuredDesign.__init__(self, axes, margins)
        self._occurring, self.masks = False, masks
        self.n_inner = n_possible(self.shape, masks)
        self.n_published = int(self.offsets[-1])

    @property
    def has_passes(self) -> bool:
        """Whether the masks leave enough of the crossing for passes over all of it."""
        return is_worth_a_pass(self.shape, self.n_inner)

    def with_margins(self, margins: Margins) -> DeclaredDesign:
        """The same inner cells with other margins published."""
        return DeclaredDesign(self.axes, margins, self.masks or ())

    def require_dense(self) -> None:
        """Refuse an array of all inner cells when it cannot be held in memory."""
        self._full.require_dense()

    @cached_property
    def column_sizes(self) -> Whole:
        """Number of inner cells in each published cell, from the masks."""
        return self._possible[self._possible > 0]

    @cached_property
    def _full(self) -> ProductDesign:
        return ProductDesign(self.axes, [*self.terms])

    @cached_property
    def _possible(self) -> Whole:
        """How many possible combinations each published cell of the crossing holds."""
        z = np.empty(self._full.n_published, dtype=np.int64)
        for k in self._full.root_blocks:
            kept = tuple(a for a, level in enumerate(self.blocks[k].levels) if level is not None)
            fine = Block(tuple(x.finest if a in kept else None for a, x in enumerate(self.axes)))
            counted = possible_cells(self.shape, self.masks or (), kept).reshape(fine.shape)
            z[self._full.slice_of(k)] = self._full.summed(counted, fine, self.blocks[k]).ravel()
        return self._full.complete(z)

    @cached_property
    def _cells(self) -> list[Whole]:  # type: ignore[override]  # found when needed
        parts = map(self._full.slice_of, self._block_range)
        return [np.flatnonzero(self._possible[part]) for part in parts]

    @cached_property
    def _codes(self) -> list[NDArray[np.integer[Any]]]:  # type: ignore[override]  # likewise
        self.require_dense()
        possible = np.ones(self.shape, dtype=bool)
        for mask in self.masks or ():
            possible &= mask.at(np.indices(self.shape, sparse=True))
        return [codes.astype(np.int32) for codes in np.nonzero(possible)]

    @cached_property
    def _index(self) -> list[Whole32]:  # type: ignore[override]  # likewise
        listed = SparseDesign.within(self, self._codes, occurring=False)
        return listed._index


def complete_design(
    axes: Sequence[Axis], margins: Margins, structural_zeros: Sequence[Mapping[str, Any]]
) -> StructuredDesign:
    """The full crossing but for structural zeros."""
    masks = declared_masks(axes, structural_zeros)
    return DeclaredDesign(axes, margins, masks) if masks else ProductDesign(axes, margins)
