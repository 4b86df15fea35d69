"""A server that is killed under load: what it answered is in its log, and nothing is broken."""

import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from sqlalchemy import select

from discreet import Secret
from discreet.serve import AUDIT, OfficeDatabase
from discreet.serve.site import start
from tests.serve.process import started

SITE = """
title = "Small"
[accounts]
rate = 0
[datasets.people]
title = "People"
mode = "on-the-fly"
[datasets.people.records]
source = "people.csv"
id = "pid"
codes = "codes.toml"
secret = "keys.secret"
[datasets.people.recipe.tabulate]
margins = "region*sex"
[datasets.people.recipe.protect]
method = "cell-key"
parameters = {D = 5, V = 3, js = 2}
"""
VISITORS = 3  # more of them only keep a server that starts again from the processors
pytestmark = pytest.mark.slow


@pytest.fixture
def site(tmp_path):
    people = "".join(f"{k},{'ABC'[k % 3]},{'fm'[k % 2]}\n" for k in range(300))
    (tmp_path / "people.csv").write_text("pid,region,sex\n" + people)
    lists = '[region]\ncodes = ["A", "B", "C"]\n[sex]\ncodes = ["f", "m"]\n'
    (tmp_path / "codes.toml").write_text(lists)
    Secret.from_file(tmp_path / "keys.secret", create=True)
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


class Load:
    """Visitors who ask without a pause and remember what was answered."""

    def __init__(self, address):
        self.address, self.answered, self.go = address, Counter(), True
        self.failed = []
        self.threads = [
            threading.Thread(target=self._visit, args=(k,), daemon=True) for k in range(VISITORS)
        ]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def _visit(self, number):
        k = 0
        while self.go:
            k += 1
            table = ["rows=sex", "rows=region&columns=sex", f"rows=wish-{number}-{k}"][k % 3]
            try:
                found = httpx.get(f"{self.address}d/people/table?{table}", timeout=60)
            except httpx.HTTPError as error:
                self.failed.append(error)
                time.sleep(0.02)
                continue
            self.answered[table, found.status_code] += 1

    def wait_for(self, number):
        until = time.monotonic() + 60
        while sum(self.answered.values()) < number and time.monotonic() < until:
            time.sleep(0.02)
        assert sum(self.answered.values()) >= number

    def __exit__(self, *error):
        self.go = False
        for thread in self.threads:
            thread.join()


def logged(site):
    """Entries of the audit log by question and whether it was answered."""
    store = OfficeDatabase(site.parent / "office.db")
    with store.reading() as connection:
        found = connection.execute(select(AUDIT.c.address, AUDIT.c.outcome)).all()
    store.close()
    statuses = {"ok": 200, "unknown_name": 400}
    return Counter((address, statuses[outcome]) for address, outcome in found)


def read_again(site, address, process):
    """Change a title, and have the site read again under load."""
    with Load(address) as load:
        load.wait_for(20)
        site.write_text(site.read_text().replace('title = "People"', 'title = "Everybody"'))
        process.send_signal(signal.SIGHUP)
        until = time.monotonic() + 90
        while "Everybody" not in httpx.get(address, timeout=20).text:
            assert time.monotonic() < until
            time.sleep(0.1)
        load.wait_for(sum(load.answered.values()) + 40)
    assert load.failed == []
    assert load.answered - logged(site) == Counter()


def test_a_killed_server_has_written_down_what_it_answered(site):
    """Begun again it goes on, and drops no request while it reads its file."""
    answered = Counter()
    for is_second in (False, True):
        with started("serve", site, "--port", 0) as (process, address):
            if is_second:
                read_again(site, address, process)
            with Load(address) as load:
                load.wait_for(40)
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
        answered += load.answered
        assert {status for _, status in load.answered} == {200, 400}
        found = logged(site)
        assert answered - found == Counter()
        with sqlite3.connect(site.parent / "office.db") as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if not is_second:  # written down, but not yet answered
            assert (found - answered).total() <= 2 * VISITORS


def test_a_killed_worker_is_replaced_and_loses_nothing(site):
    """Workers then drop no request while they are replaced, and end with the site."""
    site.write_text(f"{SITE}\n[server]\nworkers = 2\n")
    with started("serve", site, "--port", 0) as (process, address):
        with Load(address) as load:
            load.wait_for(20)
            workers = _workers(process.pid)
            os.kill(workers[0], signal.SIGKILL)
            load.wait_for(sum(load.answered.values()) + 40)
            until = time.monotonic() + 120
            while len(_workers(process.pid)) < 2 and time.monotonic() < until:
                time.sleep(0.1)
            assert workers[0] not in _workers(process.pid)
            assert len(_workers(process.pid)) == 2
        assert load.answered - logged(site) == Counter()
        read_again(site, address, process)
        workers = _workers(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        until = time.monotonic() + 60
        while any(_command(pid) for pid in workers) and time.monotonic() < until:
            time.sleep(0.1)
        assert workers
        assert not any(_command(pid) for pid in workers)


def test_a_worker_whose_parent_was_killed_while_it_started_ends(monkeypatch):
    """Then another process is its parent from the first; that one is not to be waited for."""
    ended = threading.Event()
    gone = SimpleNamespace(pid=os.getppid() + 1)
    monkeypatch.setattr(start.multiprocessing, "parent_process", lambda: gone)
    monkeypatch.setattr(start.os, "kill", lambda pid, number: ended.set())
    start.stop_with_parent()
    assert ended.wait(10)


def _workers(parent):
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in children if b"spawn_main" in _command(pid)]


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
