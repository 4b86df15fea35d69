"""The cells of a data set for programs: a column of codes for each variable, and the figures."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.frames import value_names
from discreet.serve.data.inner import InnerTable


def parquet_of(table: InnerTable) -> bytes:
    """A protected inner table as a Parquet file; the same cells are the same bytes.

    Cells that are not listed are zero, or cannot occur.
    """
    codes = {
        axis.name: pa.DictionaryArray.from_arrays(pa.array(places), pa.array(list(axis.leaves)))
        for axis, places in zip(table.axes, table.codes, strict=True)
    }
    figures = value_names(codes, [table.unit])[table.unit]
    told = {b"discreet.edition": table.edition.encode(), b"discreet.unit": table.unit.encode()}
    found = pa.table({**codes, figures: pa.array(table.values)}).replace_schema_metadata(told)
    sink = pa.BufferOutputStream()
    pq.write_table(found, sink, compression="zstd", store_schema=False)
    content: bytes = sink.getvalue().to_pybytes()
    return content
