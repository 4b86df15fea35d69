"""The file of a ledger: its layout, its transactions, copies, and files that version 0.2 made."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from discreet.errors import LedgerError, ParameterError
from discreet.files import OWNER_ONLY, made_once, refuse_shared, written_whole

_MARK = b"SQLite format 3\0"
_OURS = 0x64697363  # "disc"
VERSION = 3
"""The layout of the file, as it says itself; that of version 0.2 says 0."""
_KEY_BYTES = 32
_PATIENCE = 60.0  # seconds that a writer waits for others
_SCHEMA = (
    "CREATE TABLE budgets (name TEXT PRIMARY KEY, epsilon TEXT, delta TEXT, relation TEXT)",
    "CREATE TABLE costs (time TEXT, name TEXT, edition TEXT, epsilon TEXT, delta TEXT, rho TEXT,"
    " step TEXT, relation TEXT)",
    "CREATE INDEX costs_by_name ON costs (name, epsilon, delta, rho)",
    "CREATE TABLE releases (time TEXT, name TEXT, edition TEXT, number INTEGER, digest TEXT,"
    " step TEXT, PRIMARY KEY (name, edition, number))",
    "CREATE TABLE editions (time TEXT, name TEXT, edition TEXT, keys TEXT, mark TEXT,"
    " PRIMARY KEY (name, edition))",
    "CREATE TABLE sketches (time TEXT, name TEXT, edition TEXT, labels TEXT, design TEXT,"
    " mark TEXT, sketch BLOB)",
    "CREATE INDEX sketches_by_table ON sketches (name, edition, labels)",
    "CREATE TABLE decisions (time TEXT, name TEXT, edition TEXT, decision TEXT, about TEXT,"
    " reason TEXT)",
    "CREATE TABLE keys (purpose TEXT PRIMARY KEY, key BLOB)",
    "CREATE TABLE counts (time TEXT, name TEXT, edition TEXT, variables TEXT, digest TEXT,"
    " PRIMARY KEY (name, edition, variables))",
    f"PRAGMA application_id = {_OURS}",
    f"PRAGMA user_version = {VERSION}",
)
COPIED = ("budgets", "costs", "releases", "editions", "counts")
"""What a ledger of an older layout has as well."""


class LedgerFile:
    """A ledger's file, made when it is not there.

    Promise: what was written within `writing` is on the disk when the block ends, or none of it
    is, also when the program is killed or the power fails; writers wait for each other. Without
    `create` the absence of the file is an error; with `any_version` an older layout is none.
    """

    def __init__(self, path: str | Path, *, create: bool = True, any_version: bool = False) -> None:
        self.path = Path(path).absolute()
        if not self.path.exists():
            if not create:
                raise LedgerError(
                    f"there is no ledger {self.path}, in which these tables are entered. Put back "
                    "its last copy, or name where it is now with `ledger=` or `--ledger`."
                )
            _create(self.path)
        if not _is_database(self.path):
            raise self._no_ledger()
        refuse_shared("the ledger", self.path, self.path.stat(), LedgerError)
        with self.reading() as db:
            if db.execute("PRAGMA application_id").fetchone()[0] != _OURS:
                raise self._no_ledger()
            found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise LedgerError(f"the ledger {self.path} is damaged: {found}. {PUT_BACK}")
            self.version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if not any_version:
            self._check_version()

    def _no_ledger(self) -> LedgerError:
        return LedgerError(
            f"{self.path} is not a ledger. Give the path of a ledger, or a path where there is no "
            f"file yet. If it was a ledger, the file is damaged: {PUT_BACK}"
        )

    def _check_version(self) -> None:
        if self.version > VERSION:
            raise LedgerError(
                f"the ledger {self.path} was made by a newer version of discreet; update it."
            )
        if self.version < VERSION:
            raise LedgerError(
                f"the ledger {self.path} was made by version 0.2. Its sketches are of whole "
                "records and without a key: whoever has the file can recognise people by them. "
                f"Convert it with `discreet ledger upgrade {self.path}`."
            )

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """One consistent view of the ledger."""
        return self._transaction("BEGIN")

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """A transaction of its own: no other process reads or writes in between."""
        return self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        address = f"{self.path.as_uri()}?mode=rw"  # never makes a file
        try:
            # Closing the connection undoes what was not committed.
            with closing(
                sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)
            ) as db:
                db.execute("PRAGMA synchronous = EXTRA")
                db.execute(begin)
                yield db
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(
                f"cannot use the ledger {self.path}: {error}. It must be a ledger made by "
                f"discreet, on a disk of this machine. If the file is damaged: {PUT_BACK}"
            ) from error


PUT_BACK = (
    "put back its last copy (`discreet ledger backup` makes them), and enter what was released "
    "since then again by `discreet ledger enter`."
)


def _create(path: Path) -> None:
    """A new ledger under its name in one step; whoever comes second keeps the first one."""
    try:
        with made_once(path) as temporary:
            write_schema(temporary)
    except OSError as error:
        raise LedgerError(f"cannot open the ledger {path}: {error.strerror}.") from error
    except sqlite3.Error as error:  # a full disk
        raise LedgerError(f"cannot make the ledger {path}: {error}.") from error


def write_schema(path: Path) -> None:
    """Make an empty file a ledger, with a key of its own."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            db.execute(statement)
        db.execute("INSERT INTO keys VALUES ('cells', ?)", (secrets.token_bytes(_KEY_BYTES),))
        db.execute("COMMIT")


