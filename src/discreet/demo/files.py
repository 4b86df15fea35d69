"""The census and the survey as streams of Arrow tables and as Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.demo.classifications import code_lists
from discreet.demo.people import HOUSEHOLDS_PER_BLOCK, Block, block, with_weights
from discreet.files import written_whole
from discreet.parameters import whole
from discreet.randomness import stream

CHUNK = 1_000_000
_CODED = pa.dictionary(pa.int16(), pa.string())
_KINDS = {
    "person_id": pa.int64(), "household_id": pa.int64(), "household_size": pa.int16(),
    "relation": _CODED, "region": _CODED, "age": _CODED, "age_years": pa.int16(), "sex": _CODED,
    "marital": _CODED, "education": _CODED, "occupation": _CODED, "industry": _CODED,
    "citizenship": _CODED,
}  # fmt: skip
SCHEMA = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _KINDS.items()])
SURVEY_SCHEMA = SCHEMA.append(pa.field("weight", pa.float64(), nullable=False))


def generate(persons: int, seed: int, chunk: int = CHUNK) -> Iterator[pa.Table]:
    """The people of the invented country, in tables of `chunk` rows (the last may be shorter).

    The country (places, codes, distributions) is always the same; the seed draws its people.
    Members of a household stand together, the reference person first.

    Promise: the rows depend on `persons` and `seed` only, not on `chunk`. A smaller census is
    the beginning of a larger one, except that its last household may be cut short, in which case
    `household_size` there counts the members that remain.
    Cost: linear in `persons`; memory for one chunk.

    Args:
      persons: Number of people, at least 1.
      seed: Whole number of at least 0.
      chunk: Rows of each table, at least 1.
    """
    return _stream(persons, seed, chunk, SCHEMA, lambda people, _: people)


def survey(persons: int, seed: int, chunk: int = CHUNK) -> Iterator[pa.Table]:
    """A household survey of the census `generate(persons, seed)`: some of its rows, and `weight`.

    Whole households are drawn, more of them in small provinces; single people and the capital
    answer less often. Weights are calibrated to province by sex by broad age within each block of
    32,768 households, so they sum to the population of each province.

    Promise: the rows are rows of that census with the same ids; weights are positive.
    Cost: that of the census.
    """

    def sample(people: Block, number: int) -> Block:
        return with_weights(people, stream(seed, f"demo:survey:{number}"))

    return _stream(persons, seed, chunk, SURVEY_SCHEMA, sample)


def _stream(
    persons: int,
    seed: int,
    chunk: int,
    schema: pa.Schema,
    select: Callable[[Block, int], Block],
) -> Iterator[pa.Table]:
    """Checks at once, then works block by block."""
    for name, value in (("persons", persons), ("chunk", chunk)):
        whole(name, value, 1)
    stream(seed, "demo")  # refuses what is no seed
    batches = (
        pa.record_batch([_array(people[f.name], f) for f in schema], schema=schema)
        for people in (select(b, k) for k, b in enumerate(_blocks(persons, seed)))
    )
    return _in_chunks(batches, chunk)


def _blocks(persons: int, seed: int) -> Iterator[Block]:
    """Blocks with ids that run through, counted from 1, up to `persons` rows in all."""
    done = 0
    for number in count():
        people = block(seed, number)
        rows = min(len(people["household_id"]), persons - done)
        if rows < len(people["household_id"]):
            # A household that is cut has the size of what remains of it.
            people = {name: values[:rows] for name, values in people.items()}
            is_last = people["household_id"] == people["household_id"][-1]
            people["household_size"][is_last] = is_last.sum()
        people["household_id"] += number * HOUSEHOLDS_PER_BLOCK + 1
        people["person_id"] = np.arange(done + 1, done + rows + 1)
        yield people
        done += rows
        if done == persons:
            return


def _in_chunks(batches: Iterable[pa.RecordBatch], chunk: int) -> Iterator[pa.Table]:
    """Cuts a stream of batches into tables of `chunk` rows, without copying."""
    pending: list[pa.RecordBatch] = []
    room = chunk
    for batch in batches:
        while batch.num_rows >= room:
            yield pa.Table.from_batches([*pending, batch.slice(0, room)])
            batch, pending, room = batch.slice(room), [], chunk
        if batch.num_rows:
            pending.append(batch)
            room -= batch.num_rows
    if pending:
        yield pa.Table.from_batches(pending)


def _array(values: np.ndarray, field: pa.Field) -> pa.Array:
    """An Arrow column; coded columns share one dictionary over all blocks."""
    if pa.types.is_dictionary(field.type):
        positions = pa.array(values.astype(np.int16))
        return pa.DictionaryArray.from_arrays(positions, _dictionary(field.name), safe=False)
    return pa.array(values.astype(field.type.to_pandas_dtype()))


@cache
def _dictionary(variable: str) -> pa.Array:
    return pa.array(code_lists()[variable].leaves, pa.string())


def write_parquet(
    path: str | os.PathLike[str],
    persons: int,
    seed: int,
    *,
    rows_per_group: int = CHUNK,
    sample: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Path:
    """Writes the census, or the survey sample of it, to a Parquet file.

    Promise: the file is complete or not there; when anything interrupts the work, an older file
    of that name is left as it was.
    Cost: memory for one row group, whatever the number of people.

    Args:
      path: File to write; its folder must exist.
      persons: Number of people in the census.
      seed: Whole number of at least 0.
      rows_per_group: Rows in each row group.
      sample: Write `survey(persons, seed)`, with weights, instead of the census.
      progress: Called with the number of rows after each row group is written.
    """
    whole("rows_per_group", rows_per_group, 1)
    source, schema = (survey, SURVEY_SCHEMA) if sample else (generate, SCHEMA)
    tables = source(persons, seed, rows_per_group)
    coded = [f.name for f in schema if pa.types.is_dictionary(f.type)]
    options: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": [*coded, "age_years", "household_size"],
        # Ids rise by small steps, so their differences take little room.
        "column_encoding": dict.fromkeys(("person_id", "household_id"), "DELTA_BINARY_PACKED"),
    }
    with (
        written_whole(Path(path)) as part,
        pq.ParquetWriter(part, schema, **options) as writer,
    ):
        for table in tables:
            writer.write_table(table, row_group_size=rows_per_group)
            if progress is not None:
                progress(table.num_rows)
    return Path(path)
