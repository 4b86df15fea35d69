"""Files of τ-ARGUS: metadata `.rda`, tables `.tab`, a-priori files `.hst`, batch files `.arb`.

As in `discreet.suppress.argus`, but for tables as users hold them. Hierarchies `.hrc` are read by
`Hierarchy.from_hrc`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import ParamSpec

from discreet.facade.batch import BatchResult, run_batch
from discreet.facade.table import Table
from discreet.suppress import argus
from discreet.suppress.argus import (  # noqa: F401  (what this room hands on)
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
from discreet.tables.truth import TrueTable

__all__ = [*argus.__all__, "BatchResult", "run_batch"]
Given = ParamSpec("Given")


def _with_verbs(read: Callable[Given, ArgusTable[TrueTable]]) -> Callable[Given, ArgusTable[Table]]:
    """The reader of a file, whose table can then be protected and saved."""

    @wraps(read)
    def read_for_users(*args: Given.args, **options: Given.kwargs) -> ArgusTable[Table]:
        found = read(*args, **options)
        return replace(found, table=Table.wrap(found.table))  # type: ignore[return-value]

    return read_for_users


read_table = _with_verbs(argus.read_table)
