"""Connections that one process of a site hands to another."""

import socket
from contextlib import closing

import pytest

from discreet.serve import sharing
from discreet.serve.run import listen
from discreet.serve.sharing import FOLDER_VARIABLE, Door, shared_sockets


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The sockets of this process, with its door open."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    sharing._own.cache_clear()
    listener, door = shared_sockets(listen("127.0.0.1", 0))
    door.listen(5)
    listener.settimeout(5)
    door.settimeout(5)
    with listener, closing(door):
        yield listener, door
    sharing._own.cache_clear()


@pytest.fixture
def other(here, tmp_path):
    """Another process: what comes through its door."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "1.door"))
        door.listen(5)
        door.settimeout(5)
        (tmp_path / "1.load").write_text("1")
        yield door


def visitor(listener):
    return socket.create_connection(listener.getsockname(), timeout=5)


def taken(door):
    """A connection that was handed over."""
    channel, _ = door.accept()
    with channel:
        _, (number,), _, _ = socket.recv_fds(channel, 1, 1)
    return socket.socket(fileno=number)


def test_a_connection_goes_to_the_process_with_the_fewest(here, other, tmp_path):
    listener, _ = here
    kept = []
    for is_handed_on in (False, False, True, False, True):  # the other one has one already
        with visitor(listener) as asking:
            try:
                connection, _ = listener.accept()
                kept.append(connection)
            except BlockingIOError:
                connection = taken(other)
                assert is_handed_on
            else:
                assert not is_handed_on
            connection.sendall(b"hello")
            assert asking.recv(5) == b"hello"
            if is_handed_on:
                connection.close()
    assert (tmp_path / "1.load").read_text() == "00000003"
    for connection in kept:
        connection.close()
    assert sharing._load(sharing._own()) == 0


def test_a_process_that_is_gone_takes_no_connection(here, other, tmp_path):
    listener, _ = here
    other.close()
    (tmp_path / "1.load").write_text("-9")
    with visitor(listener) as asking:
        with listener.accept()[0] as connection:
            connection.sendall(b"hello")
        assert asking.recv(5) == b"hello"
    assert int((tmp_path / "1.load").read_text()) == -9


def test_what_waits_at_a_door_that_closes_goes_elsewhere(here, other):
    listener, door = here
    with visitor(listener) as asking, socket.socket(socket.AF_UNIX) as channel:
        connection, _ = socket.socket.accept(listener)
        channel.connect(str(sharing._own()))
        socket.send_fds(channel, [b"."], [connection.fileno()])
        connection.close()
        door.close()
        with taken(other) as connection:
            connection.sendall(b"hello")
        assert asking.recv(5) == b"hello"


def test_whoever_says_nothing_at_a_door_is_no_connection(here):
    _, door = here
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(str(sharing._own()))
        channel.sendall(b".")
        channel.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionAbortedError):
            door.accept()


def test_a_door_that_was_never_opened_can_be_closed():
    door = Door()
    door.close()
    assert door.fileno() == -1


def test_where_no_address_fits_the_first_process_takes_a_connection(monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, "/" + "deep/" * 25)
    with listen("127.0.0.1", 0) as listening:
        assert shared_sockets(listening) == [listening]
