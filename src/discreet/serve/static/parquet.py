"""The whole protected table of a data set as one Parquet file, for programs."""

from __future__ import annotations

import io

import numpy as np

from discreet.serve.data.inner import InnerTable


def parquet_of(table: InnerTable) -> bytes:
    """A row for each cell that is not zero: its codes, and its protected figure."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = {
        axis.name: pa.DictionaryArray.from_arrays(
            pa.array(codes.astype(np.int32)), pa.array(axis.leaves, pa.string())
        )
        for axis, codes in zip(table.axes, table.codes, strict=True)
    }
    content = io.BytesIO()
    parquet.write_table(pa.table({**columns, table.unit: pa.array(table.values)}), content)
    return content.getvalue()
