"""CSV: UTF-8, a row per cell or rows and columns; nothing in it runs as a formula."""

from __future__ import annotations

import csv
import io
from typing import Any

from discreet.delimited import write_delimited
from discreet.frames import Frame
from discreet.release.cube import Cube
from discreet.release.formats.columns import MEANINGS, inert, inert_text, long_table, used_symbols
from discreet.release.formats.json import json_bytes
from discreet.release.formats.write import PLAIN, Options
from discreet.release.layout import TableLayout


class CsvWriter:
    """Comma-separated values: a line of names, then cells alone, so that programs read it as it is.

    Notes and statement stand in the metadata beside it.
    """

    name, title = "csv", "CSV"
    ending, media_type = ".csv", "text/csv; charset=utf-8"
    beside = ("csvw",)

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        chosen = options.with_defaults("long", "codes")
        if chosen.layout == "long":
            return csv_bytes(long_table(cube, chosen), chosen.separator)
        table, target = TableLayout.of_file(cube, chosen), io.StringIO(newline="")
        lines = csv.writer(target, delimiter=chosen.separator, lineterminator="\n")
        lines.writerow(map(inert_text, _wide_names(table, cube, chosen)))
        for row, figures in table.lines(chosen.labels):
            lines.writerow([*map(inert_text, row), *figures])
        return target.getvalue().encode("utf-8")


def csv_bytes(cells: Frame, separator: str = ",") -> bytes:
    """A table of columns as CSV, with nothing in it that a spreadsheet would run."""
    return b"".join(write_delimited(inert(cells), separator))


_SUFFIX = "-metadata.json"


class CsvwWriter:
    """The metadata of the CSV file that the same options give."""

    name, title = "csvw", "CSV metadata (CSVW)"
    ending, media_type = f".csv{_SUFFIX}", "application/csvm+json"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        chosen = options.with_defaults("long", "codes")
        about, is_wide = chosen.about, chosen.layout == "wide"
        used = used_symbols(cube) if is_wide else []
        told = {
            "dc:title": about.title,
            "dc:source": about.source,
            "dc:license": about.licence,
            "dc:hasVersion": about.edition,
            "dc:modified": about.updated,
            "dc:bibliographicCitation": about.citation,
            "dcat:contactPoint": about.contact,
            "dcat:landingPage": about.address,
            "dc:description": list(about.plain_notes(cube)),
            "rdfs:comment": [*about.footnotes, *(f"{s}: {about.word(MEANINGS[s])}." for s in used)],
            "dc:provenance": about.statement_of(cube),
            "dialect": {"delimiter": chosen.separator} if chosen.separator != "," else {},
        }
        columns = _wide_columns(cube, chosen, used) if is_wide else _long_columns(cube, chosen)
        found = {
            "@context": ["http://www.w3.org/ns/csvw", {"@language": about.language}],
            "url": chosen.file.removesuffix(_SUFFIX) or f"{about.name}.csv",
            **{name: said for name, said in told.items() if said},
            "tableSchema": {"columns": columns},
        }
        return json_bytes(found)


def _long_columns(cube: Cube, options: Options) -> list[dict[str, Any]]:
    numbers = {"int64": "integer", "float64": "number"}
    return [
        {"titles": inert_text(name), "datatype": numbers.get(kind, "string")}
        for name, kind in long_table(cube, options).kinds.items()
    ]


def _wide_columns(cube: Cube, options: Options, symbols: list[str]) -> list[dict[str, Any]]:
    table = TableLayout.of_file(cube, options)
    datatype = "number" if cube.values.dtype.kind == "f" else "integer"
    figures = {"datatype": datatype, **({"null": symbols} if symbols else {})}
    kinds = [{"datatype": "string"}] * len(table.row_axes) + [figures] * len(table.columns)
    names = _wide_names(table, cube, options)
    return [{"titles": inert_text(name), **kind} for name, kind in zip(names, kinds, strict=True)]


def _wide_names(table: TableLayout, cube: Cube, options: Options) -> list[str]:
    """The names of all columns of a wide file: row headings, then figures."""
    columns = [" | ".join(heads) for heads in table.headings(options, cube.unit)]
    return [*table.stub_names(options.labels), *columns]
