"""Published cells alone, from one grouping or several, without the inner cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.arrays import Array, Whole
from discreet.design.formula import Term
from discreet.design.product import ProductDesign
from discreet.design.support import LARGEST_DENSE
from discreet.errors import DesignError
from discreet.tables.assembly import CodedCells
from discreet.tables.keys import KeyConvention
from discreet.tables.truth import TrueTable
from discreet.tables.values import CellValues

Placed = tuple[CodedCells, Whole]


def margins_table(
    groupings: Sequence[CodedCells], terms: list[Term], rule: KeyConvention
) -> TrueTable:
    """A table without inner cells, from groupings that between them have all margins.

    Blocks that no other refines are filled from the smallest grouping that has their variables;
    the others are summed from them.
    """
    axes = {axis.name: axis for coded in groupings for axis in coded.axes}
    design = ProductDesign(tuple(axes.values()), terms)
    if design.n_published > LARGEST_DENSE:
        raise DesignError(
            f"{design.n_published:,} published cells are more than the {LARGEST_DENSE:,} that are "
            "held in memory. Publish fewer margins, or use support='occurring'."
        )
    placed = [_placed(design, k, groupings) for k in design.root_blocks]
    first = groupings[0].values
    optional = [
        None if getattr(first, part) is None else _filled(design, placed, part)
        for part in ("weight", "weight_squared", "key")
    ]
    values = CellValues(_filled(design, placed, "count"), *optional)
    return TrueTable(design, values.mapped(lambda array: array, rule), None, rule)


def _placed(design: ProductDesign, k: int, groupings: Sequence[CodedCells]) -> Placed:
    """The smallest grouping that has a block's variables, and where its cells lie in the block."""
    levels = zip(design.axes, design.blocks[k].levels, strict=True)
    needed = {axis.name for axis, level in levels if level is not None}
    fits = [coded for coded in groupings if needed <= {axis.name for axis in coded.axes}]
    coded = min(fits, key=lambda c: len(c.values.count))
    leaves = {axis.name: leaf for axis, leaf in zip(coded.axes, coded.leaves, strict=True)}
    return coded, design.places(k, leaves, len(coded.values.count))


def _filled(design: ProductDesign, placed: Sequence[Placed], part: str) -> Array:
    """One kind of value for all published cells."""
    z = np.zeros(design.n_published, dtype=getattr(placed[0][0].values, part).dtype)
    for coded, where in placed:
        inside = where >= 0
        np.add.at(z, where[inside], getattr(coded.values, part)[inside])
    return design.complete(z)
