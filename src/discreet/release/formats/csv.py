"""CSV: UTF-8, a row per cell or rows and columns; nothing in it runs as a formula."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from discreet.release.cube import Cube
from discreet.release.formats.columns import long_table
from discreet.release.formats.crosstab import Crosstab
from discreet.release.formats.inert import inert, inert_text
from discreet.release.formats.options import PLAIN, Options

if TYPE_CHECKING:
    import pyarrow as pa


class CsvWriter:
    """Comma-separated values: a line of names, then cells alone, so that programs read it as it is.

    Notes and statement stand in the metadata beside it.
    """

    name, title = "csv", "CSV"
    ending, media_type = ".csv", "text/csv; charset=utf-8"
    beside = ("csvw",)

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        chosen = options.suited("long", "codes")
        if chosen.layout == "wide":
            return _wide(Crosstab.of(cube, chosen), chosen.separator)
        return csv_bytes(long_table(cube, chosen), chosen.separator)


def csv_bytes(cells: pa.Table, separator: str = ",") -> bytes:
    """A table of columns as CSV, with nothing in it that a spreadsheet would run."""
    import pyarrow as pa
    import pyarrow.csv

    sink = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(delimiter=separator)
    pyarrow.csv.write_csv(inert(cells), sink, options)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _wide(table: Crosstab, separator: str) -> bytes:
    target = io.StringIO(newline="")
    lines = csv.writer(target, delimiter=separator, lineterminator="\n")
    lines.writerow(map(inert_text, (*table.stub_names, *table.column_names)))
    for row, figures in table.rows:
        lines.writerow([*map(inert_text, row), *figures])
    return target.getvalue().encode("utf-8")
