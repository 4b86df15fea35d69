"""What goes wrong on the way is one clear line, and leaves nothing half done."""

import contextlib
import os
import signal
import threading
import time

import numpy as np
import psycopg
import pytest

import discreet as dc
from discreet.cli import main
from discreet.errors import EngineError
from tests import servers

SLOWLY = "WHERE pg_sleep(0.2) IS NOT NULL"  # for every row


@contextlib.contextmanager
def meanwhile(work):
    """Do something while the block is at work, and wait for both."""
    failed = []

    def guarded():
        try:
            work()
        except Exception as error:  # shown by the test, not by the thread
            failed.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not failed


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def spare():
    """A PostgreSQL of its own, with people that are counted slowly."""
    with servers.postgres() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE people (id int, sex text)")
            connection.execute("INSERT INTO people SELECT i, 'f' FROM generate_series(1, 200) i")
            connection.execute(f"CREATE VIEW slow AS SELECT * FROM people {SLOWLY}")
        yield server


@pytest.fixture
def fragile(spare):
    """A server that may be stopped."""
    if not spare.is_running:
        spare.serve()
    return spare


def activity(server, condition):
    """Ids of the server's processes that meet a condition."""
    with psycopg.connect(server.url) as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND " + condition
        return [pid for (pid,) in connection.execute(query)]


GROUPS = "query LIKE 'COPY (SELECT%GROUP BY%' AND state = 'active'"


def test_a_server_that_goes_away(fragile, tmp_path, capsys):
    def stop():
        until(lambda: activity(fragile, GROUPS))
        fragile.stop()

    out = tmp_path / "table.parquet"
    with meanwhile(stop), pytest.raises(SystemExit) as ended:
        main(["tabulate", f"{fragile.url}::slow", "--by", "sex", "--out", str(out)])
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: the engine that holds postgresql://")
    assert len(shown.strip().splitlines()) == 1
    assert servers.PASSWORD not in shown
    assert list(tmp_path.iterdir()) == []

    fragile.serve()
    assert dc.open(f"{fragile.url}::people").tabulate("sex").z[0] == 200


def test_data_of_a_server_that_was_restarted(fragile):
    data = dc.open(f"{fragile.url}::people")
    fragile.stop()
    for _ in range(2):
        with pytest.raises(EngineError, match="did not answer") as caught:
            data.tabulate("sex")
        assert "\n" not in str(caught.value)


def test_keys_that_were_not_finished_are_not_there(fragile, monkeypatch):
    """The server stops after some batches; none of them stays."""
    from discreet.records import postgres

    monkeypatch.setattr(postgres, "_AT_ONCE", 50)
    data, made = dc.open(f"{fragile.url}::people", id="id"), []

    class Interrupted(dc.Secret):
        def keys_for_ids(self, ids, rule="discreet", edition=None, mode=None):
            made.append(len(ids))
            if len(made) == 3:
                fragile.stop()
            return super().keys_for_ids(ids, rule, edition, mode)

    with pytest.raises(EngineError, match="did not answer"):
        data.store_keys("people_keys", Interrupted(b"the secret of a test, and of no office"))
    assert made == [50, 50, 50]
    fragile.serve()
    again = dc.open(f"{fragile.url}::people", id="id").store_keys(
        "people_keys", dc.Secret(b"the secret of a test, and of no office")
    )
    assert again.tabulate("sex").z[0] == 200


def test_a_query_that_is_cancelled(server, sql):
    sql.execute("CREATE TABLE patients AS SELECT 'f' AS sex FROM generate_series(1, 200)")
    sql.execute(f"CREATE VIEW slow_patients AS SELECT * FROM patients {SLOWLY}")
    data = dc.open(f"{server.url}::slow_patients")

    def cancel():
        until(lambda: activity(server, GROUPS))
        (pid,) = activity(server, GROUPS)
        sql.execute("SELECT pg_cancel_backend(%s)", [pid])

    with meanwhile(cancel), pytest.raises(EngineError, match="canceling statement"):
        data.tabulate("sex")
    fast = data.backend.table("patients")
    assert dc.open(fast).tabulate("sex").z[0] == 200  # the connection is as good as before


def test_rights_that_are_missing_are_named(server, sql):
    sql.execute("CREATE TABLE closed AS SELECT 1 AS a")
    sql.execute("CREATE ROLE clerk LOGIN PASSWORD 'clerk'")
    address = f"postgresql://clerk:clerk@127.0.0.1:{server.port}/postgres::closed"
    with pytest.raises(EngineError, match="permission denied for table closed"):
        dc.open(address).tabulate("a")


def test_reading_needs_no_right_to_write(server, sql):
    """A role that may read the records and make temporary tables can do everything but store."""
    sql.execute("CREATE TABLE readable AS SELECT i AS id, 'f' AS sex FROM generate_series(1, 9) i")
    sql.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
    sql.execute("GRANT SELECT ON readable TO reader")
    address = f"postgresql://reader:reader@127.0.0.1:{server.port}/postgres::readable"
    data = dc.open(address, id="id")
    keyed = data.with_keys(dc.Secret(b"the secret of a test, and of no office")).recode(
        sex={"f": "w"}
    )
    assert keyed.tabulate("sex").z.tolist() == [9, 9]
    with pytest.raises(EngineError, match="permission denied for schema public"):
        data.store_keys("reader_keys", dc.Secret(b"the secret of a test, and of no office"))


HARD_WORK = """
SELECT id % 7 AS a, sha2(sha2(sha2(CAST(id AS STRING), 512), 512), 512) > '8' AS b,
  CAST(1 + id % 3 AS DOUBLE) AS w, pmod(xxhash64(id), 4294967296) AS k
FROM range(0, {n}, 1, {parts})
"""


def hard(session, n, parts=24):
    return dc.open(session.sql(HARD_WORK.format(n=n, parts=parts)), weight="w", key="k")


def busy(session):
    tracker = session.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(s) for s in tracker.getActiveStageIds()]
    return any(s is not None and s.numCompletedTasks >= 2 for s in stages)


def test_an_executor_that_dies_changes_nothing(on_spark, session):
    """Spark does the work of a lost executor again; the table is the same."""
    data = hard(session, 600_000)
    killed = []

    def kill():
        until(lambda: busy(session))
        killed.append(servers.executors(os.getpid())[0])
        os.kill(killed[0], signal.SIGKILL)

    with meanwhile(kill):
        table = data.tabulate("a*b")
    assert killed
    assert killed[0] not in servers.executors(os.getpid())
    again = data.tabulate("a*b")
    assert table.z[-1] == 600_000
    np.testing.assert_array_equal(table.z, again.z)
    np.testing.assert_array_equal(table.cell_keys, again.cell_keys)
    np.testing.assert_allclose(table.weights, again.weights, rtol=1e-12)


def test_a_job_of_spark_that_is_cancelled(on_spark, session):
    data = hard(session, 10_000_000, parts=400)

    def cancel():
        until(lambda: busy(session))
        session.sparkContext.cancelAllJobs()

    with meanwhile(cancel), pytest.raises(EngineError, match="cancelled") as caught:
        data.tabulate("a*b")
    assert "\n" not in str(caught.value)
    assert hard(session, 1_000).tabulate("a").z[-1] == 1_000
