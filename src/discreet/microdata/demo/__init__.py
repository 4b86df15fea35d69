"""An invented country with an invented census, for examples, tests and benchmarks.

`generate` streams the census, `survey` a weighted household sample of it, `write_parquet` puts
either into a file. Every coded column has a list in `code_lists`; combinations that cannot occur
are in `structural_zeros`. Households are drawn first (place, reference person, make-up), then
their members' ages, sexes and marital status, then citizenship, education given age and place,
occupation given education, and industry given occupation and place.
"""

from discreet.microdata.demo.classifications import code_lists
from discreet.microdata.demo.codes import CodeEntry, CodeList
from discreet.microdata.demo.columns import SCHEMA, SURVEY_SCHEMA
from discreet.microdata.demo.parquet import write_parquet
from discreet.microdata.demo.sparsity import SmallCells, small_cells
from discreet.microdata.demo.streams import generate, survey
from discreet.microdata.demo.zeros import structural_zeros

__all__ = [
    "SCHEMA",
    "SURVEY_SCHEMA",
    "CodeEntry",
    "CodeList",
    "SmallCells",
    "code_lists",
    "generate",
    "small_cells",
    "structural_zeros",
    "survey",
    "write_parquet",
]
