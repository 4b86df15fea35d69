"""Margins that are public knowledge, with their own small counts protected before they are held.

What is published of known margins must follow from these margins alone, or it would tell more than
is known. So a table of whole numbers is made that has them, whatever the records are, and small
counts are rounded in it. Every margin comes from this one table, so that a fit can meet them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from discreet.arrays import Whole
from discreet.design.blocks import resolve
from discreet.design.formula import Margin, term_of
from discreet.design.product import ProductDesign
from discreet.design.sparse import SparseDesign
from discreet.design.structured import StructuredDesign
from discreet.design.support import LARGEST_DENSE
from discreet.errors import DesignError, ParameterError
from discreet.protect.cells import Cells
from discreet.protect.small_count import SmallCountRounding
from discreet.solve.integer.rounding import controlled
from discreet.solve.likelihood.log_linear import LogLinear
from discreet.tables.canonical import canonical_order, canonical_table
from discreet.tables.method import Draws
from discreet.tables.protected import WEIGHT
from discreet.tables.truth import TrueTable
from discreet.tables.values import CellValues


def change_of_known(cells: Cells, known: Sequence[Margin], base: int, draws: Draws) -> Whole:
    """By how much rounding small counts moves each cell; zero for cells that are not known.

    Promise: a function of the known margins and of the custodian's secret, the same in every
    release of the same margins; known margins have no count in 1..base-1, and add up.

    Args:
      cells: The cells of the table.
      known: The margins that are public knowledge.
      base: The smallest positive count that is published of them.
      draws: Where chance comes from.
    """
    if cells.table.unit == WEIGHT:
        raise ParameterError(
            "known_base rounds small counts, but weighted counts are published here. Leave it out."
        )
    table, places = _known_table(cells, known)
    order = canonical_order(table.design)
    ordered = canonical_table(table, order)
    rounded = np.empty(len(places), dtype=np.int64)
    rounded[slice(None) if order is None else order.published] = _rounded(ordered, base, draws)
    change = np.zeros(len(cells.count), dtype=np.int64)
    change[cells.representative[places]] = rounded - table.z
    return change[cells.representative]


def _known_table(cells: Cells, known: Sequence[Margin]) -> tuple[TrueTable, Whole]:
    """The known margins as a table over their own variables, and where its cells are."""
    design = cells.table.design.over_variables
    if design is None:
        raise ParameterError("a design made from a matrix has no margins to name.")
    own = _over_own_variables(design, known)
    at = {axis.name: a for a, axis in enumerate(own.axes)}
    of_levels = {
        tuple(b.levels[at[axis.name]] if axis.name in at else None for axis in design.axes): k
        for k, b in enumerate(own.blocks)
    }
    places = np.empty(own.n_published, dtype=np.int64)
    for k, block in enumerate(design.blocks):
        if block.levels in of_levels:
            places[own.slice_of(of_levels[block.levels])] = np.arange(
                design.n_published, dtype=np.int64
            )[design.slice_of(k)]
    published = CellValues(cells.table.published.count[places])
    return replace(cells.table, design=own, published=published, inner=None), places


def _over_own_variables(design: StructuredDesign, known: Sequence[Margin]) -> StructuredDesign:
    """A design of these margins on the crossing of the variables that they name."""
    terms = [term_of(margin) for margin in known]
    levels = [block.levels for block in resolve(design.axes, terms)]
    used = [a for a in range(len(design.axes)) if any(each[a] is not None for each in levels)]
    axes = [design.axes[a] for a in used]
    if math.prod(len(axis) for axis in axes) > LARGEST_DENSE:
        raise DesignError("the variables of the known margins have too many combinations.")
    if design.product_form is not None:
        return ProductDesign(axes, terms)
    codes = np.stack([design.inner_codes()[a] for a in used]) if used else np.zeros((0, 1), int)
    return SparseDesign(axes, terms, list(np.unique(codes, axis=1)))


def _rounded(table: TrueTable, base: int, draws: Draws) -> Whole:
    """Known margins without small counts, from a whole table that has these margins."""
    method = SmallCountRounding(base)
    rng = draws.generator(method, table)
    fitted = LogLinear()(table.design, table.z.astype(np.float64)).require()
    whole = controlled(table.design, fitted.y, rng=rng)
    inner = method.inner(TrueTable.from_inner(table.design, whole.y), rng=rng)
    rounded: Whole = table.design.aggregate(inner)
    return rounded
