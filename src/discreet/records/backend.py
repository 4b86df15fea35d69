"""The engine that holds the records: one way in, one way out, whichever it is."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from discreet.errors import ParameterError, UnknownNameError
from discreet.records.connection import Connection, DuckDBConnection, attempt
from discreet.records.postgres import PostgresBorder
from discreet.records.spark import SparkBorder

if TYPE_CHECKING:
    import pyarrow as pa


_LISTED = 12
_turns: dict[int, threading.Lock] = {}


def border(backend: Any) -> Connection:
    """The way to and from a back end."""
    if backend.name == "duckdb":
        return DuckDBConnection(backend)
    if backend.name == "postgres":
        return PostgresBorder(backend)
    if backend.name == "pyspark":
        return SparkBorder(backend)
    return Connection(backend)


def duckdb(path: str | None = None) -> Any:
    """A DuckDB back end of its own: in memory, or a file that is only read."""
    import ibis

    return ibis.duckdb.connect() if path is None else ibis.duckdb.connect(path, read_only=True)


def fetch(backend: Any, query: Any, origin: str) -> pa.Table:
    """The answer to a query as an Arrow table; threads that share a back end take turns.

    Two queries at once on one DuckDB connection lock each other out for good.

    Args:
      backend: The Ibis back end that answers.
      query: An Ibis table expression.
      origin: What the records came from, for the error.
    """
    with _turns.setdefault(id(backend), threading.Lock()):
        return attempt(lambda: border(backend).answer(query), origin)


def table_of(backend: Any, name: str | None, origin: str) -> tuple[Any, str]:
    """A table of a back end with its name, which may be left out when there is only one."""
    way = border(backend)
    if name is None:
        name = _only(attempt(way.names, origin), origin)
    elif not attempt(lambda: way.has(name), origin):
        raise UnknownNameError(f"table of {origin}", name, attempt(way.names, origin))
    return attempt(lambda: way.exact(way.table(name)), origin), name


def _only(names: list[str], origin: str) -> str:
    if len(names) == 1:
        return names[0]
    more = ", …" if len(names) > _LISTED else ""
    listed = ", ".join(map(repr, names[:_LISTED])) + more or "none"
    raise ParameterError(f"{origin} holds these tables: {listed}. Name one with table=.")