def _is_database(path: Path) -> bool:
    """Whether a file begins as those of SQLite do: others need no advice on their permissions."""
    if path.is_dir():
        return False
    with path.open("rb") as opened:
        return opened.read(len(_MARK)) == _MARK


def back_up(path: str | Path, out: str | Path) -> Path:
    """Copy a ledger while others may use it; the copy is for its owner alone.

    Whoever puts a copy back forgets what was entered after it was made.
    """
    if Path(out).exists():
        raise ParameterError(f"{out} exists; copies are kept side by side, so choose a new name.")
    source = LedgerFile(path, create=False)
    with (
        written_whole(out, OWNER_ONLY) as temporary,
        source.reading() as db,
        closing(sqlite3.connect(temporary)) as copy,
    ):
        db.execute("COMMIT")  # a copy is a transaction of its own
        db.backup(copy)
        db.execute("BEGIN")
    return Path(out)


def upgrade(path: str | Path) -> Path:
    """Convert a ledger of version 0.2; returns where the old file is now.

    Budgets, costs, releases, counts and editions stay. Sketches do not: they were of whole records
    and without a key. Tables of the old editions are entered again from their records before the
    next edition can be compared with them.

    Raises:
      LedgerError: The ledger needs no conversion, or its old copy is in the way.
    """
    old = LedgerFile(path, create=False, any_version=True)
    if old.version >= VERSION:
        raise LedgerError(f"the ledger {old.path} is of this version; there is nothing to convert.")
    kept = old.path.with_name(f"{old.path.name}.0.2")
    if kept.exists():
        raise LedgerError(f"{kept} is in the way: the old ledger is kept under this name.")
    with written_whole(old.path, OWNER_ONLY) as temporary:
        write_schema(temporary)
        with old.writing() as db:
            db.execute("COMMIT")
            db.execute("ATTACH DATABASE ? AS made", (str(temporary),))
            db.execute("BEGIN IMMEDIATE")
            for table in COPIED:
                columns = ", ".join(
                    sorted(_columns(db, "main", table) & _columns(db, "made", table))
                )
                db.execute(
                    f"INSERT INTO made.{table} ({columns}) SELECT {columns} FROM main.{table}"
                )
            db.execute("COMMIT")
            db.execute("DETACH DATABASE made")
            db.execute("BEGIN")
        kept.hardlink_to(old.path)
    return kept


def _columns(db: sqlite3.Connection, schema: str, table: str) -> set[str]:
    return {row[1] for row in db.execute(f"PRAGMA {schema}.table_info({table})")}
