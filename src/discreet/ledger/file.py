"""The file behind a ledger: SQLite, for its owner alone, one writer at a time."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from discreet.errors import LedgerError
from discreet.files import OWNER_ONLY

_OURS = 0x64697363
_PATIENCE = 60.0
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SCHEMA = (
    "CREATE TABLE budgets (name TEXT PRIMARY KEY, epsilon TEXT, delta TEXT)",
    "CREATE TABLE costs (time TEXT, name TEXT, edition TEXT, epsilon TEXT, delta TEXT, rho TEXT,"
    " step TEXT)",
    "CREATE INDEX costs_by_name ON costs (name, epsilon, delta, rho)",
    "CREATE TABLE releases (time TEXT, name TEXT, edition TEXT, number INTEGER, digest TEXT,"
    " step TEXT, PRIMARY KEY (name, edition, number))",
    "CREATE TABLE editions (time TEXT, name TEXT, edition TEXT, keys TEXT, mark TEXT, sketch BLOB,"
    " PRIMARY KEY (name, edition))",
    "CREATE TABLE counts (time TEXT, name TEXT, edition TEXT, variables TEXT, digest TEXT,"
    " PRIMARY KEY (name, edition, variables))",
    f"PRAGMA application_id = {_OURS}",
)


class LedgerFile:
    """A ledger's file, made when it is not there.

    Promise: what was written within `writing` is on the disk when the block ends, or none of it
    is, also when the program is killed or the power fails; writers wait for each other.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, OWNER_ONLY))
            found = self.path.stat()
        except OSError as error:
            raise LedgerError(f"cannot open the ledger {self.path}: {error.strerror}.") from error
        if found.st_size:
            self._check_format()
        self._check_mode(found.st_mode)
        if not found.st_size:
            self._make_tables()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the ledger."""
        with self._transaction("BEGIN") as db:
            yield db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction of its own: no other process reads or writes in between."""
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield db

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._connect()) as db:
                db.execute("PRAGMA synchronous = EXTRA")
                db.execute(begin)
                yield db
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(
                f"cannot use the ledger {self.path}: {error}. It must be a ledger made by "
                "discreet, on a disk of this machine."
            ) from error

    def _connect(self) -> sqlite3.Connection:
        """A connection that never makes a file; closing it undoes what was not committed."""
        address = f"{self.path.as_uri()}?mode=rw"
        return sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)

    def _check_format(self) -> None:
        with self.reading() as db:
            if not _is_ours(db):
                raise LedgerError(
                    f"{self.path} is a database, but not a ledger. Give the path of a ledger, or "
                    "a path where there is no file yet."
                )

    def _check_mode(self, mode: int) -> None:
        if mode & _OTHERS:
            raise LedgerError(
                f"the ledger {self.path} has permissions {stat.S_IMODE(mode):o}: others can reach "
                f"it. Change them with `chmod 600 {self.path}`."
            )

    def _make_tables(self) -> None:
        with self.writing() as db:
            if not _is_ours(db):
                for statement in _SCHEMA:
                    db.execute(statement)


def _is_ours(db: sqlite3.Connection) -> bool:
    return bool(db.execute("PRAGMA application_id").fetchone()[0] == _OURS)
