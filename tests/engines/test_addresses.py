"""How databases are reached, and what is never shown of it."""

import gc
import logging
import subprocess
import sys
import traceback
from urllib.parse import quote

import ibis
import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import EngineError, MissingDependencyError, ParameterError, UnknownNameError
from discreet.publication import Choice, Publication
from discreet.records.connection import one_table, scheme_of, split_table
from tests import servers

FRAME = pa.table({"id": [1, 2, 3], "sex": ["f", "m", "f"], "w": [1.0, 2.0, 4.0]})


@pytest.fixture(scope="module", autouse=True)
def people(server):
    """A table in the usual schema, and one elsewhere."""
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        for name in ("people", "secure.residents", '"Odd Schema"."a.b"'):
            connection.execute('CREATE SCHEMA IF NOT EXISTS "Odd Schema"')
            connection.execute("CREATE SCHEMA IF NOT EXISTS secure")
            connection.execute(f"CREATE TABLE {name} (id int, sex text, w float8)")
            connection.execute(f"INSERT INTO {name} VALUES (1,'f',1),(2,'m',2),(3,'f',4)")
        yield
        for name in ("people", "secure.residents", '"Odd Schema"."a.b"'):
            connection.execute(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("people.duckdb::t", ("people.duckdb", "t")),
        ("people.parquet", ("people.parquet", None)),
        ("postgresql://h/db::s.t", ("postgresql://h/db", "s.t")),
        ("postgresql://[::1]:5432/db::t", ("postgresql://[::1]:5432/db", "t")),
        ("postgresql://[::1]/db", ("postgresql://[::1]/db", None)),
        ("postgresql://u:a::b@h/db::t", ("postgresql://u:a::b@h/db", "t")),
        ("postgresql:///db?host=/tmp::a::b", ("postgresql:///db?host=/tmp", "a::b")),
        ("spark://h:7077::/data/x.parquet", ("spark://h:7077", "/data/x.parquet")),
    ],
)
def test_tables_stand_behind_the_mark(address, expected):
    assert split_table(address) == expected


def test_schemes():
    assert scheme_of("postgresql://h") == "postgresql"
    assert scheme_of("C:/people.parquet") is None
    with pytest.raises(ParameterError, match="'a' and 'b'"):
        one_table("b", None, "a")


def addresses(server, table):
    path = f"127.0.0.1:{server.port}/postgres"
    yield f"postgresql://{path}::{table}", {}
    yield f"postgres://postgres@{path}/{quote(table)}", {}
    yield f"postgresql://{path}", {"table": table}
    yield f"postgresql:///?host=127.0.0.1::{table}", {}
    yield f"postgresql:///postgres::{table}", {}


@pytest.mark.parametrize("table", ["people", "public.people", "secure.residents", "Odd Schema.a.b"])
def test_every_spelling_of_an_address_opens_the_table(server, libpq, table):
    for address, options in addresses(server, table):
        data = dc.open(address, weight="w", **options)
        assert data.tabulate("sex").weights.tolist() == [5.0, 2.0, 7.0]
        assert data.origin.endswith(f"::{table}")


def test_a_service_file_and_a_password_file_are_read(server, tmp_path, monkeypatch):
    services, passwords = tmp_path / "services", tmp_path / "passwords"
    services.write_text(
        f"[census]\nhost=127.0.0.1\nport={server.port}\nuser=postgres\ndbname=postgres\n"
    )
    passwords.write_text(f"127.0.0.1:{server.port}:*:postgres:{servers.PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    table = dc.open("postgresql:///?service=census::people").tabulate("sex")
    assert table.z.tolist() == [2, 1, 3]
    monkeypatch.setenv("PGSERVICE", "census")
    assert dc.open("postgresql://::people").tabulate("sex").z.tolist() == [2, 1, 3]


def test_missing_tables_have_suggestions(server):
    with pytest.raises(UnknownNameError, match="Did you mean 'people'"):
        dc.open(f"{server.url}::peopel")
    with pytest.raises(UnknownNameError, match="Did you mean 'secure.residents'"):
        dc.open(f"{server.url}::secure.resident")
    with pytest.raises(ParameterError, match="holds these tables: .*Name one with table="):
        dc.open(server.url)


def test_a_table_named_twice_is_refused(server):
    with pytest.raises(ParameterError, match="two tables"):
        dc.open(f"{server.url}/people", table="residents")


def everything_shown(caplog, work):
    """Texts and logs of an error, with the values that its frames held below ours."""
    with caplog.at_level(logging.DEBUG), pytest.raises((EngineError, ParameterError)) as caught:
        work()
    error = caught.value
    chain = "".join(traceback.format_exception(error))
    return f"{error}{error!r}{error.public()}{chain}{caplog.text}{error.__cause__}"


def test_passwords_are_not_shown(server, caplog):
    data = dc.open(f"{server.url}::people")
    with caplog.at_level(logging.DEBUG):
        table = data.tabulate("sex")
        logging.getLogger("test").warning("%r %r %r", data, table, data.backend)
    assert f"postgres@127.0.0.1:{server.port}/postgres::people" in repr(data)
    assert servers.PASSWORD not in f"{data!r}{data.origin}{table!r}{caplog.text}{vars(data)}"


def test_nothing_that_is_written_says_where_the_records_were(server, tmp_path):
    recipe = Publication("sex", Choice("laplace", {"epsilon": 1.0}))
    data = dc.open(f"{server.url}::people", hierarchies={"sex": dc.Hierarchy.flat(["f", "m"])})
    recipe.write(tmp_path / "recipe.toml")
    recipe.tabulate(data).save(tmp_path / "table.parquet")
    recipe.run(data).save(tmp_path / "release.parquet")
    files = list(tmp_path.iterdir())
    assert len(files) == 3
    for path in files:
        content = path.read_bytes()
        for trace in (servers.PASSWORD, "127.0.0.1", "postgres"):
            assert trace.encode() not in content


@pytest.mark.parametrize(
    "change",
    [
        lambda url: url.replace("postgres:", "nobody:"),
        lambda url: url.replace("127.0.0.1", "127.0.0.1/x/"),
        lambda url: url.replace("@127", "/@127"),
        lambda url: url.replace(servers.PASSWORD, f"99/{servers.PASSWORD}"),
        lambda url: url.replace(servers.PASSWORD, f"x@{servers.PASSWORD}"),
        lambda url: url.replace("@127.0.0.1", "@no.such.host.invalid"),
        lambda url: url.replace("/postgres", "/nothing") + "?password=" + servers.PASSWORD,
        lambda url: url + "?nonsense=" + servers.PASSWORD,
    ],
)
def test_passwords_are_not_in_errors(server, caplog, change):
    shown = everything_shown(caplog, lambda: dc.open(f"{change(server.url)}::people"))
    assert servers.PASSWORD not in shown


def test_a_wrong_password_is_one_clear_line(server, monkeypatch, caplog):
    monkeypatch.setenv("PGPASSWORD", "wrong, but still nobody's business")
    address = f"postgresql://postgres@127.0.0.1:{server.port}/postgres::people"
    with pytest.raises(EngineError, match="password authentication failed") as caught:
        dc.open(address)
    assert "\n" not in str(caught.value)
    assert "nobody's business" not in "".join(traceback.format_exception(caught.value))


def test_no_server_is_one_clear_line():
    with pytest.raises(EngineError, match="cannot be reached") as caught:
        dc.open(f"postgresql://127.0.0.1:{servers.free_port()}/db::t")
    assert "\n" not in str(caught.value)


def test_what_must_be_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"discreet\[postgres\]"):
        dc.open("postgresql://host/db::t")
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingDependencyError, match=r"discreet\[spark\]"):
        dc.open("spark://host:7077::t")


