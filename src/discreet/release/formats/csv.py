"""CSV: UTF-8, a row per cell or rows and columns; nothing in it runs as a formula."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from discreet.design.frames import fresh_name
from discreet.release.cube import Cube
from discreet.release.formats.columns import long_table
from discreet.release.formats.crosstab import Crosstab
from discreet.release.formats.inert import inert, inert_text
from discreet.release.formats.options import PLAIN, Options

if TYPE_CHECKING:
    import pyarrow as pa

NOTES = "notes"
"""The column whose first row says what must be known of the figures; its other rows are empty."""


class CsvWriter:
    """Comma-separated values; notes and statement stand in the first row of a last column.

    Every line has the same fields, so programs read the file as it is.
    """

    name, title = "csv", "CSV"
    ending, media_type = ".csv", "text/csv; charset=utf-8"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        chosen = options.suited("long", "codes")
        said = _notes(cube, chosen) if chosen.with_notes else ""
        if chosen.layout == "wide":
            return _wide(Crosstab.of(cube, chosen), said, chosen.separator)
        return csv_bytes(_with_notes(long_table(cube, chosen), said), chosen.separator)


def csv_bytes(cells: pa.Table, separator: str = ",") -> bytes:
    """A table of columns as CSV, with nothing in it that a spreadsheet would run."""
    import pyarrow as pa
    import pyarrow.csv

    sink = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(delimiter=separator)
    pyarrow.csv.write_csv(inert(cells), sink, options)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _notes(cube: Cube, options: Options) -> str:
    return " ".join(f"{heading}: {text}" for heading, text in options.about.said(cube))


def _with_notes(cells: pa.Table, said: str) -> pa.Table:
    import pyarrow as pa

    if not said or not len(cells):
        return cells
    texts = pa.array([said] + [None] * (len(cells) - 1), pa.string())
    return cells.append_column(fresh_name(NOTES, cells.column_names), texts)


def _wide(table: Crosstab, said: str, separator: str) -> bytes:
    heads = [*table.stub_names, *(" | ".join(column) for column in table.columns)]
    notes = [fresh_name(NOTES, heads)] if said else []
    target = io.StringIO(newline="")
    lines = csv.writer(target, delimiter=separator, lineterminator="\n")
    lines.writerow([inert_text(text) for text in (*heads, *notes)])
    for k, (row, figures) in enumerate(table.rows):
        told = [inert_text(said) if k == 0 else ""] if said else []
        lines.writerow([*map(inert_text, row), *figures, *told])
    return target.getvalue().encode("utf-8")
