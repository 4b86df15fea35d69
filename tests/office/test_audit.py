"""The audit log: what is kept, that it is kept, and what is read from it."""

import asyncio
import csv
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, insert, inspect, select, text, update

from discreet.errors import DataError, MissingDependencyError, ParameterError
from discreet.serve import AUDIT, AuditEntry, AuditLog, OfficeDatabase
from discreet.serve.office import database
from discreet.serve.office.audit import AUDIT_COLUMNS, export_log, forget_entries, now, usage
from discreet.serve.office.database import DatabaseError

ENTRY = AuditEntry(
    time=datetime(2026, 3, 1, 12, tzinfo=UTC),
    visitor="ann",
    dataset="census",
    edition="2026",
    address="rows=region&columns=sex",
    kind="table",
    outcome="ok",
    cells=12,
    milliseconds=3.5,
)


@pytest.fixture
def log(store):
    log = AuditLog(store)
    yield log
    log.close()


def rows(store):
    with store.reading() as connection:
        return [tuple(row) for row in connection.execute(select(AUDIT).order_by(AUDIT.c.id))]


# The database


_MADE_BY_0_2 = """
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
INSERT INTO alembic_version VALUES('v1');
CREATE TABLE audit (
    id BIGSERIAL NOT NULL, time TIMESTAMP NOT NULL, visitor VARCHAR(80) NOT NULL,
    dataset VARCHAR(80) NOT NULL, edition VARCHAR(80) NOT NULL, address TEXT NOT NULL,
    kind VARCHAR(20) NOT NULL, outcome VARCHAR(40) NOT NULL, cells INTEGER NOT NULL,
    milliseconds FLOAT NOT NULL, PRIMARY KEY (id));
CREATE TABLE reloads (
    id BIGSERIAL NOT NULL, time TIMESTAMP NOT NULL, visitor VARCHAR(80) NOT NULL, PRIMARY KEY (id));
CREATE TABLE secrets (
    name VARCHAR(20) NOT NULL, day DATE NOT NULL, value BYTEA NOT NULL, PRIMARY KEY (name));
CREATE TABLE switches (
    dataset VARCHAR(80) NOT NULL, is_closed BOOLEAN NOT NULL, time TIMESTAMP NOT NULL,
    visitor VARCHAR(80) NOT NULL, PRIMARY KEY (dataset));
CREATE TABLE tokens (
    id VARCHAR(16) NOT NULL, name VARCHAR(80) NOT NULL, role VARCHAR(20) NOT NULL,
    digest BYTEA NOT NULL, time TIMESTAMP NOT NULL, revoked TIMESTAMP, PRIMARY KEY (id),
    UNIQUE (name));
CREATE INDEX audit_by_time ON audit (time);
INSERT INTO audit (
    time, visitor, dataset, edition, address, kind, outcome, cells, milliseconds) VALUES (
    '2026-03-01 12:00:00.000000', 'ann', 'census', '2026', 'rows=sex', 'table', 'ok', 3, 1.5);
"""
_IN_SQLITE = {"BIGSERIAL": "INTEGER", "TIMESTAMP": "DATETIME", "BYTEA": "BLOB"}


def make_as_0_2(address):
    """A database with one entry, as version 0.2 made it."""
    is_file = "://" not in address
    script = _MADE_BY_0_2
    for name, other in _IN_SQLITE.items() if is_file else ():
        script = script.replace(name, other)
    url = f"sqlite:///{address}" if is_file else address.replace("://", "+psycopg://", 1)
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in filter(str.strip, script.split(";")):
            connection.execute(text(statement))
        made = described(connection)
    engine.dispose()
    if is_file:
        os.chmod(address, 0o600)
    return made


def described(connection):
    """Every table with its columns and indexes."""
    found = inspect(connection)
    return {
        name: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(name)],
            found.get_pk_constraint(name)["constrained_columns"],
            [(i["name"], i["column_names"]) for i in found.get_indexes(name)],
            [u["column_names"] for u in found.get_unique_constraints(name)],
        )
        for name in found.get_table_names()
    }


