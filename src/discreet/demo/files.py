"""The census and the survey as streams of Arrow tables and as Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.arrays import Whole
from discreet.demo.classifications import DEFENCE, code_lists
from discreet.demo.geography import NOT_APPLICABLE
from discreet.demo.people import HOUSEHOLDS_PER_BLOCK, Block, block, with_weights
from discreet.errors import whole
from discreet.files import written_whole
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


Impossible = Mapping[str, frozenset[str]]


def structural_zeros() -> tuple[Impossible, ...]:
    """Declared structural zeros.

    Each one maps two variables to sets of leaf codes: no person has a code of the first set
    together with a code of the second.
    """
    children, older = _leaves("age", "Y_LT15"), _leaves("age", "Y15-64", "Y_GE65")
    military, none = _leaves("occupation", "OC0"), frozenset({NOT_APPLICABLE})
    return (
        # People younger than 15 are unmarried sons and daughters without a degree or work.
        {"age": children, "marital": _but("marital", "NEV")},
        {"age": children, "relation": _but("relation", "CHI")},
        {"age": children, "education": _but("education", NOT_APPLICABLE)},
        {"age": children, "occupation": _but("occupation", NOT_APPLICABLE)},
        {"age": children, "industry": _but("industry", NOT_APPLICABLE)},
        # Degrees take time, and everybody of 15 or older has a level of education.
        {"age": older, "education": none},
        {"age": frozenset({"Y15-19"}), "education": _leaves("education", "HIGH")},
        {"age": frozenset({"Y20-24"}), "education": frozenset({"ED8"})},
        {"education": none, "marital": _but("marital", "NEV")},
        {"education": none, "relation": _but("relation", "CHI")},
        {"education": none, "occupation": _but("occupation", NOT_APPLICABLE)},
        {"education": none, "industry": _but("industry", NOT_APPLICABLE)},
        # Who works has an occupation and an industry; soldiers serve in defence until 65.
        {"occupation": none, "industry": _but("industry", NOT_APPLICABLE)},
        {"occupation": _but("occupation", NOT_APPLICABLE), "industry": none},
        {"occupation": military, "industry": _but("industry", DEFENCE)},
        {"occupation": military, "age": _leaves("age", "Y_GE65")},
    )


def _leaves(variable: str, *under: str) -> frozenset[str]:
    return code_lists()[variable].leaves_under(*under)


def _but(variable: str, *codes: str) -> frozenset[str]:
    """All leaves of a variable but these."""
    return frozenset(code_lists()[variable].leaves) - set(codes)


@dataclass(frozen=True)
class SmallCellCounts:
    """Cells of all tables of one order, taken together."""

    cells: int  # those that are not empty
    small: int  # those of them with a small count
    occupancy: float  # records per non-empty cell

    @property
    def share(self) -> float:
        """Share of the non-empty cells that are small."""
        return self.small / self.cells


def small_cells(
    table: pa.Table, variables: Sequence[str], *, order: int = 3, at_most: int = 2
) -> SmallCellCounts:
    """Counts small cells over all tables of `order` of the variables.

    Args:
      table: The records.
      variables: Columns to cross.
      order: Number of columns of each table.
      at_most: Largest count that is called small.
    """
    coded = [_positions(table[name]) for name in variables]
    counts = []
    for chosen in combinations(coded, order):
        cell = np.zeros(table.num_rows, dtype=np.int64)
        for positions, size in chosen:
            cell = cell * size + positions
        counts.append(np.unique(cell, return_counts=True)[1])
    cells = sum(len(c) for c in counts)
    small = sum(int((c <= at_most).sum()) for c in counts)
    return SmallCellCounts(cells, small, table.num_rows * len(counts) / cells)


def _positions(column: pa.ChunkedArray) -> tuple[Whole, int]:
    """Each record's category as a number, and the number of categories; a null is one of them."""
    values = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    encoded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
