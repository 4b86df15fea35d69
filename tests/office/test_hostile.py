"""Visitors who mean ill: odd requests, slow connections, paths and headers with tricks."""

import asyncio
import itertools
import logging
import queue
import socket
import time

import httpx
import pytest

from discreet.serve import Office, TimeoutProtocol, make_app, run, serving
from discreet.serve.guard import LARGEST_BODY, LONGEST_QUERY
from discreet.serve.refusals import with_own_cookies
from tests.office import fuzz
from tests.serve.client import Client
from tests.serve.sites import small_site

REQUESTS = 2_000


def sent(app, requests, secret_counts):
    """Every request with what is wrong with its answer, where something is."""

    async def all_of_them():
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            for method, path, headers, content in requests:
                answer = await client.request(method, path, headers=headers, content=content)
                faults = fuzz.faults(answer, secret_counts)
                if faults:
                    yield method, path, headers, content, faults

    async def collected():
        return [fault async for fault in all_of_them()]

    return asyncio.run(collected())


def test_odd_requests_break_nothing_and_learn_nothing(file_store, caplog):
    site, secret_counts = fuzz.recognisable_site()
    assert len(secret_counts) > 30
    office = Office(None, file_store)
    app = make_app(site, office)
    office.rate_limiter.rate = 0
    with caplog.at_level(logging.DEBUG, "discreet"):
        found = sent(app, itertools.islice(fuzz.requests(1), REQUESTS), secret_counts)
    office.close()
    assert found == []
    assert not fuzz.numbers(caplog.text) & secret_counts


def test_the_search_for_true_counts_finds_them():
    """The fuzz test is worth something: a table without protection is caught."""
    from dataclasses import replace

    from discreet.release import Cube

    site, secret_counts = fuzz.recognisable_site()
    live = site.datasets["live"]
    plain = live.source.cube

    def leaky(details, unit):
        cube = plain(details, unit)
        true = next(iter(secret_counts))
        return replace(cube, values=cube.values * 0 + true)

    live.source.cube = leaky
    assert isinstance(plain(("sex",), "count"), Cube)
    for ending in ("", ".csv", ".xlsx", ".json", ".parquet"):
        path = f"/d/live/table{ending}?rows=sex"
        (fault,) = sent(make_app(site), [("GET", path, {}, None)], secret_counts)
        assert "true counts" in fault[-1][0]


def test_numbers_are_found_however_they_are_written():
    text = "<td>54,321</td> 65\u00a0432;76 543 87654,\n98.765 &quot;12345&quot; a23456b x-34567"
    assert fuzz.numbers(text) >= {54321, 65432, 76543, 87654, 98765, 12345}
    assert not fuzz.numbers(text) & {23456, 34567}


# Paths, headers and sizes


@pytest.mark.parametrize(
    "path",
    [
        "/static/../pages.py",
        "/static/..%2fpages.py",
        "/static/%2e%2e/%2e%2e/app.py",
        "/static/....//....//app.py",
        "/static//etc/passwd",
        "/static/%00",
        "/..%2f..%2fetc%2fpasswd",
        "/d/..%2f..%2fetc/table?rows=sex",
        "/d/once%2f..%2flive/table?rows=sex",
        "/d/once/table.csv%0d%0aX-Bad:%201?rows=sex",
    ],
)
def test_tricks_with_paths_lead_nowhere(client, path):
    found = client.get(path)
    assert found.status_code in (400, 404, 405)
    assert "root:" not in found.text
    assert "import " not in found.text
    assert "x-bad" not in found.headers


@pytest.fixture(scope="module")
def client():
    return Client(make_app(small_site()))


@pytest.mark.parametrize(
    "path",
    [
        "/d/once/table?rows=sex&lang=nb%0d%0aSet-Cookie:%20a=b",
        "/d/once/table?rows=sex&edit=%0d%0aLocation:%20//evil.example",
        "/d/once/table?sort=%0d%0aX-Bad:1&rows=sex",
        "/d/once/table.csv?rows=sex&where.age=%0d%0aX-Bad:1",
        "/api/v1/datasets/once/table?rows=%0d%0aX-Bad:1",
    ],
)
def test_parameters_never_become_headers(client, path):
    found = client.get(path)
    assert found.status_code < 500
    assert "x-bad" not in found.headers
    assert "a=b" not in found.headers.get("set-cookie", "")
    location = found.headers.get("location", "")
    assert not location.startswith(("//", "http"))
    assert "\n" not in location


@pytest.mark.parametrize("host", ["evil.example", 'x"><script>alert(1)</script>', "a\tb", ""])
def test_a_host_that_is_made_up_is_never_shown_as_it_is(client, host):
    for path in ("/", "/d/once/table?rows=sex", "/api/v1", "/nowhere"):
        found = client.get(path, headers={"Host": host})
        assert found.status_code < 500
        assert "<script>alert" not in found.text
        assert not found.headers.get("location", "").startswith("http")


