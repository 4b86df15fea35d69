"""What an operator sees and relies on: metrics, log, limits on connections, reload, faults."""

import ast
import logging
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

import discreet.serve
from discreet.serve import (
    Office,
    OfficeDatabase,
    Refusal,
    Site,
    SiteConfig,
    TimeoutProtocol,
    guard,
    make_app,
    serving,
)
from discreet.serve.office import database
from discreet.serve.office import office as office_room
from discreet.serve.run import most_connections
from discreet.serve.site.config import ServerConfig
from tests.serve.client import Client
from tests.serve.sites import once, small_site
from tests.serve.test_site_files import build_all, folder, write, written  # noqa: F401 -- a fixture

TABLE = "/d/once/table?rows=region&columns=sex"
SERVE = Path(discreet.serve.__file__).parent


@pytest.fixture(autouse=True)
def _nothing_logged_before():
    guard._last_logged.clear()


# Metrics

SAMPLE = re.compile(
    r'(?P<name>[a-z_]+)(\{(?P<labels>([a-z]+="([^"\\]|\\.)*",?)*)\})? (?P<value>\S+)'
)


def parsed(text):
    """Samples by name and labels, as strictly as Prometheus reads them."""
    assert text.endswith("\n")
    kinds, found = {}, {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds, f"{name} has two heads"
            assert kind in ("counter", "gauge", "histogram")
            kinds[name] = kind
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name = match["name"]
        family = re.sub("_(bucket|sum|count)$", "", name) if name not in kinds else name
        assert list(kinds)[-1] == family, f"{line} stands under another head"
        assert kinds[family] != "counter" or name.endswith("_total")
        labels = dict(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', match["labels"] or ""))
        key = (name, tuple(sorted((k, v) for k, v in labels.items() if k != "process")))
        assert key not in found, f"{line} comes twice"
        found[key] = float(match["value"])
    return found


@pytest.fixture
def watched(tmp_path):
    server = ServerConfig(metrics=("127.0.0.1",))
    office = Office(None, OfficeDatabase(tmp_path / "office.db"))
    site = Site(SiteConfig(server=server), small_site().datasets)
    yield Client(make_app(site, office)), office
    office.close()


def test_metrics_count_what_was_answered_and_refused(watched):
    client, _ = watched
    for _ in range(2):
        client.get(TABLE)
    client.get("/d/once/table?rows=nowhere")
    client.get("/d/once/table.csv?rows=nowhere")
    found = parsed(client.get("/metrics").text)
    assert found["discreet_requests_total", (("kind", "table"), ("status", "200"))] == 2
    assert found["discreet_refusals_total", (("code", "unknown_name"),)] == 2
    assert found["discreet_request_seconds_count", (("kind", "table"),)] == 3
    buckets = [v for (n, k), v in found.items() if n.endswith("_bucket") and ("kind", "table") in k]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 3
    assert found["discreet_failing", (("what", "store"),)] == 0
    assert found["discreet_jobs", (("state", "waiting"),)] == 0


def test_the_reader_of_metrics_is_strict(watched):
    text = watched[0].get("/metrics").text
    for spoilt in (
        text[:-1],
        text.replace('"}', "}", 1),
        text + text,
        text.replace("TYPE", "TIPE"),
    ):
        with pytest.raises(AssertionError):
            parsed(spoilt)


def test_metrics_tell_neither_questions_nor_visitors_nor_figures(watched):
    client, _ = watched
    page = client.get(TABLE).text
    text = client.get("/metrics").text
    assert not re.search("region|sex|127\\.0", text)
    figures = {int(f) for f in re.findall(r"<td[^>]*>\D*(\d{3,})\D*</td>", page)}
    assert len(figures) > 3
    values = {line.rpartition(" ")[2] for line in text.splitlines() if line[0] != "#"}
    assert not figures & {float(value) for value in values}


@pytest.mark.parametrize("metrics", [(), ("192.0.2.0/24",)])
def test_metrics_are_off_unless_an_address_is_named(metrics):
    config = SiteConfig(server=ServerConfig(metrics=metrics))
    client = Client(make_app(Site(config, {"once": once()})))
    assert client.get("/metrics").status_code == 404


def test_a_store_that_is_gone_shows(watched, tmp_path):
    client, office = watched
    (tmp_path / "office.db").unlink()
    office._looked = 0.0
    found = parsed(client.get("/metrics").text)
    assert found["discreet_failing", (("what", "store"),)] == 1


# The log


def codes_of_refusals():
    """Every code that is written in the program, with its status where that is plain."""
    found = {}
    for path in SERVE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(
                getattr(call, "func", None), "id", getattr(getattr(call, "func", None), "attr", "")
            )
            if name not in ("Refusal", "refusal") or not call.args:
                continue
            if isinstance(call.args[0], ast.Constant):
                status = call.args[3] if len(call.args) > 3 else None
                plain = status.value if isinstance(status, ast.Constant) else 400
                found[call.args[0].value] = plain if isinstance(plain, int) else 400
    return found


def test_every_class_of_refusal_is_logged_and_counted_at_a_limited_rate(caplog):
    codes = codes_of_refusals()
    assert len(codes) > 30
    assert {"busy", "too_often", "queue_full", "records_changed", "too_expensive"} <= codes.keys()
    app = make_app(small_site())

    def fail(code: str, status: int) -> None:
        raise Refusal(code, "No.", "Another.", status)

    app.add_api_route("/fail", fail)
    client, caplog = Client(app), caplog
    app.state.office.rate_limiter.rate = 0
    with caplog.at_level(logging.INFO, "discreet.serve"):
        for _ in range(3):
            for code, status in codes.items():
                client.get(f"/fail?code={code}&status={status}")
    lines = [r.getMessage() for r in caplog.records if "requests are refused" in r.getMessage()]
    assert sorted(line.split()[3] for line in lines) == sorted(codes)
    assert app.state.counts.refusals == dict.fromkeys(codes, 3)
    levels = {r.getMessage().split()[3]: r.levelname for r in caplog.records if "refused" in r.msg}
    assert (levels["busy"], levels["too_often"], levels["unknown_code"]) == (
        "ERROR",
        "WARNING",
        "INFO",
    )


def test_a_refusal_that_a_page_shows_itself_is_logged_too(caplog):
    with caplog.at_level(logging.INFO, "discreet.serve"):
        Client(make_app(small_site())).get("/d/once/table?rows=nowhere")
    assert "requests are refused: unknown_name" in caplog.text


# Connections

PACE = 0.005  # a connection that finds no place at the socket is tried again after a second
SLOW = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
from discreet.cli import main
sys.argv[1:] = ["serve", sys.argv[1], "--port", "0"]
main(sys.argv[1:])
"""


def test_limits_follow_the_process(monkeypatch):
    for files, most in ((1024, 524), (300, 80), (10**6, 2_000), (resource.RLIM_INFINITY, 2_000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert most_connections() == most


def test_a_subscriber_of_ipv6_has_one_share_of_connections():
    peers = ["2001:db8::1", "2001:db8::2", "2001:db9::1", "::ffff:192.0.2.1", "192.0.2.1", ""]
    subscriber = TimeoutProtocol.__dict__["_subscriber"].func
    networks = [subscriber(SimpleNamespace(_peer=peer)) for peer in peers]
    assert networks[0] == networks[1] != networks[2]
    assert networks[3] == networks[4]


@pytest.fixture(scope="module")
def few_files(tmp_path_factory):
    """A server that may open 300 files; gives its process, its port and its log."""
    place = written(tmp_path_factory.mktemp("few"))
    build_all(place)
    log = (place / "log").open("w+")
    command = [sys.executable, "-c", SLOW, str(place / "site.toml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    for line in process.stdout:
        if found := re.search(r"answers at http://[^:]+:(\d+)/", line):
            break
    yield process, int(found[1]), log
    process.send_signal(signal.SIGINT)
    process.wait(30)
    process.stdout.close()
    log.close()


def test_slow_connections_beyond_the_files_leave_the_service_there(few_files):
    """400 slow connections of one address, 300 files: another address is answered at once."""
    process, port, log = few_files
    slow = []
    for _ in range(400):
        line = socket.create_connection(("127.0.0.1", port), timeout=10)
        line.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n")
        slow.append(line)
        time.sleep(PACE)
    began = time.monotonic()
    other = socket.create_connection(
        ("127.0.0.1", port), timeout=10, source_address=("127.0.0.2", 0)
    )
    other.sendall(b"GET /live HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    answer = other.recv(1_000)
    seconds = time.monotonic() - began
    files = len(os.listdir(f"/proc/{process.pid}/fd"))
    for line in [*slow, other]:
        line.close()
    assert answer.startswith(b"HTTP/1.1 200")
    assert seconds < 5
    assert files < 200
    log.flush()
    log.seek(0)
    text = log.read()
    assert text.count("too_many_connections") == 1
    assert len(text) < 2_000


def test_slow_connections_of_many_addresses_take_no_file_that_is_needed(few_files):
    """400 slow connections of 25 addresses, each within its share, and the log stays short."""
    process, port, log = few_files
    with ExitStack() as slow:
        for k in range(400):
            source = (f"127.0.1.{1 + k % 25}", 0)
            line = slow.enter_context(
                socket.create_connection(("127.0.0.1", port), timeout=10, source_address=source)
            )
            line.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n")
            time.sleep(PACE)
        address = f"http://127.0.0.1:{port}/live"
        assert urllib.request.urlopen(address, timeout=10).status == 200
        assert len(os.listdir(f"/proc/{process.pid}/fd")) < 250
    log.flush()
    log.seek(0)
    text = log.read()
    assert text.count("no_connections_left") == 1
    assert len(text) < 2_000


# Reload


@pytest.mark.parametrize("is_mended", [True, False])
def test_a_request_on_its_way_is_answered_while_the_server_stops(is_mended, monkeypatch):
    """With the control: uvicorn closes a connection whose request it has not read yet."""
    if not is_mended:
        monkeypatch.setattr(TimeoutProtocol, "shutdown", H11Protocol.shutdown)
    with ExitStack() as server:
        address = server.enter_context(serving(make_app(small_site())))
        port = int(address.rstrip("/").rpartition(":")[2])
        line = socket.create_connection(("127.0.0.1", port), timeout=10)
        time.sleep(0.3)
        stopping = threading.Thread(target=server.close)
        stopping.start()
        time.sleep(0.3)
        try:
            line.sendall(b"GET /live HTTP/1.1\r\nHost: h\r\n\r\n")
            answer = line.recv(10_000)
        except OSError:
            answer = b""
        line.close()
        stopping.join()
    assert answer.startswith(b"HTTP/1.1 200") == is_mended
    assert (b"connection: close" in answer.lower()) == is_mended


# Faults of the store


def test_a_full_disk_is_said(tmp_path, monkeypatch):
    office = Office(None, OfficeDatabase(tmp_path / "office.db"))
    monkeypatch.setattr(OfficeDatabase, "free_bytes", lambda self: 1_000.0)
    answer = Client(make_app(small_site(), office)).get("/ready")
    assert (answer.status_code, answer.json()["failing"]) == (503, ["disk"])
    office.close()


def test_whoever_watches_the_site_does_not_wait_for_a_locked_store(tmp_path, monkeypatch):
    monkeypatch.setattr(office_room, "_PATIENCE", 0.1)
    monkeypatch.setattr(database, "_LOCK_SECONDS", 1.5)
    office = Office(None, OfficeDatabase(tmp_path / "office.db"))
    with closing(sqlite3.connect(tmp_path / "office.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert [office.failures() for _ in range(3)] == [["store"]] * 3
        assert time.monotonic() - began < 1
        other.execute("ROLLBACK")
    office._look.join()
    office._looked = 0.0
    assert office.failures() == []
    office.close()


def test_a_locked_store_is_said_and_passes(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(database, "_LOCK_SECONDS", 0.1)
    office = Office(None, OfficeDatabase(tmp_path / "office.db"))
    client = Client(make_app(small_site(), office))
    with closing(sqlite3.connect(tmp_path / "office.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert client.get(TABLE).status_code == 503
        assert client.get("/ready").json()["failing"] == ["store"]
        assert "requests are refused: unavailable" in caplog.text
        other.execute("ROLLBACK")
    office._looked = 0.0
    assert client.get(TABLE).status_code == 200
    assert client.get("/ready").status_code == 200
    office.close()
