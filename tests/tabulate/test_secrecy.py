"""The secret never reaches the engine, a log, a file or a message."""

import json
import logging
import pickle
import traceback

import ibis
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import DiscreetError
from discreet.records import QueryEngine
from discreet.records.query import compiled

SECRET = "correct horse battery staple, and then some"
FRAME = pa.table({"id": range(40), "sex": ["f", "m"] * 20, "w": [1.0] * 40})


def traces():
    raw = SECRET.encode()
    return [SECRET, raw.hex(), raw.hex().upper(), str(list(raw))[1:-1], repr(raw)[2:-1]]


def assert_silent(text):
    for trace in traces():
        assert trace not in text


@pytest.fixture
def backend():
    backend = ibis.duckdb.connect()
    backend.con.sql("CALL enable_logging('QueryLog')")
    return backend


@pytest.fixture
def people(backend):
    table = backend.create_table("people", FRAME)
    return dc.open(table, id="id", weight="w").with_keys(dc.Secret(SECRET.encode()))


def test_compiled_queries_do_not_hold_it(people, backend):
    sql, done = compiled(QueryEngine().query(people, ["sex"]))
    assert "SUM" in sql
    assert_silent(sql + str(done.parameters))


def test_the_query_log_and_profile_do_not_hold_it(people, backend, tmp_path):
    profile = tmp_path / "profile.json"
    backend.con.sql("PRAGMA enable_profiling = 'json'")
    backend.con.sql(f"PRAGMA profiling_output = '{profile}'")
    people.tabulate("sex")
    backend.con.sql("PRAGMA disable_profiling")
    logged = backend.con.sql("SELECT message FROM duckdb_logs").fetchall()
    assert any("GROUP BY" in message for (message,) in logged)
    assert profile.stat().st_size > 0
    assert_silent(str(logged) + profile.read_text())


def test_no_table_of_the_engine_holds_it(people, backend):
    people.tabulate("sex")
    names = [row[0] for row in backend.con.sql("SELECT view_name FROM duckdb_views()").fetchall()]
    names += [
        row[0] for row in backend.con.sql("SELECT table_name FROM duckdb_tables()").fetchall()
    ]
    assert "people" in names  # keys were lent and taken back
    assert not [name for name in names if name.startswith("discreet")]


def test_logs_and_texts_do_not_hold_it(people, caplog):
    with caplog.at_level(logging.DEBUG):
        table = people.tabulate("sex")
        logging.getLogger("test").warning("%r %s %r", people, people.secret, table)
    shown = [
        repr(people),
        repr(table),
        table._repr_html_(),
        repr(table.secret),
        str(vars(people)),
    ]
    assert_silent(caplog.text + "".join(shown))


def test_files_do_not_hold_it(people, tmp_path):
    people.tabulate("sex").save(tmp_path / "table.parquet")
    people.write_keys(tmp_path / "keys.parquet")
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert SECRET.encode() not in content
        assert_silent(content.decode("latin-1"))


def test_a_pickled_table_leaves_it_behind(people):
    table = people.tabulate("sex")
    copy = pickle.loads(pickle.dumps(table))
    assert copy.secret is None
    assert SECRET.encode() not in pickle.dumps(table)


def test_json_refuses_it(people):
    with pytest.raises(TypeError):
        json.dumps({"secret": people.secret})


def test_exceptions_do_not_hold_it(people):
    shown = []
    for attempt in (
        lambda: people.tabulate("nothing"),
        lambda: people.with_roles(weight="id").recode(sex={"f": "x"}).tabulate("sex*nothing"),
        lambda: people.with_keys(people.secret, id="w"),
        lambda: pickle.dumps(people.secret),
        lambda: people.secret.keys_for_ids([None]),
    ):
        with pytest.raises(DiscreetError) as caught:
            attempt()
        trace = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        shown.append("".join(trace.format()))
    assert_silent("".join(shown))
