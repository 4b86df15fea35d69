"""The demo census as a Parquet file, written piece by piece."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.files import written_whole
from discreet.microdata.demo.columns import SCHEMA, SURVEY_SCHEMA
from discreet.microdata.demo.streams import CHUNK, check_positive, generate, survey

_IDS = ("person_id", "household_id")


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
    check_positive("rows_per_group", rows_per_group)
    source, schema = (survey, SURVEY_SCHEMA) if sample else (generate, SCHEMA)
    tables = source(persons, seed, rows_per_group)
    with written_whole(Path(path)) as part, _writer(part, schema) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=rows_per_group)
            if progress is not None:
                progress(table.num_rows)
    return Path(path)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Codes by dictionary; ids, which rise by small steps, by difference."""
    coded = [f.name for f in schema if pa.types.is_dictionary(f.type)]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=[*coded, "age_years", "household_size"],
        column_encoding=dict.fromkeys(_IDS, "DELTA_BINARY_PACKED"),
    )
