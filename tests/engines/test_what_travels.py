"""Records stay where they are, and the secret stays here: the servers' own logs are read."""

import os
import re

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.cli import main
from tests.commands import run

SECRET = "c0ffee005ec2e791d04b8fa36c1e97d2850ab3f46e7c219dfb8a4613d7205ce9"
N = 500
FRAME = pa.table(
    {
        "person": [f"p{i:04d}" for i in range(N)],
        "sex": ["f", "m"] * (N // 2),
        "town": ["A", "B", "C", "D", "E"] * (N // 5),
        "w": [1.5] * N,
    }
)
TABLE = '"sex"|"town"'
TRACES = [SECRET, SECRET.encode().hex(), SECRET.encode().hex().upper()]
KEYS = dc.Secret(SECRET.encode()).keys_for_ids(FRAME.column("person"), edition="1", mode="fresh")
EXPECTED = dc.open(FRAME, id="person", weight="w").with_keys(dc.Secret(SECRET.encode()))


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "keys.secret"
    path.touch(mode=0o600)
    path.write_text(SECRET)
    return path


class Log:
    """The part of the server's log that was written since."""

    def __init__(self, server):
        self.path, self.start = server.log, server.log.stat().st_size

    @property
    def text(self):
        with self.path.open() as file:
            file.seek(self.start)
            return file.read()

    @property
    def statements(self):
        """Every statement, on one line each; continued lines begin with a tab."""
        found = re.findall(r"(?:statement|execute [^:]*): (.*(?:\n\t.*)*)", self.text)
        return [re.sub(r"\s+", " ", statement) for statement in found]

    def about(self, table):
        return [s for s in self.statements if f'"{table}"' in s]


def assert_silent(text):
    for trace in TRACES:
        assert trace not in text
    for key in KEYS.tolist():
        assert str(key) not in text


@pytest.fixture
def people(on_postgres):
    on_postgres.stored(FRAME, "people_here")
    yield "people_here"
    on_postgres.backend.drop_table("people_here")


def test_only_grouped_cells_leave_postgres(server, people, secret):
    log = Log(server)
    data = dc.open(f"{server.url}::{people}", weight="w", id="person")
    table = data.recode(town={"A": "B"}).tabulate("sex*town")
    assert table.z[-1] == N
    asked = log.about(people)
    assert asked
    for statement in asked:
        assert "GROUP BY" in statement
        assert statement.startswith("COPY (SELECT")


def test_only_the_largest_contributions_leave_postgres(server, people):
    log = Log(server)
    data = dc.open(f"{server.url}::{people}")
    table = data.tabulate("sex*town", value="w", contributor="person", largest=2)
    assert table.contributions.count[-1] == N
    assert len(table.contributions.owners) <= 2 * table.design.n_published
    asked = log.about(people)
    ranked = [s for s in asked if "ROW_NUMBER()" in s]
    assert len(ranked) == 4  # one for each margin
    for statement in asked:
        assert statement.startswith("COPY (")
        assert "GROUP BY" in statement or "COUNT(*)" in statement


def test_keys_made_here_leave_nothing_in_the_log(server, people):
    log = Log(server)
    data = dc.open(f"{server.url}::{people}", weight="w", id="person")
    table = data.with_keys(dc.Secret(SECRET.encode())).tabulate("sex*town")
    np.testing.assert_array_equal(table.cell_keys, EXPECTED.tabulate("sex*town").cell_keys)
    read, grouped = log.about(people)
    assert re.fullmatch(r'COPY \(SELECT "t0"."person" FROM .*\) TO STDOUT .*', read)
    assert "GROUP BY" in grouped
    assert any(s.startswith("COPY") and "FROM STDIN" in s for s in log.statements)
    assert_silent(log.text)


def test_keys_are_made_once_inside_the_database(server, libpq, sql, people, secret, capsys):
    log = Log(server)
    command = ["keys", f"postgresql:///::{people}", "--id", "person", "--secret", str(secret)]
    assert run(*command, "--into", "people_keys") == 0, capsys.readouterr().err
    assert_silent(log.text)
    rows = dict(sql.execute("SELECT person, record_key FROM people_keys").fetchall())
    assert rows == dict(zip(FRAME.column("person").to_pylist(), KEYS.tolist(), strict=True))
    shown = sql.execute("SELECT relacl FROM pg_class WHERE relname = 'people_keys'").fetchone()
    assert shown == (None,)  # nobody but the owner has rights

    log = Log(server)
    data = dc.open(f"postgresql:///::{people}", weight="w", keys="::people_keys")
    table = data.with_secret(dc.Secret(SECRET.encode())).tabulate("sex*town")
    expected = EXPECTED.tabulate("sex*town")
    np.testing.assert_array_equal(table.cell_keys, expected.cell_keys)
    np.testing.assert_array_equal(table.z, expected.z)
    assert not [s for s in log.about(people) if "GROUP BY" not in s]
    assert_silent(log.text)

    assert run(*command, "--into", "people_keys") == 2
    assert "made once" in capsys.readouterr().err


def test_the_command_line_uses_keys_beside_the_records(libpq, sql, people, secret, tmp_path):
    out = tmp_path / "table.parquet"
    source = f"postgresql:///::{people}"
    common = ["--id", "person", "--secret", str(secret)]
    for arguments in (
        ["keys", source, *common, "--into", "public.keys_of_cli"],
        ["tabulate", source, "--by", "sex", "--keys", "::keys_of_cli", *common, "--out", str(out)],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
    np.testing.assert_array_equal(
        dc.facade.read_table(out).cell_keys, EXPECTED.tabulate("sex").cell_keys
    )


def plans(session, since):
    """Physical plans of every query that Spark ran."""
    store = session._jsparkSession.sharedState().statusStore()
    listed = store.executionsList()
    found = [listed.apply(i) for i in range(listed.size())]
    return [e.physicalPlanDescription() for e in found if e.executionId() >= since]


def queries_so_far(session):
    return session._jsparkSession.sharedState().statusStore().executionsCount()


def test_only_grouped_cells_leave_spark(on_spark, session):
    on_spark.stored(FRAME, "people_there")
    data = dc.open(session, table="people_there", weight="w", id="person")
    start = queries_so_far(session)
    table = data.tabulate("sex*town")
    assert table.z[-1] == N
    ran = plans(session, start)
    assert ran
    for plan in ran:
        assert "people_there" in plan
        assert re.search(r"HashAggregate", plan)
        assert_silent(plan)


def test_keys_are_made_once_inside_spark(on_spark, session, monkeypatch):
    from discreet.records import spark

    monkeypatch.setattr(spark, "_AT_ONCE", 200)  # three parts
    on_spark.stored(FRAME, "people_that_stay")
    data = dc.open(session, table="people_that_stay", weight="w", id="person")
    start = queries_so_far(session)
    data.store_keys("default.keys_of_people", dc.Secret(SECRET.encode()))
    for plan in plans(session, start):
        assert_silent(plan)
    again = dc.open(session, table="people_that_stay", weight="w", keys="::keys_of_people")
    start = queries_so_far(session)
    table = again.tabulate("sex*town")
    np.testing.assert_array_equal(table.cell_keys, EXPECTED.tabulate("sex*town").cell_keys)
    assert all("HashAggregate" in plan for plan in plans(session, start))
    assert session.table("keys_of_people").count() == N
    with pytest.raises(dc.errors.KeysError, match="made once"):
        data.store_keys("keys_of_people", dc.Secret(SECRET.encode()))
    assert not [t.name for t in session.catalog.listTables() if t.name.startswith("discreet_keys")]


def test_large_tables_of_keys_come_in_batches(server, sql, on_postgres, monkeypatch):
    from discreet.records import postgres

    monkeypatch.setattr(postgres, "_AT_ONCE", 64)
    sql.execute("CREATE TABLE citizens (id uuid PRIMARY KEY, sex text)")
    sql.execute("INSERT INTO citizens SELECT gen_random_uuid(), 'f' FROM generate_series(1, 200)")
    data = dc.open(f"{server.url}::citizens", id="id")
    stored = data.store_keys("citizen_keys", dc.Secret(SECRET.encode())).tabulate("sex")
    made = data.with_keys(dc.Secret(SECRET.encode())).tabulate("sex")
    np.testing.assert_array_equal(stored.cell_keys, made.cell_keys)
    kind = "SELECT data_type FROM information_schema.columns WHERE table_name = 'citizen_keys'"
    assert sql.execute(kind).fetchall() == [("uuid",), ("bigint",)]


def test_no_key_is_made_for_ids_that_are_not_unique(place):
    frame = {"i": [1, 1, 2, None], "a": ["x"] * 4}
    for part, message in ((pa.table(frame).slice(0, 3), "1 duplicates"), (frame, "1 missing")):
        data = place.people(pa.table(part), id="i")
        with pytest.raises(dc.errors.DataError, match=message):
            data.store_keys("never_made", dc.Secret(SECRET.encode()))
        with pytest.raises(dc.errors.UnknownNameError):
            data.with_stored_keys("::never_made")


def test_keys_in_other_engines_too():
    import ibis

    table = ibis.duckdb.connect().create_table("people", FRAME)
    data = dc.open(table, weight="w", id="person")
    data.store_keys("people_keys", dc.Secret(SECRET.encode()))
    again = dc.open(table, weight="w", keys="::people_keys").tabulate("sex")
    np.testing.assert_array_equal(again.cell_keys, EXPECTED.tabulate("sex").cell_keys)


def test_a_file_opened_to_be_read_says_where_keys_can_go(tmp_path, capsys, secret):
    import duckdb

    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.sql("CREATE TABLE people AS SELECT 1 AS i, 'f' AS sex")
    assert run("keys", str(path), "--id", "i", "--secret", str(secret), "--into", "k") == 2
    assert "read-only" in capsys.readouterr().err
    for options in ([], ["--into", "k", "--out", "k.parquet"]):
        assert run("keys", str(path), "--id", "i", "--secret", str(secret), *options) == 2
        assert "--out, or a table with --into" in capsys.readouterr().err


def test_hostile_names_do_nothing(server, sql, on_postgres):
    evil = 'x"; DROP TABLE other_victim; --'
    sql.execute("CREATE TABLE other_victim (a int)")
    on_postgres.stored(pa.table({evil: ["a", "b"], "id": [1, 2]}), evil)
    data = dc.open(server.url, table=evil, id="id")
    keyed = data.store_keys(f"{evil} keys", dc.Secret(SECRET.encode()))
    assert keyed.tabulate([(evil,)]).z.tolist() == [1, 1]
    assert keyed.recode({evil: {"a": "b"}}).tabulate([(evil,)]).z.tolist() == [2]
    assert sql.execute("SELECT count(*) FROM other_victim").fetchone() == (0,)


@pytest.mark.parametrize("evil", ['x"; DROP TABLE victim; --', "x`; DROP TABLE victim; --"])
def test_hostile_columns_do_nothing(place, evil):
    place.stored(pa.table({"a": [1]}), "victim")
    people = place.people(pa.table({evil: ["a", "b"], "id": [1, 2]}), id="id")
    keyed = people.with_keys(dc.Secret(SECRET.encode())).recode({evil: {"a": "b"}})
    assert keyed.tabulate([(evil,)]).z.tolist() == [2]
    assert dc.open(place.backend.table("victim")).tabulate("a").z.tolist() == [1, 1]
    place.backend.drop_table("victim")


def test_nothing_is_left_in_the_working_folder():
    assert not {"spark-warehouse", "metastore_db", "derby.log"} & set(os.listdir())