def test_a_database_of_version_0_2_opens_and_goes_on(address):
    before = make_as_0_2(address)
    store = OfficeDatabase(address)
    log = AuditLog(store)
    log.record(ENTRY)
    log.close()
    with store.reading() as connection:
        now_there = described(connection)
    assert {name: now_there[name] for name in before} == before
    assert [row[2] for row in rows(store)] == ["ann", "ann"]
    store.close()


def test_a_new_database_has_the_form_of_version_0_2(store, address):
    with store.reading() as connection:
        made = described(connection)
        assert connection.execute(text("SELECT * FROM alembic_version")).all() == [("v1",)]
    with store.writing() as connection:
        for name in made:
            connection.execute(text(f"DROP TABLE {name}"))
    store.close()
    before = make_as_0_2(address)
    assert {name: made[name] for name in before} == before
    assert made.keys() - before.keys() == {"ended_sessions", "generation", "jobs"}


def test_a_database_is_brought_up_to_date_once_and_then_left_alone(log, address):
    log.record(ENTRY)
    again = OfficeDatabase(address)
    assert len(rows(again)) == 1
    again.close()


def test_several_processes_may_open_a_new_database_at_the_same_time(address):
    program = (
        f"from discreet.serve.office.database import OfficeDatabase as Db; Db({address!r}).close()"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(3)
    ]
    assert [p.communicate(timeout=120)[1] for p in started] == [b""] * 3
    assert [p.returncode for p in started] == [0, 0, 0]


def test_a_database_of_a_newer_version_is_refused(store, address):
    with store.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'v999'"))
    with pytest.raises(DataError, match="newer version of discreet"):
        OfficeDatabase(address)