def test_spark_without_java_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(EngineError, match="apt-get install default-jre-headless"):
        dc.open("spark://host:7077::t")


def test_connections_end_with_the_data(server):
    """No connection is left behind, and Python has none to complain of."""
    data = dc.open(f"{server.url}::people")
    connection = data.backend.con
    assert not connection.closed
    del data
    gc.collect()
    assert connection.closed


def test_the_command_line_reads_databases(server, libpq, tmp_path):
    out = tmp_path / "table.parquet"
    command = [sys.executable, "-m", "discreet.cli", "tabulate", "postgresql:///::people"]
    options = ["--by", "sex", "--weight", "w", "--out", str(out)]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert dc.facade.read_table(out).z.tolist() == [2, 1, 3]


def spark_sources(place):
    place.stored(FRAME, "people_of_spark")
    session = place.backend._session
    session.sql("CREATE DATABASE IF NOT EXISTS archive")
    session.table("people_of_spark").write.mode("overwrite").saveAsTable("archive.people")
    session.table("people_of_spark").createOrReplaceTempView("seen")
    folder = f"{session.conf.get('spark.sql.warehouse.dir')}/people_of_spark"
    yield session, {"table": "people_of_spark"}
    yield session, {"table": "default.people_of_spark"}
    yield session, {"table": "spark_catalog.archive.people"}
    yield session, {"table": "archive.people"}
    yield session, {"table": "seen"}
    yield session, {"table": folder.removeprefix("file:")}
    yield session.table("people_of_spark"), {}
    yield place.backend.table("people_of_spark"), {}
    yield place.backend.table("people_of_spark").filter(ibis._.id > 0), {}


def test_every_way_into_a_spark_session(on_spark):
    for source, options in spark_sources(on_spark):
        table = dc.open(source, weight="w", **options).tabulate("sex")
        np.testing.assert_array_equal(table.weights, [5.0, 2.0, 7.0])


def test_tables_that_spark_does_not_have(on_spark, session):
    on_spark.stored(FRAME, "households")
    on_spark.stored(FRAME, "dwellings")
    with pytest.raises(UnknownNameError, match="Did you mean 'households'"):
        dc.open(session, table="housholds")
    with pytest.raises(ParameterError, match="Name one with table="):
        dc.open(session)
    with pytest.raises(EngineError, match="PATH_NOT_FOUND"):
        dc.open(session, table="/no/such/people.parquet")
    with pytest.raises(ParameterError, match="not with a frame"):
        dc.open(session.table("households"), table="households")


def test_one_spark_at_a_time(session):
    with pytest.raises(ParameterError, match="local-cluster"):
        dc.open("spark://127.0.0.1:7077::people")


ON_A_CLUSTER = """
import sys
import discreet as dc

address, path = sys.argv[1:]
people = dc.open(f"{address}::{path}", weight="w")
print(people.origin, people.tabulate("sex").weights.tolist())
"""


def test_a_cluster_by_its_address(tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "people.parquet"
    pq.write_table(FRAME, path)
    with servers.standalone_spark() as address:
        command = [sys.executable, "-c", ON_A_CLUSTER, address, str(path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(maxsplit=1) == [f"{address}::{path}", "[5.0, 2.0, 7.0]\n"]
    assert [p.name for p in tmp_path.iterdir()] == ["people.parquet"]
