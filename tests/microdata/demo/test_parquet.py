from __future__ import annotations

import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from discreet import demo
from discreet.demo import people as parquet
from discreet.errors import DiscreetError, ParameterError
from discreet.parquet import read_parquet


def test_the_file_holds_the_census(tmp_path, census):
    seen: list[int] = []
    path = demo.write_parquet(
        tmp_path / "people.parquet", 100_000, 1, rows_per_group=40_000, progress=seen.append
    )
    assert path == tmp_path / "people.parquet"
    assert read_parquet(path) == census
    groups = pq.ParquetFile(path).metadata
    assert groups.num_row_groups == 3
    assert seen == [40_000, 40_000, 20_000]


def test_codes_are_stored_by_dictionary(tmp_path):
    path = demo.write_parquet(tmp_path / "people.parquet", 1_000, 1)
    group = pq.ParquetFile(path).metadata.row_group(0)
    for i in range(group.num_columns):
        chunk = group.column(i)
        coded = chunk.path_in_schema in demo.code_lists()
        assert chunk.has_dictionary_page or not coded


def test_the_sample_can_be_written_too(tmp_path, survey):
    path = demo.write_parquet(tmp_path / "survey.parquet", 100_000, 1, sample=True)
    assert read_parquet(path) == survey


def test_other_engines_read_text(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = demo.write_parquet(tmp_path / "people.parquet", 5_000, 1)
    query = (
        "select typeof(region), count(*), count(distinct person_id) from read_parquet(?) group by 1"
    )
    assert duckdb.execute(query, [str(path)]).fetchall() == [("VARCHAR", 5_000, 5_000)]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("older", [True, False])
def test_an_interrupted_write_leaves_nothing_behind(tmp_path, monkeypatch, failure, older):
    path = tmp_path / "people.parquet"
    if older:
        path.write_bytes(b"older file")

    def interrupted(persons, seed, chunk):
        yield next(demo.generate(persons, seed, chunk))
        raise failure

    monkeypatch.setattr(parquet, "generate", interrupted)
    with pytest.raises(failure):
        demo.write_parquet(path, 2_000, 1, rows_per_group=1_000)
    assert [p.name for p in tmp_path.iterdir()] == (["people.parquet"] if older else [])
    assert not older or path.read_bytes() == b"older file"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"persons": 0, "seed": 1}, "persons"),
        ({"persons": 10, "seed": -1}, "seed"),
        ({"persons": 10, "seed": 1, "rows_per_group": 0}, "rows_per_group"),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(tmp_path, options, named):
    with pytest.raises(ParameterError, match=named):
        demo.write_parquet(tmp_path / "people.parquet", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(DiscreetError, match="nowhere"):
        demo.write_parquet(tmp_path / "nowhere" / "people.parquet", 10, 1)


GROWTH = """
import resource, sys
from discreet import demo

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

demo.write_parquet(sys.argv[1], 300_000, 1, rows_per_group=100_000)
before = peak()
demo.write_parquet(sys.argv[1], 3_000_000, 1, rows_per_group=100_000)
print(peak() - before)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_census(tmp_path):
    """Three million rows take 250 MB as Arrow tables; a process of its own sees the peak."""
    command = [sys.executable, "-c", GROWTH, str(tmp_path / "people.parquet")]
    grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(grown) < 50 * 1024
