"""Listening: a socket, and one or several servers on it until somebody stops them."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from discreet.errors import DataError, ParameterError
from discreet.serve.app import make_app
from discreet.serve.guard import log_refusal
from discreet.serve.office.config import subscriber_network
from discreet.serve.office.office import Office
from discreet.serve.sharing import FOLDER_VARIABLE, shared_sockets
from discreet.serve.site.start import SiteWatcher, load_site, stop_with_parent

SITE_VARIABLE = "DISCREET_SITE"
"""The environment variable that names the site's file to the processes that answer for it."""
_STOP_SECONDS = 10
_LAST_SECONDS = 1.0  # that a connection has for one more request while its server stops
_CONNECTIONS = 2_000
_BACKLOG = 100  # connections that are taken at once
_TURNS = 4  # of the event loop, from taking a connection to having closed it again
_NO_LIMIT = 10**6
_OTHER_FILES = 100  # databases, builds, kept tables and pipes
_SHARE = 4  # of all connections, one address has at most this part
_IDLE_SECONDS = 5
_LONGEST_HEAD = 32_768  # bytes; the guard's longest query takes a quarter of them
# Until a worker that gives no sign of life is replaced, and for a new one to be ready: on a busy
# machine (load 17 on two cores) a reload was given up after 40 s, before the new one had started.
_WORKER_SECONDS = 120
_ARENA_MAX = -8  # of mallopt


def listen(host: str, port: int) -> socket.socket:
    """A socket on the address; port 0 takes any free one.

    It takes connections at once: who comes before the server is up waits for it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    # A port that was given up a moment ago can be taken again at once.
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen()
    except OSError as error:
        found.close()
        raise DataError(
            f"cannot listen on {host} port {port}: {error.strerror}. "
            "Choose another with --port, or --port 0 for any free one."
        ) from error
    return found


def address_of(listening: socket.socket) -> str:
    """The address to open in a browser."""
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/"


def serve_until_stopped(app: FastAPI, listening: socket.socket, root_path: str = "/") -> None:
    """Answer until Ctrl-C."""
    _prepare_process()
    with suppress(KeyboardInterrupt), listening:
        uvicorn.Server(_config(app, root_path)).run(sockets=[listening])


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """Answer on a free local port within the block; gives the address."""
    server, listening = uvicorn.Server(_config(app, "/")), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield address_of(listening)
    finally:
        server.should_exit = True
        thread.join(2 * _STOP_SECONDS)
        listening.close()


def serve_by_workers(
    path: str | Path, listening: socket.socket, workers: int, root_path: str = "/"
) -> None:
    """Answer for the site of a file by several processes until Ctrl-C; one that dies is replaced.

    A signal SIGHUP replaces the processes one by one, so that they read the file again.
    """
    os.environ[SITE_VARIABLE] = str(Path(path).resolve())
    # Another loop would not ask our sockets for connections.
    options: dict[str, Any] = {"workers": workers, "loop": "asyncio"}
    options["timeout_worker_healthcheck"] = _WORKER_SECONDS
    config = _config(f"{__name__}:{app_of_site.__name__}", root_path, **options)
    with TemporaryDirectory(prefix="discreet-") as folder, ExitStack() as open_sockets:
        os.environ[FOLDER_VARIABLE] = folder
        sockets = [open_sockets.enter_context(s) for s in shared_sockets(listening)]
        _Workers(config, sockets=sockets).run()


class _Workers(Multiprocess):
    def keep_subprocess_alive(self) -> None:
        """Replace a worker that died, at once even if it was being asked for a sign of life.

        As long as this process has the worker's end of the pipe, too, a death does not end it: one
        that was killed at that moment was waited for for two minutes.
        """
        for process in self.processes:
            process.child_conn.close()
        super().keep_subprocess_alive()


def app_of_site() -> FastAPI:
    """The application of the site that the environment names, in one of several processes."""
    path = os.environ.get(SITE_VARIABLE)
    if not path:
        raise ParameterError(f"environment variable {SITE_VARIABLE} must name a site.toml.")
    stop_with_parent()
    _prepare_process()
    holder = load_site(path)
    SiteWatcher(holder, path).start()
    office = Office.open(holder.current.config)
    office.run_jobs(path, holder)
    return make_app(holder, office)


def _prepare_process() -> None:
    """Have threads take turns quickly and share their memory; both hold for the whole process."""
    # A thread that comes back from the disk waits so long for one that computes, and the audit log
    # comes back ten times for an entry: 50 visitors of two processes met a p99 of 1.9 s at the
    # usual 5 ms, and 1.0 s with this.
    sys.setswitchinterval(3e-4)
    with suppress(OSError, AttributeError):  # another C library than that of Linux
        # Each thread would keep freed memory to itself: 160 MB under 50 visitors.
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


def most_connections() -> int:
    """Connections of one process: below what it may open, which is 1,024 files on many systems."""
    # Those that are turned away are open for some turns, in each of which others are taken.
    free = _most_files() - _TURNS * _taken_at_once() - _OTHER_FILES
    return max(8, min(_CONNECTIONS, free))


def _taken_at_once() -> int:
    return min(_BACKLOG, max(1, _most_files() // 10))


def _most_files() -> int:
    """Files that this process may open."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _NO_LIMIT
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _NO_LIMIT if files == resource.RLIM_INFINITY else int(files)


