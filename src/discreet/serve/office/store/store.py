"""Connections to the office's database, which is brought up to date when it is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from discreet.errors import DiscreetError, MissingDependencyError
from discreet.files import OWNER_ONLY
from discreet.serve.office.store.address import url_of

_PATIENCE = 30.0
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class StoreError(DiscreetError):
    """The office's database cannot be used; visitors may come back later."""

    status = 503


class Store:
    """The office's database.

    Promise: what was written within `writing` is on the disk when the block ends, or none of it
    is, also when the program is killed or the power fails. Several processes may use one database.

    Args:
      address: The path of an SQLite file, made when it is not there, or `postgresql://…`.
    """

    def __init__(self, address: str | Path) -> None:
        url = url_of(address)
        self.shown = url.render_as_string(hide_password=True)
        self.is_file = url.get_backend_name() == "sqlite"
        if self.is_file:
            _check_file(Path(str(url.database)))
        self._engine = _engine(url, self.is_file)
        try:
            self.upgrade()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the database."""
        with self._explained(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction of its own; writers of an SQLite file wait for each other."""
        with self._explained(), self._engine.connect() as plain:
            connection = plain.execution_options(writes=True)
            with connection.begin():
                yield connection

    def upgrade(self) -> None:
        """Bring the tables to the form this version works with; processes take turns."""
        from discreet.serve.office.store.upgrade import upgraded  # start-up time: Alembic

        with self.writing() as connection:
            upgraded(connection, self.shown)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise StoreError(
                f"cannot use the audit log {self.shown}: {cause}. It must be a database made by "
                "discreet, on a disk of this machine or on a PostgreSQL server that answers."
            ) from error


def _engine(url: Any, is_file: bool) -> Engine:
    if not is_file:
        _require_psycopg()
        return create_engine(url, pool_pre_ping=True, pool_size=2, max_overflow=8)
    engine = create_engine(url, connect_args={"timeout": _PATIENCE}, pool_size=2, max_overflow=8)
    event.listen(engine, "connect", _prepared)
    event.listen(engine, "begin", _begun)
    return engine


def _require_psycopg() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("an audit log in PostgreSQL", "psycopg", "postgres") from error


def _prepared(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begun(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _check_file(path: Path) -> None:
    """Make the file for its owner alone; refuse one that others can reach."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, OWNER_ONLY))
        mode = path.stat().st_mode
    except OSError as error:
        raise StoreError(f"cannot open the audit log {path}: {error.strerror}.") from error
    if mode & _OTHERS:
        raise StoreError(
            f"the audit log {path} has permissions {stat.S_IMODE(mode):o}: others can reach it. "
            f"Change them with `chmod 600 {path}`."
        )
