"""Files of τ-ARGUS: metadata `.rda`, tables `.tab`, a-priori files `.hst`.

Hierarchies `.hrc` are read by `Hierarchy.from_hrc`.
"""

from discreet.design.formats.argus.apriori import APriori, AprioriCells, read_apriori
from discreet.design.formats.argus.metadata import Metadata, Variable, read_metadata
from discreet.design.formats.argus.read import ArgusTable, read_table
from discreet.design.formats.argus.rows import read_rows
from discreet.design.formats.argus.write import write_table

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
