"""The office's database: SQLite in a file, or PostgreSQL by its address."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from discreet.errors import DataError, DiscreetError, MissingDependencyError, ParameterError
from discreet.files import OWNER_ONLY, refuse_shared

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

_POSTGRES = ("postgresql", "postgres")
_ADDRESSES = "Give the path of an SQLite file, or postgresql://user:password@host/database."
_LOCK_SECONDS = 30.0  # how long one writer waits for another, or for a server that went silent
TURN_SECONDS = 0.001  # between two looks whether it is a writer's turn
_CONNECT_SECONDS = 10  # how long a server may take to take a connection
_SCHEMA = "v1"  # the form of the tables below; a change of them needs a new name and a step
_UPGRADE_LOCK = 0x64697363  # any number that all versions agree on


class DatabaseError(DiscreetError):
    """The office's database cannot be used; visitors may come back later."""

    status = 503


class OfficeDatabase:
    """The office's database.

    Promise: what was written within `writing` is on the disk when the block ends, or none of it
    is, also when the program is killed or the power fails. Several processes may use one database.

    Args:
      address: The path of an SQLite file, made when it is not there, or `postgresql://…`.
    """

    def __init__(self, address: str | Path) -> None:
        url = _url_of(address)
        self.shown = url.render_as_string(hide_password=True)
        self.is_file = url.get_backend_name() == "sqlite"
        self._path = Path(str(url.database)) if self.is_file else None
        if self._path is not None:
            _check_file(self._path)
        self._identity, self._generation = _identity(self._path), 0
        self._engine = _make_engine(url, self.is_file)
        try:
            with self.writing() as connection:
                _make_tables(connection, self.shown)
                counted = connection.execute(sa.select(GENERATION.c.number)).scalar_one()
            self._generation = int(counted)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One consistent view of the database.

        Raises:
          DatabaseError: It is not the one that was opened, or an earlier state of it.
        """
        known = self._generation  # before the view is taken: others write meanwhile
        with self._with_advice(), self._engine.connect() as connection:
            found = self._check(connection.execute(sa.select(GENERATION.c.number)).scalar(), known)
            self._generation = max(self._generation, found)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction of its own; writers of an SQLite file wait for each other."""
        known, found = self._generation, 0
        with self._with_advice(), _in_turn(self._path), self._engine.connect() as plain:
            connection = plain.execution_options(writes=True)
            with connection.begin():
                if known:
                    number = GENERATION.c.number
                    counted = sa.update(GENERATION).values(number=number + 1).returning(number)
                    after = connection.execute(counted).scalar()
                    # By what it was before: one step alone would hide that one was taken back.
                    found = 1 + self._check(None if after is None else after - 1, known)
                yield connection
        self._generation = max(self._generation, found)  # it stays where nothing was committed

    def _check(self, found: int | None, known: int) -> int:
        """Refuse a file that was removed or exchanged: a backup knows revoked tokens as valid."""
        if found is None or found < known or _identity(self._path) != self._identity:
            raise DatabaseError(
                f"the audit log {self.shown} was removed, exchanged or set back while it was in "
                "use. Stop the site, put the right database in its place, and start it again."
            )
        return found

    def free_bytes(self) -> float:
        """Room on the disk of a database file; a server looks after its own."""
        return math.inf if self._path is None else shutil.disk_usage(self._path.parent).free

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _with_advice(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            raise DatabaseError(
                f"cannot use the audit log {self.shown}: {cause}. It must be a database made by "
                "discreet, on a disk of this machine or on a PostgreSQL server that answers."
            ) from error


METADATA = sa.MetaData()
_NUMBER = sa.BigInteger().with_variant(
    sa.Integer, "sqlite"
)  # SQLite counts up plain integers alone

AUDIT = sa.Table(
    "audit",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True),
    sa.Column("time", sa.DateTime, nullable=False),  # UTC
    sa.Column("visitor", sa.String(80), nullable=False),
    sa.Column("dataset", sa.String(80), nullable=False),
    sa.Column("edition", sa.String(80), nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("outcome", sa.String(40), nullable=False),
    sa.Column("cells", sa.Integer, nullable=False),
    sa.Column("milliseconds", sa.Float, nullable=False),
    sa.Index("audit_by_time", "time"),
)
SWITCHES = sa.Table(
    "switches",
    METADATA,
    sa.Column("dataset", sa.String(80), primary_key=True),
    sa.Column("is_closed", sa.Boolean, nullable=False),
    sa.Column("time", sa.DateTime, nullable=False),
    sa.Column("visitor", sa.String(80), nullable=False),
)
TOKENS = sa.Table(
    "tokens",
    METADATA,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("name", sa.String(80), nullable=False, unique=True),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("time", sa.DateTime, nullable=False),
    sa.Column("revoked", sa.DateTime),
)
SECRETS = sa.Table(
    "secrets",
    METADATA,
    sa.Column("name", sa.String(20), primary_key=True),
    sa.Column("day", sa.Date, nullable=False),
    sa.Column("value", sa.LargeBinary, nullable=False),
)
ENDED_SESSIONS = sa.Table(
    "ended_sessions",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("time", sa.DateTime, nullable=False),
)
GENERATION = sa.Table(
    "generation",  # one row; it grows with every transaction that writes
    METADATA,
    sa.Column("number", sa.BigInteger, nullable=False),
)
JOBS = sa.Table(
    "jobs",  # tables that are made in the queue, one row for each crossing
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("dataset", sa.String(80), nullable=False),
    sa.Column("unit", sa.String(20), nullable=False),
    sa.Column("details", sa.Text, nullable=False),
    sa.Column("visitor", sa.String(80), nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("asked", sa.DateTime, nullable=False),
    sa.Column("started", sa.DateTime),
    sa.Column("beat", sa.DateTime),
    sa.Column("ended", sa.DateTime),
    sa.Column("worker", sa.String(40), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
)
_LATER = (ENDED_SESSIONS, GENERATION, JOBS)  # tables that databases of version 0.2 lack
RELOADS = sa.Table(
    "reloads",
    METADATA,
    sa.Column("id", _NUMBER, primary_key=True),
    sa.Column("time", sa.DateTime, nullable=False),
    sa.Column("visitor", sa.String(80), nullable=False),
)
# Version 0.2 kept the schema's version in a table of this name, so databases of both are one form.
_VERSION = sa.Table(
    "alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)


def _make_tables(connection: sa.Connection, shown: str) -> None:
    """Make the tables of a new database within the caller's transaction; processes take turns."""
    if connection.dialect.name == "postgresql":  # SQLite's writers take turns anyway
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})"))
    _VERSION.create(connection, checkfirst=True)
    present = connection.execute(sa.select(_VERSION.c.version_num)).scalar()
    if present is None:
        # Tables of somebody else's database are not taken for ours: a name in use is an error.
        METADATA.create_all(connection, checkfirst=False)
        connection.execute(sa.insert(_VERSION).values(version_num=_SCHEMA))
    elif present != _SCHEMA:
        raise DataError(
            f"the audit log {shown} was written by a newer version of discreet (step {present!r}). "
            "Update discreet, or name another audit log."
        )
    for table in _LATER:
        table.create(connection, checkfirst=True)
    if connection.execute(sa.select(GENERATION.c.number)).first() is None:
        connection.execute(sa.insert(GENERATION).values(number=1))


def _url_of(address: str | Path) -> sa.URL:
    """The database at a path, or at an address that begins with `postgresql://`."""
    if "://" not in str(address):
        return sa.URL.create("sqlite", database=str(Path(address).absolute()))
    try:
        found = sa.make_url(str(address))
    except (ArgumentError, ValueError):  # the cause would quote the password
        raise ParameterError(f"the address of the audit log cannot be read. {_ADDRESSES}") from None
    scheme = found.drivername.partition("+")[0]
    if scheme not in _POSTGRES:
        raise ParameterError(f"the audit log cannot be kept in {scheme!r}. {_ADDRESSES}")
    return found.set(drivername="postgresql+psycopg")


def _make_engine(url: sa.URL, is_file: bool) -> sa.Engine:
    pool: dict[str, Any] = {"pool_size": 2, "max_overflow": 8}
    if is_file:
        engine = sa.create_engine(url, connect_args={"timeout": _LOCK_SECONDS}, **pool)
        sa.event.listen(engine, "connect", _prepare_connection)
        sa.event.listen(engine, "begin", _begin)
        return engine
    try:
        import psycopg  # noqa: F401 -- an optional package
    except ImportError as error:
        raise MissingDependencyError("an audit log in PostgreSQL", "psycopg", "postgres") from error
    patience = {"connect_timeout": _CONNECT_SECONDS, "tcp_user_timeout": int(1000 * _LOCK_SECONDS)}
    own = {name: value for name, value in patience.items() if name not in url.query}
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args=own, **pool)
    sa.event.listen(engine, "connect", _limit_waiting)
    return engine


def _limit_waiting(connection: Any, record: object) -> None:
    """Wait for another one's lock as long as in an SQLite file; a server waits for ever."""
    connection.execute(f"SET lock_timeout = {int(1000 * _LOCK_SECONDS)}")
    connection.commit()


def _prepare_connection(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


@contextmanager
def _in_turn(path: Path | None) -> Iterator[None]:
    """One writer of a database file after the other.

    SQLite looks every tenth of a second whether another process is done, and meets one that writes
    all the time hardly ever: of two processes one waited two seconds for its entries.
    """
    if path is None or fcntl is None:
        yield
        return
    try:
        turn = open(f"{path}-turn", "ab", opener=_for_owner)  # noqa: SIM115 -- closed below
    except OSError as error:
        raise DatabaseError(f"cannot open {path}-turn: {error.strerror}.") from error
    with turn as file:
        until = time.monotonic() + _LOCK_SECONDS
        while time.monotonic() < until:  # then SQLite says what is wrong
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until it is closed
                break
            except BlockingIOError:
                time.sleep(TURN_SECONDS)
        yield


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, OWNER_ONLY)


def _begin(connection: sa.Connection) -> None:
    # A transaction that reads first and then writes fails at once where another one wrote in
    # between, whatever the timeout; one that is to write takes the lock when it begins.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _identity(path: Path | None) -> tuple[int, int] | None:
    """Device and inode of a database file; nothing for a server, or where the file is gone."""
    try:
        found = None if path is None else path.stat()
    except OSError:
        return None
    return None if found is None else (found.st_dev, found.st_ino)


def _check_file(path: Path) -> None:
    """Make the file for its owner alone; refuse one that others can reach."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, OWNER_ONLY))
        found = path.stat()
    except OSError as error:
        raise DatabaseError(f"cannot open the audit log {path}: {error.strerror}.") from error
    refuse_shared("the audit log", path, found, DatabaseError)
