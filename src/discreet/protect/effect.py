"""What protection did to any table that can be made from released inner cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Array, Index, Real, Whole
from discreet.design.base import Design
from discreet.design.formula import Margins
from discreet.errors import DesignError
from discreet.tables.protected import Protected
from discreet.tables.truth import TrueTable

if TYPE_CHECKING:
    import pyarrow as pa

SIZE_CLASSES = (1, 3, 6, 10, 20, 50, 100, 300, 500, 1000, 5000)


@dataclass(frozen=True, eq=False)
class Effect:
    """**Confidential.** True and protected counts of the same cells.

    Attributes:
      true: Counts before protection.
      protected: Counts after it.
    """

    true: Whole
    protected: Whole

    @property
    def deviation(self) -> Whole:
        """Protected less true counts."""
        return self.protected - self.true

    @property
    def largest(self) -> int:
        """The largest deviation in size."""
        return int(np.abs(self.deviation).max(initial=0))

    @property
    def mean(self) -> float:
        """The mean size of the deviations."""
        return float(np.abs(self.deviation).mean()) if len(self.true) else 0.0

    def transitions(self, largest: int = 8) -> Real:
        """The share of the cells with true count `i` that became `j`, for `i` up to `largest`.

        Rows without cells are zero.
        """
        chosen = self.true <= largest
        shares = np.zeros((largest + 1, int(self.protected[chosen].max(initial=0)) + 1))
        np.add.at(shares, (self.true[chosen], self.protected[chosen]), 1.0)
        cells = shares.sum(axis=1, keepdims=True)
        shares /= np.where(cells > 0, cells, 1.0)
        return shares

    def shares(self, smallest: int = 1, largest: int | None = None) -> dict[int, float]:
        """How often each deviation occurs among true counts from `smallest` to `largest`."""
        chosen = self.true >= smallest
        if largest is not None:
            chosen &= self.true <= largest
        found, counts = np.unique(self.deviation[chosen], return_counts=True)
        return dict(zip(found.tolist(), (counts / max(counts.sum(), 1)).tolist(), strict=True))

    def by_size(self, edges: Sequence[int] = SIZE_CLASSES) -> pa.Table:
        """Number of cells, mean and largest deviation, by classes of the true count."""
        import pyarrow as pa

        size = np.abs(self.deviation)
        place = np.searchsorted(np.asarray(edges), self.true, side="right")
        names = [f"{a}-{b - 1}" for a, b in zip(edges, edges[1:], strict=False)]
        members = [size[place == k] for k in range(1, len(edges) + 1)]
        return pa.table(
            {
                "count": [*names, f"{edges[-1]}+"],
                "cells": [len(m) for m in members],
                "mean": [float(m.mean()) if len(m) else None for m in members],
                "largest": [int(m.max()) if len(m) else None for m in members],
            }
        )


def effect(table: TrueTable, release: Protected, margins: Margins | None = None) -> Effect:
    """True and protected counts of the non-empty cells of any margins of the inner cells.

    **Confidential.** The margins need not be among the published ones, so that it shows what
    happens in tables that a method did not control.

    Args:
      table: The table before protection.
      release: Its release, with inner cells.
      margins: Whose cells to compare; the table's own when absent.
    """
    if release.y is None:
        raise DesignError("inner cells are not part of this release; fit them first.")
    support = np.flatnonzero(table.y)
    design, _ = over_support(table.design, support, margins)
    protected = _protected(table.design, release, support)
    return Effect(design.aggregate(table.y[support]), design.aggregate(protected))


def over_support(design: Design, support: Index, margins: Margins | None) -> tuple[Design, Whole]:
    """Cells of margins over some of the inner cells, and the number of variables of each."""
    if margins is not None:
        design = design.structured("margins to choose").with_margins(margins)
    chosen = design
    if len(support) < design.n_inner or design.support == "all":
        chosen = design.restricted(support, occurring=True).design
    return chosen, chosen.orders


def _protected(inside: Design, release: Protected, support: Index) -> Array:
    """Released counts of some inner cells of a table's design; zero where they have none."""
    released, y = release.design, np.asarray(release.y)
    if not inside.is_confidential:
        return y[support]
    mine, public = inside.over_variables, released.over_variables
    if mine is None or public is None or public.shape != mine.shape:
        raise DesignError("the release was made on another support; compare smaller tables.")
    flat = np.ravel_multi_index(mine.leaf_positions(support), mine.shape)
    return np.append(y, y.dtype.type(0))[public.inner_at(flat)]
