"""Wrong states are noticed, refused and said: builds, the office's database, clock, sessions."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import select

from discreet.errors import DataError
from discreet.serve import (
    AUDIT,
    AuditEntry,
    AuditLog,
    InnerTable,
    Office,
    OfficeDatabase,
    Role,
    add_token,
    make_app,
    revoke_token,
    write_build,
)
from discreet.serve.data.inner import read_build
from discreet.serve.office import audit, credentials
from discreet.serve.office.config import Proxies
from discreet.serve.office.credentials import end_session, ended_sessions, is_ended
from tests.office.test_admin import Browser
from tests.serve.client import Client
from tests.serve.sites import inner_table, small_site

TABLE = "/d/once/table?rows=region&columns=sex"
FILES = ("values.npy", "codes0.npy", "inner.json", "checksums.json")


@pytest.fixture
def office(tmp_path):
    found = Office(None, OfficeDatabase(tmp_path / "office.db"))
    yield found
    found.close()


def outcomes(store):
    with store.reading() as connection:
        return list(connection.execute(select(AUDIT.c.outcome).order_by(AUDIT.c.id)).scalars())


# Builds


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_of_a_build_is_refused(tmp_path, name):
    place = write_build(replace(inner_table(), made_from="abc"), tmp_path / "once")
    content = bytearray((place / name).read_bytes())
    content[-9] ^= 4
    (place / name).write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"damaged after it was built.*Build it again"):
        read_build(tmp_path / "once", "abc")


def test_a_missing_column_is_named(tmp_path):
    place = write_build(inner_table(), tmp_path / "once")
    (place / "codes1.npy").unlink()
    with pytest.raises(DataError, match=r"codes1\.npy"):
        InnerTable.read(place)


def test_without_checksums_the_flipped_bit_would_be_served(tmp_path):
    """Builds of version 0.2 have none; they are read as they are."""
    place = write_build(inner_table(), tmp_path / "once")
    values = np.load(place / "values.npy")
    values[0] += 4096
    np.save(place / "values.npy", values)
    (place / "checksums.json").unlink()
    assert InnerTable.read(place).values.sum() == inner_table().values.sum() + 4096


# The office's database


def test_a_database_that_is_removed_stops_the_tables(office, tmp_path):
    client = Client(make_app(small_site(), office))
    assert client.get(TABLE).status_code == 200
    assert client.get("/ready").json()["failing"] == []
    (tmp_path / "office.db").unlink()
    office._looked = 0.0
    assert client.get(TABLE).status_code == 503
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()["failing"]) == (503, ["store"])
    assert client.get("/live").status_code == 200


def test_a_backup_does_not_revive_a_revoked_token(office, tmp_path):
    token = add_token(office.store, "eve", Role.analyst)
    backup = tmp_path / "backup.db"
    with (
        closing(sqlite3.connect(tmp_path / "office.db")) as source,
        closing(sqlite3.connect(backup)) as target,
    ):
        source.backup(target)
    client = Client(make_app(small_site(), office))
    bearer = {"Authorization": f"Bearer {token}"}
    assert client.get(TABLE, headers=bearer).status_code == 200
    revoke_token(office.store, "eve")
    office.refresh()
    assert client.get(TABLE, headers=bearer).status_code == 401
    backup.replace(tmp_path / "office.db")
    assert client.get(TABLE).status_code == 503
    assert client.get(TABLE, headers=bearer).status_code in (401, 503)


@pytest.mark.parametrize("use", [OfficeDatabase.reading, OfficeDatabase.writing])
@pytest.mark.parametrize("steps", [1, 10])
def test_a_database_that_was_set_back_is_noticed(office, steps, use):
    before = office.store._generation
    with office.store.writing():
        pass
    assert office.store._generation == before + 1
    office.store._generation += steps  # as if so many transactions were gone
    for _ in range(3):  # what is refused does not count up either
        with pytest.raises(audit.DatabaseError, match="set back"), use(office.store):
            pass


# The clock


@pytest.mark.parametrize(("days", "left"), [(500, 4), (5, 2)])
def test_a_clock_far_ahead_erases_nothing(office, monkeypatch, days, left):
    present = audit.now()
    for age in (20, 12, 1):
        entry = AuditEntry(present - timedelta(days=age), "v", "d", "1", "a", "table", "ok", 1, 1.0)
        office.audit.record(entry)
    log = AuditLog(office.store, keep_days=10)
    monkeypatch.setattr(audit, "now", lambda: present + timedelta(days=days))
    log.record(AuditEntry(audit.now(), "v", "d", "1", "a", "table", "ok", 1, 1.0))
    log.close()
    found = outcomes(office.store)
    assert found.count("ok") == left
    assert ("forgotten" in found) == (left == 2)  # what was removed leaves a mark


def test_a_clock_far_ahead_erases_nothing_after_a_restart_either(office, monkeypatch):
    """Entries of the wrong clock are there by then: the last one is not far from the clock."""
    present = audit.now()
    for age in range(60, 0, -1):
        entry = AuditEntry(present - timedelta(days=age), "v", "d", "1", "a", "table", "ok", 1, 1.0)
        office.audit.record(entry)
    monkeypatch.setattr(audit, "now", lambda: present + timedelta(days=500))
    for _ in range(2):
        log = AuditLog(office.store, keep_days=50)
        log.record(AuditEntry(audit.now(), "v", "d", "1", "a", "table", "ok", 1, 1.0))
        log.close()
    assert outcomes(office.store).count("ok") == 62
    monkeypatch.setattr(audit, "now", lambda: present)
    log = AuditLog(office.store, keep_days=50)
    log.record(AuditEntry(present, "v", "d", "1", "a", "table", "ok", 1, 1.0))
    log.close()
    assert outcomes(office.store).count("ok") == 53


def test_so_many_entries_are_kept_whatever_the_clock_says(office, monkeypatch):
    log = AuditLog(office.store, keep_days=400, keep_entries=5)
    present = audit.now()
    for step in range(8):  # a clock that goes back, too
        moment = present - timedelta(days=step)
        entry = AuditEntry(moment, f"v{step}", "d", "1", "a", "table", "ok", 1, 1.0)
        log.record(entry)
        log._next_cleaning = present
    log.close()
    with office.store.reading() as connection:
        asked = select(AUDIT.c.visitor, AUDIT.c.address).order_by(AUDIT.c.id)
        found = connection.execute(asked).all()
    assert [visitor for visitor, _ in found if visitor[0] == "v"][-1] == "v7"
    assert "v0" not in {visitor for visitor, _ in found}
    assert len(found) <= 6
    assert found[-1].address.endswith("entries beyond 5")


def test_what_fails_while_entries_are_forgotten_stops_no_answer(office, caplog):
    log = AuditLog(office.store, keep_days=10**7)  # no calendar goes back so far
    for _ in range(2):
        log.record(AuditEntry(audit.now(), "v", "d", "1", "a", "table", "ok", 1, 1.0))
        log._next_cleaning = audit.now()
    log.close()
    assert outcomes(office.store).count("ok") == 2
    assert "OverflowError while old entries were forgotten." in caplog.text


# Sessions and forms


def test_sign_out_ends_the_session_wherever_its_cookie_is(office):
    browser = Browser(make_app(small_site(), office))
    assert browser.sign_in(add_token(office.store, "ann", Role.custodian)).status_code == 303
    copied = dict(browser.cookies)
    assert browser.get("/admin").status_code == 200
    browser.post("/sign-out", {"form": browser.mark("/admin")})
    browser.cookies.update(copied)
    assert browser.get("/admin").status_code == 401
    assert browser.sign_in("discreet_x_y").status_code == 401
    assert outcomes(office.store) == ["signed_in", "signed_out", "sign_in_failed"]


def test_shorter_sessions_revive_none_that_was_ended(office, monkeypatch):
    end_session(office.store, "1:2")
    later = audit.now() + timedelta(hours=5)
    monkeypatch.setattr(credentials, "now", lambda: later)
    assert is_ended("1:2", ended_sessions(office.store, hours=1))


@pytest.mark.parametrize(
    ("origin", "status"), [("http://here", 303), ("http://evil.example", 403), ("null", 403)]
)
def test_older_browsers_are_told_apart_by_their_origin(office, origin, status):
    browser = Browser(make_app(small_site(), office))
    fields = {"form": browser.mark("/sign-in"), "token": add_token(office.store, "a", Role.viewer)}
    headers = {"Origin": origin, **browser._headers()}
    found = browser.client.request("POST", "/sign-in", data=fields, headers=headers)
    assert found.status_code == status


def test_two_ways_to_say_where_a_request_ends_close_the_connection(office):
    client = Client(make_app(small_site(), office))
    headers = {"Content-Length": "3", "Transfer-Encoding": "chunked"}
    answer = client.request("GET", TABLE, headers=headers)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("192.0.2.7:4711", "192.0.2.7"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("192.0.2.7", "192.0.2.7"),
    ],
)
def test_ports_in_forwarded_addresses_are_left_out(written, meant):
    assert Proxies(["10.0.0.1"]).client("10.0.0.1", {"x-forwarded-for": written}) == meant
