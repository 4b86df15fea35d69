"""The engine that holds the records: one way in, one way out, whichever it is."""

from __future__ import annotations

import threading
from typing import Any

from discreet.errors import EngineError, ParameterError, UnknownNameError
from discreet.frames import Frame
from discreet.progress import notice
from discreet.records.connection import Connection, attempt
from discreet.records.duckdb import DuckDB, DuckDBConnection
from discreet.records.postgres import PostgresConnection
from discreet.records.spark import SparkConnection

_LISTED = 12
TESTED = ("duckdb", "postgres", "pyspark")
"""Back ends that pass the whole battery (`discreet check engine`)."""
REFUSED = {
    "sqlite": "6 of 53 cases of the battery come out wrong: whole numbers of 64 bits or without a "
    "sign, and words among values",
    "polars": "23 of 53 cases of the battery come out wrong: Ibis writes no windows for it, which "
    "bounds and contributions need",
    "datafusion": "its back end did not connect when the battery was tried",
}
"""Back ends of Ibis's that hold no records here, with the reason."""
_CONNECTIONS: dict[str, type[Connection]] = {
    "duckdb": DuckDBConnection,
    "postgres": PostgresConnection,
    "pyspark": SparkConnection,
}
_turns: dict[int, threading.Lock] = {}


def check_standing(backend: Any) -> None:
    """Refuse a back end that is known to count wrongly; say so where nobody has tried it."""
    name = backend.name
    if name in REFUSED:
        raise EngineError(
            f"records in {name} are refused: {REFUSED[name]}. Copy them into Parquet, DuckDB or "
            "PostgreSQL."
        )
    if name not in TESTED:
        notice(
            f"{name} is untested as an engine. Run `discreet check engine ADDRESS` on it before "
            "anything is published."
        )


def connection_of(backend: Any) -> Connection:
    """What passes between this program and a back end, in the way that suits it best."""
    if backend.name == DuckDB.name and not isinstance(backend, DuckDB):
        backend = DuckDB(backend.con, backend)  # one of Ibis's
    return _CONNECTIONS.get(backend.name, Connection)(backend)


def fetch(backend: Any, query: Any, origin: str) -> Frame:
    """The answer to a query; threads that share a back end take turns.

    Two queries at once on one DuckDB connection lock each other out for good.
    """
    with _turns.setdefault(id(getattr(backend, "con", backend)), threading.Lock()):
        return attempt(lambda: connection_of(backend).answer(query), origin)


def table_of(backend: Any, name: str | None, origin: str) -> tuple[Any, str]:
    """A table of a back end with its name, which may be left out when there is only one."""
    connection = connection_of(backend)
    if name is None:
        names = attempt(connection.names, origin)
        if len(names) != 1:
            more = ", …" if len(names) > _LISTED else ""
            listed = ", ".join(map(repr, names[:_LISTED])) + more or "none"
            raise ParameterError(f"{origin} holds these tables: {listed}. Name one with table=.")
        name = names[0]
    elif not attempt(lambda: connection.has(name), origin):
        raise UnknownNameError(f"table of {origin}", name, attempt(connection.names, origin))
    return attempt(lambda: connection.exact(connection.table(name)), origin), name