def test_requests_have_a_largest_size(client):
    assert client.get("/d/once/table?rows=" + "x" * LONGEST_QUERY).status_code == 414
    huge = b"{" + b" " * LARGEST_BODY
    path = "/api/pxweb/v2/tables/once/data"
    assert client.request("POST", path, content=huge).status_code == 413

    async def endless():
        for _ in range(100):
            yield b" " * (LARGEST_BODY // 50)

    found = client.request("POST", path, content=endless())
    assert found.status_code in (400, 413)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost:1@evil"])
def test_a_site_that_names_no_address_repeats_no_host_but_a_local_one(host):
    client = Client(make_app(small_site(address="")))
    paths = ("/d/once/table?rows=sex", "/api/v1", "/d/once/table.csv?rows=sex", "/api/v1/openapi")
    for path in paths:
        assert "evil" not in client.get(path, headers={"Host": host}).text
    for local in ("localhost", "127.0.0.1:8000", "[::1]:8000"):
        found = client.get(paths[0], headers={"Host": local}).text
        assert f"http://{local}/d/once/table?rows=sex" in found


@pytest.mark.parametrize("piece", ["\\", "\\1", ";", "a=b;", "discreet_session=;", 'x="'])
@pytest.mark.parametrize("path", ["/", "/d/once/table?rows=sex", "/api/v1", "/nowhere", "/health"])
def test_cookies_are_read_in_no_time(client, path, piece):
    cookie = 'discreet_session="' + piece * (30_000 // len(piece)) + '"; lang=nb'
    began = time.process_time()
    found = client.get(path, headers={"Cookie": cookie})
    assert time.process_time() - began < 1
    assert found.status_code in (200, 404)


def test_cookies_of_others_are_dropped_and_the_first_of_a_name_counts():
    headers = [
        (b"cookie", b"theirs=1; discreet_session=a.B-_; lang=nb;lang=en"),
        (b"host", b"here"),
        (b"cookie", b'discreet_session="c"; lang=no; discreet_sessions=d'),
    ]
    kept = [(b"host", b"here"), (b"cookie", b"discreet_session=a.B-_; lang=nb")]
    assert with_own_cookies(headers) == kept
    assert with_own_cookies([(b"cookie", b"lang=" + b"x" * 401)]) == []


def test_pages_can_be_read_and_nothing_else(client):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert client.request(method, "/d/once/table?rows=sex").status_code == 405


# Connections


@pytest.fixture
def hasty(monkeypatch):
    """A server that loses patience within a second."""
    monkeypatch.setattr(TimeoutProtocol, "request_seconds", 0.6)
    monkeypatch.setattr(TimeoutProtocol, "answer_seconds", 0.6)
    monkeypatch.setattr(run, "_IDLE_SECONDS", 1)
    with serving(make_app(small_site())) as address:
        yield int(address.rsplit(":", 1)[1].rstrip("/"))


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def closed_after(line):
    """Seconds until the server closes a connection."""
    began = time.monotonic()
    line.settimeout(20)
    try:
        while line.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - began


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"GET /health HTT",
        b"GET /health HTTP/1.1\r\nHost: here\r\nX-A: ",
        b"POST /sign-in HTTP/1.1\r\nHost: here\r\nContent-Length: 999\r\n\r\nform=",
    ],
)
def test_a_request_that_never_ends_is_cut_off(hasty, start):
    with connected(hasty) as line:
        line.sendall(start)
        assert 0.3 < closed_after(line) < 10


def drip(line):
    for _ in range(100):
        line.sendall(b"X-A: b\r\n")
        time.sleep(0.05)


def test_a_request_that_comes_drop_by_drop_is_cut_off(hasty):
    with connected(hasty) as line:
        line.sendall(b"GET /health HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):
            drip(line)


def test_slow_visitors_do_not_slow_others_down(hasty):
    lines = [connected(hasty) for _ in range(100)]
    for line in lines:
        line.sendall(b"GET /d/once/table?rows=sex HTTP/1.1\r\nHost:")
    found = httpx.get(f"http://127.0.0.1:{hasty}/d/once/table?rows=sex", timeout=10)
    assert found.status_code == 200
    for line in lines:
        line.close()


def test_a_visitor_who_never_reads_is_cut_off(hasty, monkeypatch):
    lost, ended = queue.Queue(), TimeoutProtocol.connection_lost

    def connection_lost(self, error):
        lost.put(self.client[1])
        ended(self, error)

    monkeypatch.setattr(TimeoutProtocol, "connection_lost", connection_lost)
    asked = b"GET /d/once/table?rows=region&columns=age HTTP/1.1\r\nHost: here\r\n\r\n"
    with connected(hasty) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        line.settimeout(2)
        try:
            for _ in range(2_000):
                line.sendall(asked)
        except (TimeoutError, ConnectionError):
            pass
        while lost.get(timeout=60) != line.getsockname()[1]:  # busy machines fill buffers late
            pass


def test_a_patient_visitor_keeps_the_connection(hasty):
    with connected(hasty) as line:
        for _ in range(4):
            line.sendall(b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):  # head and body may come one after the other
                answer += line.recv(65_536)
                assert answer.startswith(b"HTTP/1.1 200")
            time.sleep(0.25)


def test_a_head_that_is_too_long_is_refused(hasty):
    with connected(hasty) as line:
        try:
            line.sendall(b"GET /health HTTP/1.1\r\nX-A: " + b"x" * 200_000 + b"\r\n\r\n")
            assert line.recv(65_536).startswith(b"HTTP/1.1 4")
        except ConnectionError:
            pass


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /health HTTP/1.1\nHost: here\n Folded: yes\n\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: here\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /\xff HTTP/1.1\r\nHost: here\r\n\r\n",
    ],
)
def test_what_is_no_proper_request_breaks_nothing(hasty, request_line):
    with connected(hasty) as line:
        line.sendall(request_line)
        closed_after(line)
    assert httpx.get(f"http://127.0.0.1:{hasty}/health").status_code == 200


def test_the_server_does_not_say_what_it_is_made_of(hasty):
    found = httpx.get(f"http://127.0.0.1:{hasty}/health")
    assert "server" not in found.headers
