"""A site over PostgreSQL, Spark or DuckDB answers as one over a file, many at a time."""

from concurrent.futures import ThreadPoolExecutor

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Secret
from discreet.frames import read_frame
from discreet.randomness import stream
from discreet.records import spark
from discreet.records.backend import connection_of
from discreet.records.connection import attempt
from discreet.serve import Query, site_of, start_site

N = 3_000
RNG = stream(1, "served people")
PEOPLE = pa.table(
    {
        "pid": np.arange(N),
        "place": pa.array(["a", "b", "c", "d"]).take(RNG.integers(0, 4, N)),
        "age": pa.array(["young", "old"]).take(RNG.integers(0, 2, N)),
        "sex": pa.array(["f", "m"]).take(RNG.integers(0, 2, N)),
        "k": RNG.integers(0, 2**32, N),
    }
)
CODES = """
[place]
codes = ["a", "b", "c", "d"]
[age]
codes = ["young", "old"]
[sex]
codes = ["f", "m"]
"""
ADDRESSES = [
    "rows=place",
    "rows=age&columns=sex",
    "rows=place&columns=age",
    "rows=place&columns=sex&where.age=old",
    "rows=place&columns=age&layers=sex",
    "rows=sex",
]


@pytest.fixture
def served(tmp_path):
    """Makes a data set over some records, with two connections."""
    (tmp_path / "codes.toml").write_text(CODES)
    Secret.from_file(tmp_path / "keys.secret", create=True)
    pq.write_table(PEOPLE, tmp_path / "people.parquet")

    def made(source):
        roles = {"key": "k", "codes": "codes.toml", "secret": "keys.secret", "name": "people"}
        recipe = {
            "tabulate": {"margins": "place*age*sex"},
            "protect": {"method": "cell-key", "parameters": {"D": 5, "V": 3, "js": 2}},
        }
        people = {"records": {"source": source, **roles}, "recipe": recipe, "mode": "on-the-fly"}
        return start_site(site_of({"datasets": {"people": people}}, tmp_path)).dataset("people")

    return made


@pytest.fixture
def source(request, tmp_path, monkeypatch):
    if request.param == "spark":
        session = request.getfixturevalue("session")
        monkeypatch.setattr(spark, "_session", lambda master: session)  # the one that runs
        return f"spark://here:7077::{tmp_path}/people.parquet"
    if request.param == "duckdb":
        with duckdb.connect(str(tmp_path / "people.duckdb")) as db:
            db.register("given", PEOPLE)
            db.execute("CREATE TABLE people AS SELECT * FROM given")
        return "people.duckdb::people"
    server = request.getfixturevalue("server")
    backend, name = ibis.connect(server.url), ibis.util.gen_name("people")
    attempt(lambda: connection_of(backend).store(name, read_frame(PEOPLE)), "the records")
    backend.disconnect()
    return f"{server.url}::{name}"


@pytest.mark.parametrize("source", ["duckdb", "postgres", "spark"], indirect=True)
def test_figures_are_those_of_a_file_however_many_ask(served, source):
    one, other = served("people.parquet"), served(source)
    expected = [one.answer(Query.parse(address)).cube.values for address in ADDRESSES]
    with ThreadPoolExecutor(12) as visitors:
        asked = [Query.parse(address) for address in ADDRESSES * 4]
        found = list(visitors.map(lambda query: other.answer(query).cube.values, asked))
    for got, wanted in zip(found, expected * 4, strict=True):
        np.testing.assert_array_equal(got, wanted)
