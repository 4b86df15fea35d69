"""What the pages on databases and clusters print runs, on the servers they speak of."""

import re
from pathlib import Path

import pytest

import discreet as dc
from discreet.demo import generate

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```py\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page):
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert found
    return found


def people():
    frame = next(generate(2_000, seed=1))
    return frame.with_column("weight", [1.5] * len(frame))


@pytest.fixture
def census(sql, server, libpq):
    """A database of the name in the pages."""
    from discreet.records.postgres import PostgresConnection, connect

    sql.execute("CREATE DATABASE census")
    PostgresConnection(connect(f"{server.url.removesuffix('postgres')}census")[0]).store(
        "people", people()
    )
    yield
    sql.execute("DROP DATABASE census WITH (FORCE)")


def test_the_page_on_databases(census, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("databases.md"):
        exec(block, names)
    expected = dc.open(people(), id="person_id", weight="weight").with_keys(names["secret"])
    assert (names["table"].cell_keys == expected.tabulate("region*sex").cell_keys).all()


def test_the_page_on_clusters(on_spark, session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    on_spark.stored(people(), "people")
    names = {"spark": session}
    for block in blocks("cluster.md"):
        exec(block, names)
    assert names["table"].z[-1] == 2_000
    for name in ("people", "people_keys", "people_keyed"):
        session.sql(f"DROP TABLE {name}")
