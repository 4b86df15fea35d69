"""The margins of a requested table: summed, with noise of their own, or adjusted to each other.

The three options of Shlomo, Krenzke & Li (2019), section 2:

* ``"summed"``: the inner cells get noise and every published cell is a sum of them. The table adds
  up; the same margin may differ between tables over other variables.
* ``"own"``: every published cell gets noise of its own. The same cell is the same in every table;
  cells do not add up to their totals.
* ``"adjusted"``: as ``"own"``, then inner cells are adjusted to the margins (`Adjust`), which move
  only as far as they contradict each other. The table adds up; the same cell may differ a little
  between tables.
"""

from __future__ import annotations

from typing import Literal, get_args

from discreet.errors import ParameterError
from discreet.protect.cells import Cells, on_public_support
from discreet.tables.truth import TrueTable

Margins = Literal["own", "summed", "adjusted"]


def check_margins(choice: str) -> None:
    """Raise a clear error when the choice is not one of the three."""
    if choice not in get_args(Margins):
        raise ParameterError(f"margins must be 'own', 'summed' or 'adjusted', got {choice!r}.")


def cells_of(
    table: TrueTable, margins: Margins, *, touches_zeros: bool, grid: float | None = None
) -> Cells:
    """The cells that get noise, on public support wherever empty cells matter."""
    if margins == "summed":
        table.require_inner()
        whole = on_public_support(table, with_inner=True) if touches_zeros else table
        return Cells(whole, True, grid)
    return Cells(on_public_support(table), False, grid)
