"""Inner cells that may be filled for all that is public."""

from __future__ import annotations

import math

import numpy as np

from discreet.design.base import Design
from discreet.design.support import Lift
from discreet.protect.cells import lifted, on_public_support
from discreet.protect.suppress.pattern import of_table
from discreet.tables.truth import TrueTable

_MOST_CELLS = 5_000_000  # of a full crossing that is searched for cells in doubt


def with_doubted_cells(table: TrueTable, *, zeros_are_public: bool) -> TrueTable:
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
    if table.inner is None or design.support != "occurring":
        return table
    if math.prod(len(axis) for axis in design.axes) > _MOST_CELLS:
        return table
    return lifted(table, _in_doubt(design), with_inner=True)


def _in_doubt(design: Design) -> Lift[Design]:
    """To the design with every inner cell that lies in no empty published cell."""
    whole = design.public()
    is_empty = whole.publish(np.zeros(design.n_published, dtype=np.int64), outside=1)
    doubted = np.flatnonzero(whole.design.adjoint(is_empty) == 0)
    if len(doubted) == design.n_inner:
        return Lift(design, slice(None), slice(None))
    wider = whole.design.restricted(doubted, occurring=True).design
    return Lift(wider, slice(None), np.searchsorted(doubted, whole.require_inner()))