def test_a_file_that_others_can_reach_is_refused(tmp_path):
    path = tmp_path / "office.db"
    OfficeDatabase(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(DatabaseError, match="chmod 600"):
        OfficeDatabase(path)


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "office.db"
    path.write_text("dear diary " * 200)
    path.chmod(0o600)
    with pytest.raises(DatabaseError, match="cannot use the audit log"):
        OfficeDatabase(path)
    assert path.read_text().startswith("dear diary")


@pytest.mark.parametrize(
    "address", ["mysql://a:hush@b/c", "postgresql://a:hush@b:c/d", "spark://x"]
)
def test_other_databases_are_refused_without_a_password_in_the_text(address):
    with pytest.raises(ParameterError, match="postgresql://user:password@host") as caught:
        OfficeDatabase(address)
    assert "hush" not in str(caught.value)


def test_a_server_that_does_not_answer_is_named_without_its_password():
    with pytest.raises(DatabaseError, match="127.0.0.1") as caught:
        OfficeDatabase("postgresql://ann:hush@127.0.0.1:1/office")
    assert "hush" not in str(caught.value)


def test_nobody_waits_without_end_for_a_lock(address, monkeypatch):
    monkeypatch.setattr(database, "_LOCK_SECONDS", 0.3)
    store, other = OfficeDatabase(address), OfficeDatabase(address)
    began = time.monotonic()
    with other.writing(), pytest.raises(DatabaseError), store.writing():
        pass
    assert time.monotonic() - began < 5
    with store.writing():
        pass
    store.close()
    other.close()


def test_of_two_processes_that_write_all_the_time_both_get_on(tmp_path):
    """SQLite by itself let one of two wait for 0.8 s, and write a sixth of the entries."""
    logs = [AuditLog(OfficeDatabase(tmp_path / "office.db")) for _ in range(2)]
    waits, until = ([], []), time.monotonic() + 1.0

    def write(log, waited):
        while (began := time.monotonic()) < until:
            log.record(ENTRY)
            waited.append(time.monotonic() - began)

    pairs = [pair for pair in zip(logs, waits, strict=True) for _ in range(3)]
    threads = [threading.Thread(target=write, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for log in logs:
        log.close()
        log.store.close()
    assert max(map(max, waits)) < 0.4


def test_a_folder_that_is_gone_is_said(tmp_path):
    (tmp_path / "here").mkdir()
    store = OfficeDatabase(tmp_path / "here" / "office.db")
    shutil.rmtree(tmp_path / "here")
    with pytest.raises(DatabaseError, match="office.db-turn"), store.writing():
        pass
    store.close()


def test_a_missing_driver_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match="discreet.postgres"):
        OfficeDatabase("postgresql://ann@127.0.0.1:1/office")


# Writing


def test_an_entry_comes_back_as_it_was_recorded(log, store):
    log.record(ENTRY)
    (found,) = rows(store)
    expected = replace(ENTRY, time=datetime(2026, 3, 1, 12)).row
    assert dict(zip([c.name for c in AUDIT.columns][1:], found[1:], strict=True)) == expected


def test_times_are_kept_in_utc():
    eastern = datetime.fromisoformat("2026-03-01T07:00:00-05:00")
    assert replace(ENTRY, time=eastern).row["time"] == datetime(2026, 3, 1, 12)


@pytest.mark.parametrize("odd", ["a\0b", "a\r\nb", "\ud800", "x" * 9_000, "🦊'; DROP TABLE audit"])
def test_odd_texts_neither_break_a_line_nor_the_database(log, store, odd):
    log.record(replace(ENTRY, address=odd, dataset=odd, visitor=odd, outcome=odd))
    (found,) = rows(store)
    assert all(text.isprintable() for text in found if isinstance(text, str))
    assert max(len(text) for text in found if isinstance(text, str)) <= 2_000


def test_entries_of_many_threads_and_coroutines_share_transactions(log, store):
    transactions = []
    plain = store.writing
    store.writing = lambda: transactions.append(1) or plain()
    threads = [
        threading.Thread(target=lambda: [log.record(ENTRY) for _ in range(10)]) for _ in range(20)
    ]
    for thread in threads:
        thread.start()

    async def many():
        await asyncio.gather(*(log.record_async(ENTRY) for _ in range(300)))

    asyncio.run(many())
    for thread in threads:
        thread.join()
    assert len(rows(store)) == 500
    assert len(transactions) < 250


def test_whoever_records_learns_that_it_failed(store):
    log = AuditLog(store)
    with store.writing() as connection:
        connection.execute(text("DROP TABLE audit"))
    with pytest.raises(DatabaseError, match="cannot use the audit log"):
        log.record(ENTRY)
    log.close()


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_visitor_who_goes_away_stops_nobody(log, store, is_broken):
    """The entry is written all the same, and those who come after wait for nothing."""
    writing, go_on = threading.Event(), threading.Event()
    plain = store.writing

    def slow():
        writing.set()
        assert go_on.wait(30)
        if is_broken:
            raise DatabaseError("the disk is full.")
        return plain()

    store.writing = slow

    async def visits():
        first = asyncio.create_task(log.record_async(ENTRY))
        while not writing.is_set():
            await asyncio.sleep(0.01)
        second = asyncio.create_task(log.record_async(ENTRY))
        await asyncio.sleep(0.01)
        first.cancel()
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        go_on.set()
        store.writing = plain
        await asyncio.wait_for(log.record_async(ENTRY), 10)

    asyncio.run(visits())
    assert len(rows(store)) in ((1, 2) if is_broken else (3,))


_WRITER = """
import sys, threading
from datetime import datetime
from discreet.serve.office.audit import AuditEntry, AuditLog
from discreet.serve.office.database import OfficeDatabase
log = AuditLog(OfficeDatabase(sys.argv[1]))
lock = threading.Lock()
def write(thread):
    for k in range(10**9):
        name = f"{thread}-{k}"
        log.record(AuditEntry(datetime(2026, 1, 1), name, "d", "1", "", "table", "ok", 1, 1.0))
        with lock:
            sys.stdout.write(name + "\\n")
            sys.stdout.flush()
for k in range(8):
    threading.Thread(target=write, args=(k,)).start()
"""


def test_a_killed_writer_loses_no_entry_that_it_acknowledged(address):
    OfficeDatabase(address).close()
    command = [sys.executable, "-c", _WRITER, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = [process.stdout.readline() for _ in range(200)]
        os.kill(process.pid, signal.SIGKILL)
        said += process.stdout.read().splitlines(keepends=True)
    acknowledged = {line.strip() for line in said if line.endswith("\n")}
    store = OfficeDatabase(address)
    found = {row[2] for row in rows(store)}
    assert len(acknowledged) >= 200
    assert acknowledged <= found
    store.close()
    if "://" not in address:
        with sqlite3.connect(address) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# Reading


def fill(store, *changes):
    with store.writing() as connection:
        made = [replace(ENTRY, time=now(), **change).row for change in changes]
        connection.execute(insert(AUDIT), made)


def test_usage_counts_days_refusals_slow_and_frequent_questions(store):
    fill(
        store,
        {"milliseconds": 10.0},
        {"visitor": "ben", "milliseconds": 30.0},
        {"visitor": "ben", "address": "rows=age", "milliseconds": 80.0},
        {"outcome": "too_many_cells", "address": "rows=town", "milliseconds": 0.0},
        {"outcome": "too_many_cells", "address": "rows=town", "milliseconds": 0.0},
        {"outcome": "unknown_name", "dataset": "survey", "milliseconds": 0.0},
    )
    found = usage(store)
    (day,) = found.days
    assert day.day == now().date()
    assert (day.questions, day.refused, day.visitors, day.milliseconds) == (6, 3, 2, 20.0)
    refusals = (("census", "too_many_cells", 2), ("survey", "unknown_name", 1))
    assert found.refusals == refusals
    assert found.slowest[0] == ("census", "rows=age", 80.0)
    assert found.tables[0] == ("census", ENTRY.address, 2)


def test_usage_looks_back_no_further_than_it_says(store):
    fill(store, {}, {})
    with store.writing() as connection:
        old = now() - timedelta(days=40)
        connection.execute(update(AUDIT).where(AUDIT.c.id == 1).values(time=old))
    assert sum(day.questions for day in usage(store, days=30).days) == 1
    assert sum(day.questions for day in usage(store, days=60).days) == 2
    assert usage(store, days=60).days[0].day == old.date()


def test_the_log_is_exported_as_a_file_that_no_spreadsheet_runs(store):
    fill(store, {"address": '=HYPERLINK("x")', "visitor": "+1+1"}, {"address": 'a,"b"'})
    header, first, second = csv.reader(export_log(store))
    assert tuple(header) == AUDIT_COLUMNS
    assert first[header.index("address")] == '\'=HYPERLINK("x")'
    assert first[header.index("visitor")] == "'+1+1"
    assert second[header.index("address")] == 'a,"b"'
    assert datetime.fromisoformat(first[0]).tzinfo is not None


def test_the_export_can_begin_at_a_moment(store):
    fill(store, {}, {})
    assert len(list(export_log(store, now() + timedelta(seconds=5)))) == 1
    assert len(list(export_log(store, now() - timedelta(seconds=60)))) == 3


def test_old_entries_are_forgotten(store):
    fill(store, {}, {}, {})
    with store.writing() as connection:
        old = now() - timedelta(days=8)
        connection.execute(update(AUDIT).where(AUDIT.c.id < 3).values(time=old))
    assert forget_entries(store, keep_days=7) == 2
    left = rows(store)
    assert [row[7] for row in left] == ["ok", "forgotten"]
    assert left[1][5].startswith("2 entries before ")


def test_the_log_forgets_old_entries_by_itself(store):
    log = AuditLog(store, keep_days=7)
    log.record(replace(ENTRY, time=now() - timedelta(days=8)))
    log.close()
    log = AuditLog(store, keep_days=7)
    log.record(replace(ENTRY, time=now()))
    log.close()
    assert sorted(row[7] for row in rows(store)) == ["forgotten", "ok"]
