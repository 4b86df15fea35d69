"""Listening: a socket, and a server on it until somebody stops it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import DataError, MissingDependencyError
from discreet.serve.worker import SITE, app_of_site

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

_START_SECONDS = 20.0
_STOP_SECONDS = 10
_CONNECTIONS = 2_000
_IDLE_SECONDS = 5
_LONGEST_HEAD = 32_768
_WORKER_SECONDS = 40  # until a worker that gives no sign of life is replaced


def require_web() -> None:
    """Say what to install when the web packages are missing."""
    try:
        import alembic  # noqa: F401
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        packages = "fastapi, uvicorn, jinja2, sqlalchemy and alembic"
        raise MissingDependencyError("the table builder", packages, "serve") from error


def listen(host: str, port: int) -> socket.socket:
    """A socket on the address; port 0 takes any free one.

    It takes connections at once: who comes before the server is up waits for it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
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
    with suppress(KeyboardInterrupt), listening:
        _server(app, root_path).run(sockets=[listening])


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """Answer on a free local port within the block; gives the address."""
    server, listening = _server(app), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield address_of(listening)
    finally:
        server.should_exit = True
        thread.join(_START_SECONDS)
        listening.close()


def serve_by_workers(
    path: str | Path, listening: socket.socket, workers: int, root_path: str = "/"
) -> None:
    """Answer for the site of a file by several processes until Ctrl-C; one that dies is replaced.

    A signal SIGHUP replaces the processes one by one, so that they read the file again.
    """
    from uvicorn.supervisors import Multiprocess

    os.environ[SITE] = str(Path(path).resolve())
    options = {"workers": workers, "timeout_worker_healthcheck": _WORKER_SECONDS}
    config = _config(f"{app_of_site.__module__}:{app_of_site.__name__}", root_path, options)
    with listening:
        Multiprocess(config, sockets=[listening]).run()


def _server(app: FastAPI, root_path: str = "/") -> uvicorn.Server:
    import uvicorn

    return uvicorn.Server(_config(app, root_path, {}))


def _config(app: FastAPI | str, root_path: str, more: dict[str, Any]) -> uvicorn.Config:
    """What holds for every server: limits on connections, and nothing believed of strangers."""
    import uvicorn

    from discreet.serve.patience import PatientProtocol  # optional package: Uvicorn

    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        http=PatientProtocol,
        ws="none",
        log_level="warning",
        access_log=False,  # the audit log knows what was asked
        server_header=False,
        proxy_headers=False,  # the office knows which proxies to believe
        root_path=root_path.rstrip("/"),
        limit_concurrency=_CONNECTIONS,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
        **more,
    )
