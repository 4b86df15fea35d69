"""Inner cells that may be filled for all that is public."""

from __future__ import annotations

import math

import numpy as np

from discreet.design.base import Design
from discreet.design.sparse import SparseDesign
from discreet.design.support import Lift
from discreet.design.table import Table
from discreet.protect.cells import lifted, on_public_support
from discreet.protect.suppress.pattern import of_table

_MOST_CELLS = 5_000_000  # of a full crossing that is searched for cells in doubt


def with_doubted_cells(table: Table, *, zeros_are_public: bool) -> Table:
    """The table with all inner cells that somebody could doubt, most of them empty.

    Which inner cells occur is confidential, and the intruder does not know it. Where empty
    published cells are shown as such, he rules out the inner cells in them and no others.

    Args:
      table: Any table.
      zeros_are_public: Whether every empty published cell is shown as empty.
    """
    if "known" in of_table(table):
        return table
    if not zeros_are_public:
        return on_public_support(table, with_inner=True)
    design = table.design
    if table.inner is None or not isinstance(design, SparseDesign) or design.support != "occurring":
        return table
    if math.prod(design.shape) > _MOST_CELLS:
        return table
    return lifted(table, _lift(design), with_inner=True)


def _lift(design: SparseDesign) -> Lift[Design]:
    """To the design with every inner cell that lies in no empty published cell."""
    whole = design.completed()
    is_empty = np.ones(whole.design.n_published, dtype=np.int64)
    is_empty[whole.published] = 0
    doubted = np.flatnonzero(whole.design.adjoint(is_empty) == 0)
    if len(doubted) == design.n_inner:
        return Lift(design, slice(None), slice(None))
    codes = np.unravel_index(doubted, design.shape)
    wider = SparseDesign(design.axes, design.terms, codes, occurring=True)
    return Lift(wider, slice(None), np.searchsorted(doubted, whole.require_inner()))
