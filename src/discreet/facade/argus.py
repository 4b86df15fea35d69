"""Files of τ-ARGUS: metadata `.rda`, tables `.tab`, a-priori files `.hst`.

Hierarchies `.hrc` are read by `Hierarchy.from_hrc`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from discreet.facade.table import Table
from discreet.suppress.argus import (
    APriori,
    AprioriCells,
    ArgusTable,
    Metadata,
    Variable,
    read_apriori,
    read_metadata,
    read_rows,
    write_table,
)
from discreet.suppress.argus import read_table as _read_table

__all__ = [
    "APriori",
    "AprioriCells",
    "ArgusTable",
    "Metadata",
    "Variable",
    "read_apriori",
    "read_metadata",
    "read_rows",
    "read_table",
    "write_table",
]


def read_table(
    path: str | Path,
    metadata: str | Path | Metadata,
    *,
    response: str | None = None,
    folder: str | Path | None = None,
    decimal: str = ".",
) -> ArgusTable[Table]:
    """A finished table: every combination of codes and totals, empty where it has no row.

    A response beside a column of frequencies is a magnitude, one without is a count.

    Args:
      path: The `.tab` file.
      metadata: The `.rda` file, or what was read from it.
      response: The column that is published; by default the first with numbers and no other role.
      folder: Where the `.hrc` files lie, if not beside the metadata or the table.
      decimal: The decimal sign.

    Raises:
      DataError: A line cannot be read or does not fit; the message has its number.
    """
    found = _read_table(path, metadata, response=response, folder=folder, decimal=decimal)
    return replace(found, table=Table.wrap(found.table))  # type: ignore[return-value]  # as wrapped
