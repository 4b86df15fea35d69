"""The census of an invented country, ready to tabulate: for examples, tests and benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.demo.classifications import code_lists, structural_zeros
from discreet.demo.geography import CodeEntry, CodeList
from discreet.demo.people import SCHEMA, SURVEY_SCHEMA, generate, survey, write_parquet
from discreet.design.hierarchy import Hierarchy
from discreet.display.bars import shows_progress
from discreet.facade.microdata import Microdata
from discreet.facade.opening import open as open_records
from discreet.frames import concat
from discreet.progress import report
from discreet.records.secret import Secret

__all__ = [
    "SCHEMA", "SURVEY_SCHEMA", "CodeEntry", "CodeList", "census", "code_lists", "generate",
    "hierarchies", "opened", "sample", "structural_zeros", "survey", "write_parquet",
]  # fmt: skip
CENSUS, SAMPLE = "tarvenia-census", "tarvenia-sample"


@shows_progress("inventing people")
def census(persons: int = 100_000, seed: int = 1, *, path: str | Path | None = None) -> Microdata:
    """The people of the country, with hierarchies, labels, ids, keys and structural zeros.

    The keys are made by `Secret.demo`, which everybody knows: they protect nobody.

    Args:
      persons: Number of people.
      seed: Draws the people; the country stays the same.
      path: A Parquet file to stream them to and count them from, for more than fit in memory.
    """
    return _people(persons, seed, path, is_sample=False)


@shows_progress("inventing people")
def sample(persons: int = 100_000, seed: int = 1, *, path: str | Path | None = None) -> Microdata:
    """A household survey of the census of as many people, with weights and keys."""
    return _people(persons, seed, path, is_sample=True).with_roles(
        weight="weight", mean_weight=MEAN_WEIGHT
    )


MEAN_WEIGHT = 45.0
"""About what a person in the survey stands for: 2 to 5 % of the households of a province answer."""


def _people(persons: int, seed: int, path: str | Path | None, *, is_sample: bool) -> Microdata:
    source: Any = path
    if path is None:
        source = concat((survey if is_sample else generate)(persons, seed))
    else:
        expected, written = persons / (MEAN_WEIGHT if is_sample else 1), 0

        def tell(rows: int) -> None:
            nonlocal written
            written += rows
            report("inventing people", written / max(expected, 1))

        write_parquet(path, persons, seed, sample=is_sample, progress=tell)
    made = opened(source).named(SAMPLE if is_sample else CENSUS)
    return made.with_keys(Secret.demo())


def opened(source: Any) -> Microdata:
    """People made before, in a file or a frame, with all that is known about their columns."""
    records = open_records(source, id="person_id", hierarchies=hierarchies())
    return records.with_structural_zeros(structural_zeros()).named(CENSUS)


def hierarchies() -> dict[str, Hierarchy]:
    """The code lists of the country as hierarchies with labels and named levels."""
    return {
        name: Hierarchy(codes.entries[0].code, codes.parents, codes.labels, codes.levels)
        for name, codes in code_lists().items()
    }
