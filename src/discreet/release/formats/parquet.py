"""Parquet: typed columns, a row per cell; statement and notes in the file's metadata."""

from __future__ import annotations

import json

from discreet.release.cube import Cube
from discreet.release.formats.columns import long_table
from discreet.release.formats.json import describe
from discreet.release.formats.write import PLAIN, Options

METADATA = b"discreet_table"
"""The key of the metadata, whose value is JSON."""


class ParquetWriter:
    """Parquet with what is known of the table as JSON in its metadata."""

    name, title = "parquet", "Parquet"
    ending, media_type = ".parquet", "application/vnd.apache.parquet"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        chosen = options.with_defaults("long", "codes")
        said = json.dumps(describe(cube, chosen), ensure_ascii=False).encode()
        cells = long_table(cube, chosen).replace_schema_metadata({METADATA: said})
        sink = pa.BufferOutputStream()
        pq.write_table(cells, sink, compression="zstd")
        content: bytes = sink.getvalue().to_pybytes()
        return content
