"""The cells that a noise method works on, with the truth about them. Confidential."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.design.base import Design
from discreet.design.support import Lift
from discreet.errors import DesignError
from discreet.tables.protected import WEIGHT
from discreet.tables.truth import TrueTable
from discreet.tables.values import CellValues


@dataclass(frozen=True, eq=False)
class Cells:
    """The published cells of a table, or its inner cells, that get noise of their own.

    Attributes:
      table: The table they belong to.
      are_inner: Whether the inner cells get the noise and the published ones are summed from them.
      grid: What one step of the noise stands for where weighted counts are published.
    """

    table: TrueTable
    are_inner: bool = False
    grid: float | None = None

    @property
    def values(self) -> CellValues:
        """The true values of the cells."""
        return self.table.require_inner() if self.are_inner else self.table.published

    @cached_property
    def count(self) -> Whole:
        """What gets the noise: true counts, or weighted counts in whole steps of the grid."""
        if self.table.unit != WEIGHT:
            return self.values.count
        return nearest_whole(self.weight / (self.grid or 1.0))

    @property
    def weight(self) -> Real:
        """True weighted counts."""
        if self.values.weight is None:
            raise DesignError(
                "weighted counts were asked for, but this table has no weights. Name the weight "
                "column when tabulating."
            )
        return self.values.weight

    @cached_property
    def representative(self) -> Whole:
        """For each cell the first one with the same inner cells, itself if there is none."""
        if self.are_inner:
            return np.arange(len(self.count))
        return self.table.design.duplicates()

    @cached_property
    def distinct(self) -> Whole:
        """Positions of the possible cells that are their own representatives."""
        first = self.representative == np.arange(len(self.representative))
        return np.flatnonzero(first & ~self.impossible)

    @cached_property
    def impossible(self) -> Mask:
        """Published cells that no inner cell belongs to: structural zeros.

        Structured designs leave such cells out, so only those made from a matrix have any.
        """
        if self.are_inner:
            return np.zeros(len(self.count), dtype=bool)
        return self.table.design.unreached

    def once(self, draw: Callable[[Whole], Array]) -> Array:
        """Noise drawn once for each distinct cell, shared by those that are the same."""
        return self.shared(draw(self.distinct))

    def shared(self, drawn: Array) -> Array:
        """Values of the distinct cells, given to the same cells too; impossible ones get zero."""
        possible = ~self.impossible
        values = np.zeros(len(possible), dtype=drawn.dtype)
        values[possible] = drawn[np.searchsorted(self.distinct, self.representative[possible])]
        return values

    def published(self, values: Array) -> Array:
        """Values of the published cells that belong to values of these cells."""
        return self.table.design.aggregate(values) if self.are_inner else values


def nearest_whole(values: Real) -> Whole:
    """The nearest whole numbers; halves go up, so that whole shifts stay whole shifts."""
    return np.floor(values + 0.5).astype(np.int64)


def on_public_support(table: TrueTable, *, with_inner: bool = False) -> TrueTable:
    """The table on the full crossing when its support was read from the records.

    Args:
      table: Any table.
      with_inner: Whether the inner cells are needed too.
    """
    return lifted(table, table.design.public(), with_inner=with_inner)


def lifted(table: TrueTable, lift: Lift[Design], *, with_inner: bool) -> TrueTable:
    """The table on another design, with nothing in the cells that this one adds."""
    if lift.design is table.design:
        return table
    inner = table.require_inner().moved(lift.lift) if with_inner else None
    given = table.contributions
    if given is not None:
        places = lift.inner if with_inner else None
        sizes = lift.design.n_published, lift.design.n_inner
        given = given.spread(lift.published, sizes[0], places, sizes[1])
    published = table.published.moved(lift.publish)
    return replace(table, design=lift.design, published=published, inner=inner, contributions=given)
