"""Upkeep of a ledger's file: copies, and the conversion of files that version 0.2 made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from discreet.errors import LedgerError, ParameterError
from discreet.files import OWNER_ONLY, written_whole
from discreet.ledger.entries import COPIED, VERSION, LedgerFile, write_schema


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
