"""Listening: a socket, and a server on it until somebody stops it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from discreet.errors import DataError, MissingDependencyError

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

_START_SECONDS = 20.0


def require_web() -> None:
    """Say what to install when the web packages are missing."""
    try:
        import fastapi  # noqa: F401
        import jinja2  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        packages = "fastapi, uvicorn and jinja2"
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


def _server(app: FastAPI, root_path: str = "/") -> uvicorn.Server:
    import uvicorn

    root = root_path.rstrip("/")
    config = uvicorn.Config(app, log_level="warning", access_log=False, root_path=root)
    return uvicorn.Server(config)
