"""The census and the survey as streams of Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count

import numpy as np
import pyarrow as pa

from discreet.errors import ParameterError
from discreet.microdata.demo.columns import SCHEMA, SURVEY_SCHEMA, to_batch
from discreet.microdata.demo.people import HOUSEHOLDS_PER_BLOCK, Block, block
from discreet.microdata.demo.sample import with_weights
from discreet.randomness import stream

CHUNK = 1_000_000


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
        check_positive(name, value)
    stream(seed, "demo")
    batches = (to_batch(select(b, k), schema) for k, b in enumerate(_blocks(persons, seed)))
    return _in_chunks(batches, chunk)


def check_positive(name: str, value: object) -> None:
    """Refuses anything but a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ParameterError(f"{name} must be a whole number of at least 1, got {value!r}.")


def _blocks(persons: int, seed: int) -> Iterator[Block]:
    """Blocks with ids that run through, counted from 1, up to `persons` rows in all."""
    done = 0
    for number in count():
        people = _first(block(seed, number), persons - done)
        rows = len(people["household_id"])
        people["household_id"] += number * HOUSEHOLDS_PER_BLOCK + 1
        people["person_id"] = np.arange(done + 1, done + rows + 1)
        yield people
        done += rows
        if done == persons:
            return


def _first(people: Block, rows: int) -> Block:
    """The first rows of a block; a household that is cut has the size of what remains of it."""
    if rows >= len(people["household_id"]):
        return people
    people = {name: values[:rows] for name, values in people.items()}
    is_last = people["household_id"] == people["household_id"][-1]
    people["household_size"][is_last] = is_last.sum()
    return people


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
