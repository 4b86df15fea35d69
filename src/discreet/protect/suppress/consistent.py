"""Suppression that agrees with what was published before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.design.base import Cell, Design
from discreet.errors import DesignError, ParameterError
from discreet.protect.suppress.suppress import Suppress
from discreet.tables.protected import CellStatus, Protected
from discreet.tables.truth import TrueTable

_Name = frozenset[tuple[str, str]]


def consistent(method: Suppress, table: TrueTable, earlier: Protected) -> Suppress:
    """The method for a table that has cells in common with an earlier release of the same records.

    Cells that were shown are shown again, even if the rules call them sensitive now; cells that
    were suppressed stay suppressed. The intervals of the others are proven with all of them known.

    Args:
      method: How the table is to be suppressed.
      table: The new table; it has all cells that the earlier release shows.
      earlier: What was published, by suppression.
    """
    if not isinstance(earlier, Protected):
        raise ParameterError(f"an earlier release was expected, got {type(earlier).__name__}.")
    here = _cells(table.design)
    status = np.zeros(len(earlier.z), np.int8) if earlier.status is None else earlier.status
    was_shown = status == CellStatus.published
    before = _cells(earlier.design)
    shown = {name for (name, _), is_shown in zip(before, was_shown, strict=True) if is_shown}
    hidden = {name for name, _ in before} - shown
    for name in shown - {name for name, _ in here}:
        codes = ", ".join(f"{variable}={code}" for variable, code in sorted(name)) or "the total"
        raise DesignError(
            f"the earlier release shows cell {codes}, which this table does not have. Tabulate the "
            "margins of both together, so that what is known of them counts."
        )
    sensitive = method.primary(table).primary
    again = [(cell, bool(sensitive[k])) for k, (name, cell) in enumerate(here) if name in shown]
    return replace(
        method,
        forced=(*method.forced, *(cell for cell, is_sensitive in again if is_sensitive)),
        frozen=(*method.frozen, *(cell for cell, is_sensitive in again if not is_sensitive)),
        forbidden=(*method.forbidden, *(cell for name, cell in here if name in hidden)),
    )


def _cells(design: Design) -> list[tuple[_Name, Cell]]:
    """All published cells by their codes, totals left out."""
    cells = (design.cell(k) for k in range(design.n_published))
    return [(frozenset((str(v), str(c)) for v, c in cell.items()), cell) for cell in cells]