class TimeoutProtocol(H11Protocol):
    """HTTP for clients that make progress; others are cut off.

    A client that sends its request byte by byte, or never reads its answer, would hold a
    connection for ever: uvicorn has a timeout for idle connections alone. Where connections are
    all taken, the one that has waited longest without a whole request gives way to a new one, and
    no address but that of a trusted proxy has more than its share.

    Attributes:
      request_seconds: For a whole request, from the first byte to the last one of its body.
      answer_seconds: For the next piece of an answer to be taken.
    """

    request_seconds = 15.0
    answer_seconds = 60.0

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._request, self._answer = _Timer(self.loop), _Timer(self.loop)
        self._since, self._is_last = self.loop.time(), False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request, or turn the client away."""
        super().connection_made(transport)
        self._request.start(self.request_seconds, transport.abort)
        most, peer = most_connections(), self._peer
        # One that gave way a moment ago is still there, and must not give way for two.
        others: list[Any] = [c for c in self.connections if not c.transport.is_closing()]
        same = sum(other._subscriber == self._subscriber for other in others)
        if same > max(1, most // _SHARE) and not self._is_proxy(peer):
            log_refusal("too_many_connections", 503)
            transport.abort()
        elif len(others) > most:
            log_refusal("no_connections_left", 503)
            idle = [other for other in others if not other._is_answering()]
            min(idle, key=lambda other: other._since, default=self).transport.abort()

    @property
    def _peer(self) -> str:
        return "" if self.client is None else self.client[0]

    @cached_property
    def _subscriber(self) -> str:
        return subscriber_network(self._peer)

    def _is_proxy(self, peer: str) -> bool:
        state = getattr(self.config.loaded_app, "state", None)
        return state is not None and bool(state.office.proxies.trust(peer))

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        if not self._request.is_running and not self._is_answering():
            self._request.start(self.request_seconds, self.transport.abort)
            self._since = self.loop.time()
        super().data_received(data)
        if self._is_answering():
            self._request.stop()
        if self._is_last:
            self._close_after_answer()

    def shutdown(self) -> None:
        """Stop in good order: a request that is on its way is still answered.

        uvicorn closes connections without a request at once, and with them requests whose bytes
        have not been read yet.
        """
        self._is_last = True
        if self._is_answering():
            self._close_after_answer()
            super().shutdown()
        else:
            self._request.start(_LAST_SECONDS, self.transport.close)

    def _close_after_answer(self) -> None:
        """Tell the client to open another connection for its next request."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False
            if not cycle.response_started:
                cycle.scope["headers"] = [*cycle.scope["headers"], (b"connection", b"close")]

    def pause_writing(self) -> None:
        """Expect the client to take what waits."""
        self.flow.pause_writing()
        self._answer.start(self.answer_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        self._answer.stop()
        self.flow.resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, by force where the client never takes the last answer."""
        super().timeout_keep_alive_handler()
        self._answer.start(self.answer_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._request.stop()
        self._answer.stop()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        """Whether a whole request has come and is being answered."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body


class _Timer:
    """Does something after a while unless it is stopped."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_running(self) -> bool:
        return self._handle is not None

    def start(self, seconds: float, act: Callable[[], None]) -> None:
        self.stop()
        self._handle = self._loop.call_later(seconds, act)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


def _config(app: FastAPI | str, root_path: str, **more: Any) -> uvicorn.Config:
    """What holds for every server: limits on connections, and nothing believed of strangers."""
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        http=TimeoutProtocol,
        ws="none",
        log_level="warning",
        access_log=False,  # the audit log knows what was asked
        server_header=False,
        proxy_headers=False,  # the office knows which proxies to believe
        root_path=root_path.rstrip("/"),
        backlog=_taken_at_once(),
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
        **more,
    )
