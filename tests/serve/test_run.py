"""Sockets, addresses, and a server that really answers."""

import json
import urllib.request

import pytest

from discreet.errors import DataError
from discreet.serve import make_app, serving
from discreet.serve.run import address_of, listen


def test_a_server_answers_over_http_and_lets_its_port_go(site):
    with serving(make_app(site)) as address:
        with urllib.request.urlopen(f"{address}health", timeout=20) as response:
            found = json.load(response)
        port = int(address.rsplit(":", 1)[1].rstrip("/"))
    assert found["status"] == "ok"
    listen("127.0.0.1", port).close()


def test_a_port_that_is_taken_is_a_clear_error():
    said = pytest.raises(DataError, match="Choose another with --port")
    with listen("127.0.0.1", 0) as taken, said:
        listen("127.0.0.1", taken.getsockname()[1])


def test_the_address_can_be_opened():
    with listen("0.0.0.0", 0) as everywhere:
        assert address_of(everywhere).startswith("http://127.0.0.1:")
    with listen("127.0.0.1", 0) as here:
        assert address_of(here) == f"http://127.0.0.1:{here.getsockname()[1]}/"
