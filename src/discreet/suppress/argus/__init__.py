"""Files of τ-ARGUS: metadata `.rda`, tables `.tab`, a-priori files `.hst`.

Hierarchies `.hrc` are read by `Hierarchy.from_hrc`.
"""

from __future__ import annotations

from discreet.records.rda import Metadata, Variable, read_metadata, read_rows
from discreet.suppress.argus.apriori import APriori, AprioriCells, read_apriori
from discreet.suppress.argus.tables import ArgusTable, read_table, write_table

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
