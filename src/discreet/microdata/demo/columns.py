"""The columns of the demo census and how a block becomes an Arrow batch."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from discreet.microdata.demo.classifications import code_lists
from discreet.microdata.demo.people import Block

_CODED = pa.dictionary(pa.int16(), pa.string())


def _column(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


SCHEMA = pa.schema(
    [
        _column("person_id", pa.int64()),
        _column("household_id", pa.int64()),
        _column("household_size", pa.int16()),
        _column("relation", _CODED),
        _column("region", _CODED),
        _column("age", _CODED),
        _column("age_years", pa.int16()),
        _column("sex", _CODED),
        _column("marital", _CODED),
        _column("education", _CODED),
        _column("occupation", _CODED),
        _column("industry", _CODED),
        _column("citizenship", _CODED),
    ]
)
SURVEY_SCHEMA = SCHEMA.append(_column("weight", pa.float64()))


def to_batch(block: Block, schema: pa.Schema) -> pa.RecordBatch:
    """The block's arrays as Arrow columns; coded columns share one dictionary over all blocks."""
    return pa.record_batch([_array(block[f.name], f) for f in schema], schema=schema)


def _array(values: np.ndarray, field: pa.Field) -> pa.Array:
    if pa.types.is_dictionary(field.type):
        positions = pa.array(values.astype(np.int16))
        return pa.DictionaryArray.from_arrays(positions, _dictionary(field.name), safe=False)
    return pa.array(values.astype(field.type.to_pandas_dtype()))


@cache
def _dictionary(variable: str) -> pa.Array:
    return pa.array(code_lists()[variable].leaves, pa.string())
