"""CSVW: columns, notes and statement of a CSV file, in a file beside it.

"Metadata Vocabulary for Tabular Data" (W3C, 2015) looks for them beside `table.csv`, in
`table.csv-metadata.json`. Programs that do not know the standard read the CSV file alone.
"""

from __future__ import annotations

from typing import Any

from discreet.release.cube import Cube
from discreet.release.formats.columns import long_table
from discreet.release.formats.crosstab import Crosstab
from discreet.release.formats.inert import inert_text
from discreet.release.formats.json import json_bytes
from discreet.release.formats.options import PLAIN, Options
from discreet.release.formats.symbols import MEANINGS, used_symbols

_SUFFIX = "-metadata.json"


class CsvwWriter:
    """The metadata of the CSV file that the same options give."""

    name, title = "csvw", "CSV metadata (CSVW)"
    ending, media_type = f".csv{_SUFFIX}", "application/csvm+json"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        chosen = options.suited("long", "codes")
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
            "rdfs:comment": [*about.footnotes, *(f"{s}: {MEANINGS[s]}." for s in used)],
            "dc:provenance": cube.statement.text,
            "dialect": {"delimiter": chosen.separator} if chosen.separator != "," else {},
        }
        columns = _wide(Crosstab.of(cube, chosen), used) if is_wide else _long(cube, chosen)
        found = {
            "@context": ["http://www.w3.org/ns/csvw", {"@language": about.language}],
            "url": chosen.file.removesuffix(_SUFFIX) or f"{about.name}.csv",
            **{name: said for name, said in told.items() if said},
            "tableSchema": {"columns": columns},
        }
        return json_bytes(found)


def _long(cube: Cube, options: Options) -> list[dict[str, Any]]:
    import pyarrow as pa

    numbers = {pa.int64(): "integer", pa.float64(): "number"}
    return [
        {"titles": inert_text(field.name), "datatype": numbers.get(field.type, "string")}
        for field in long_table(cube, options).schema
    ]


def _wide(table: Crosstab, symbols: list[str]) -> list[dict[str, Any]]:
    datatype = "number" if table.cube.values.dtype.kind == "f" else "integer"
    figures = {"datatype": datatype, **({"null": symbols} if symbols else {})}
    return [
        *({"titles": inert_text(name), "datatype": "string"} for name in table.stub_names),
        *({"titles": inert_text(name), **figures} for name in table.column_names),
    ]
