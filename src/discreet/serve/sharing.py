"""Connections shared by the processes of a site: a new one goes to the process that has the fewest.

The kernel wakes every process that waits on a socket, and the first one up takes what has come. Of
50 visitors without a pause one of two processes had 42, who waited five times as long as the rest.
"""

from __future__ import annotations

import math
import os
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

try:
    import fcntl
    from multiprocessing.reduction import DupFd
except ImportError:  # Windows has none of these, and shares no connections
    fcntl = None  # type: ignore[assignment]

FOLDER_VARIABLE = "DISCREET_PROCESSES"
"""The environment variable that names the folder in which the processes of a site meet."""
_SECONDS = 1.0  # that one process waits for another one to take, or to hand over
_LONGEST_FOLDER = 90  # bytes; the shortest addresses (104) hold it with a process's number
Accepted = tuple[socket.socket, Any]


def shared_sockets(listening: socket.socket) -> list[socket.socket]:
    """What the processes of a site listen on.

    Windows hands no open connection to another process, and where temporary files lie too deep in
    the tree, no process has an address: there the first one up takes a connection.
    """
    if fcntl is None or len(os.fsencode(os.environ[FOLDER_VARIABLE])) > _LONGEST_FOLDER:
        return [listening]
    return [SharedListener(fileno=listening.detach()), Door()]


class SharedListener(socket.socket):
    """The socket that all processes of a site wait on."""

    def accept(self) -> Accepted:
        """The next connection, unless it goes to a process that has fewer."""
        connection, address = super().accept()
        if _hand_over(connection, fewer_than=_load(_own())):
            raise BlockingIOError  # none is there for this process
        _count(_own(), 1)
        return _Counted(fileno=connection.detach()), address

    def __reduce__(self) -> tuple[Any, ...]:
        """How a process that is started gets it."""
        return _listener_of, (DupFd(self.fileno()),)


def _listener_of(handed: Any) -> SharedListener:
    return SharedListener(fileno=handed.detach())


class Door(socket.socket):
    """The socket at which a process takes connections that another one accepted.

    It is opened when the process is ready to answer. What still waits when it is closed goes to
    the other processes.
    """

    def __init__(self) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._is_open = False

    def listen(self, backlog: int = 100) -> None:
        """Let the other processes know that this one is there."""
        _own().unlink(missing_ok=True)  # of a process that was killed and had the same number
        self.bind(str(_own()))
        super().listen(backlog)
        _load_file(_own()).write_bytes(b"0")
        self._is_open = True

    def accept(self) -> Accepted:
        """The next connection that was handed over."""
        channel, _ = super().accept()
        with channel:
            channel.settimeout(_SECONDS)
            try:
                _, (number,), _, _ = socket.recv_fds(channel, 1, 1)
                connection = _Counted(fileno=number)
                return connection, connection.getpeername()
            except (OSError, ValueError) as error:  # whoever asked, or handed it over, is gone
                raise ConnectionAbortedError from error

    def close(self) -> None:
        """Be handed nothing more."""
        if self._is_open:
            self._is_open = False
            for path in (_own(), _load_file(_own())):
                path.unlink(missing_ok=True)
            self.setblocking(False)
            with suppress(OSError):
                while True:
                    connection, _ = self.accept()
                    _hand_over(connection)
                    connection.close()
        super().close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Every process has a door of its own."""
        return Door, ()


class _Counted(socket.socket):
    """A connection that counts as long as it is open."""

    def close(self) -> None:
        if self.fileno() >= 0:
            _count(_own(), -1)
        super().close()

    def __del__(self) -> None:
        self.close()


def _hand_over(connection: socket.socket, fewer_than: float = math.inf) -> bool:
    """Give a connection to another process, that with the fewest; False where none takes it."""
    loads = [(_load(door), door) for door in _own().parent.glob("*.door") if door != _own()]
    for load, door in sorted(loads):
        if load < fewer_than:
            # Counted now: those that wait at a door are more than its process knows of.
            _count(door, 1)
            with suppress(OSError), socket.socket(socket.AF_UNIX) as channel:
                channel.settimeout(_SECONDS)
                channel.connect(str(door))
                socket.send_fds(channel, [b"."], [connection.fileno()])
                connection.close()
                return True
            _count(door, -1)
    return False


@cache
def _own() -> Path:
    """The door of this process."""
    return Path(os.environ[FOLDER_VARIABLE]) / f"{os.getpid()}.door"


def _load_file(door: Path) -> Path:
    return door.with_suffix(".load")


def _load(door: Path) -> int:
    """How many connections a process has."""
    with suppress(OSError, ValueError):
        return int(_load_file(door).read_bytes())
    return 0


def _count(door: Path, more: int) -> None:
    """Let a process have so many more connections; several count at a time."""
    with suppress(FileNotFoundError), open(_load_file(door), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
        found = int(file.read() or 0) + more
        file.seek(0)
        file.write(b"%08d" % found)
