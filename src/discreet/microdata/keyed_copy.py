"""Records without ids: a copy of them with a record key each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import KeysError, ParameterError
from discreet.files import OWNER_ONLY, PARQUET, ending_of, written_whole
from discreet.frames import fresh_name
from discreet.microdata.backend import duckdb
from discreet.microdata.border import attempt
from discreet.microdata.record_keys import RECORD_KEY, Header, header_of, random_keys
from discreet.microdata.records import UnitRecords
from discreet.microdata.sketch import sketch_of

if TYPE_CHECKING:
    pass

_BATCH = 500_000


def with_keys_in_copy(data: UnitRecords, path: str | Path) -> UnitRecords:
    """The records of a file with keys drawn once, in a copy that only its owner can read.

    Nothing tells records without ids apart but their place, which another export changes. So keys
    are not numbered by place: each record is written together with its key.

    Args:
      data: The records, as they were opened.
      path: A Parquet file. When it exists, its records and keys are used, and they must be the
        same records.
    """
    if data.backend.name != "duckdb":
        raise ParameterError(
            "records of a database get random keys by their ids: name the column with id=, or give "
            "the records a column of keys and name it with key=."
        )
    ending_of(path, PARQUET)
    is_there = Path(path).exists()
    if not is_there:
        _write(data, path)
    backend = duckdb()
    table = attempt(lambda: backend.read_parquet(str(path)), str(path))
    rule = header_of(Path(path)).convention or data.convention
    copy = UnitRecords(table, backend, data.origin, key=table.columns[-1], convention=rule)
    if is_there:
        _check_same(data, copy, path)
    return copy


def _write(data: UnitRecords, path: str | Path) -> None:
    """Each record with a key from the operating system."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name, rule = fresh_name(RECORD_KEY, data.columns), data.convention
    batches = attempt(
        lambda: data.backend.to_pyarrow_batches(data.table, chunk_size=_BATCH), data.origin
    )
    known = batches.schema.append(pa.field(name, pa.int64()))
    schema = known.with_metadata(Header(rule).as_metadata())
    with (
        written_whole(path, OWNER_ONLY) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        for batch in _each(batches, data.origin):
            keys = pa.array(random_keys(len(batch), rule))
            columns = [*batch.columns, keys]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _each(batches: Any, origin: str) -> Any:
    while (batch := attempt(lambda: next(batches, None), origin)) is not None:
        yield batch


def _check_same(data: UnitRecords, copy: UnitRecords, path: str | Path) -> None:
    """Refuse a copy of other records; both are sketched by their engines."""
    same_columns = set(copy.columns) - {copy.key} == set(data.columns)
    if same_columns and np.array_equal(sketch_of(data).rows, sketch_of(copy).rows):
        return
    raise KeysError(
        f"{path} holds other records than {data.origin}, or they were opened with other options. "
        "Records that changed are a new edition: draw its keys into a new file."
    )
