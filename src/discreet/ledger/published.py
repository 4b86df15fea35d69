"""Published values in the ledger's file: what phased editions repeat. They are public already."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet.arrays import Array, Whole
from discreet.ledger.entries import LedgerFile

_TABLE = (
    "CREATE TABLE IF NOT EXISTS published (name TEXT, edition TEXT, place INTEGER, what TEXT,"
    " design TEXT, marks BLOB, numbers BLOB, status BLOB,"
    " PRIMARY KEY (name, edition, what, design))"
)


@dataclass(frozen=True, eq=False)
class EarlierValues:
    """Values that were published before, by cell.

    Attributes:
      marks: What a cell is known by in all editions, in rising order.
      values: Its published value.
      status: Why it shows what it shows.
      place: The place of the edition in its series, for each cell.
    """

    marks: Whole
    values: Array
    status: Array
    place: Whole

    @classmethod
    def latest(cls, marks: Whole, values: Array, status: Array, place: Whole) -> EarlierValues:
        """Of each cell the value of the latest edition."""
        order = np.lexsort((-place, marks))
        first = np.append(True, np.diff(marks[order]) != 0) if len(order) else order.astype(bool)
        kept = order[first]
        return cls(marks[kept], values[kept], status[kept], place[kept])

    def find(self, marks: Whole) -> Whole:
        """The place of each cell among these, or -1."""
        at = np.minimum(np.searchsorted(self.marks, marks), max(0, len(self.marks) - 1))
        is_here = self.marks[at] == marks if len(self.marks) else np.zeros(len(marks), dtype=bool)
        return np.where(is_here, at, -1)


class PublishedValues:
    """The values that releases of a data set showed, kept beside the ledger's entries.

    Args:
      path: The ledger's file.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = LedgerFile(path)

    def place(self, name: str, edition: str) -> int:
        """The place of an edition among those of its data set, in the order of their entry."""
        query = "SELECT edition FROM editions WHERE name = ? ORDER BY time, rowid"
        with self._file.reading() as db:
            known = [found for (found,) in db.execute(query, (name,))]
        return known.index(edition) if edition in known else len(known)

    def before(self, name: str, place: int, what: str) -> EarlierValues | None:
        """The latest value of every cell that earlier editions showed.

        Args:
          name: The data set.
          place: The place of this edition in its series.
          what: What tells one way of publishing from another: method, parameters and unit.
        """
        with self._file.writing() as db:
            db.execute(_TABLE)
            query = (
                "SELECT place, marks, numbers, status FROM published "
                "WHERE name = ? AND what = ? AND place < ?"
            )
            rows = db.execute(query, (name, what, place)).fetchall()
        if not rows:
            return None
        marks, values, status = (
            [np.frombuffer(zlib.decompress(row[k]), dtype=kind) for row in rows]
            for k, kind in ((1, "<i8"), (2, "<f8"), (3, "<i1"))
        )
        places = [np.full(len(m), row[0]) for m, row in zip(marks, rows, strict=True)]
        parts = map(np.concatenate, (marks, values, status, places))
        return EarlierValues.latest(*parts)

    def note(self, name: str, edition: str, place: int) -> None:
        """Note that something of this edition was published, so that its mode stays what it is."""
        row = (name, edition, place, "released", "", b"", b"", b"")
        with self._file.writing() as db:
            db.execute(_TABLE)
            db.execute("INSERT OR IGNORE INTO published VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def enter(
        self,
        where: tuple[str, str, int],
        what: str,
        design: str,
        marks: Whole,
        values: Array,
        status: Array,
    ) -> None:
        """Keep the values of a release.

        Args:
          where: Data set, edition, and the edition's place in its series.
          what: As for `before`.
          design: Digest of the table's design.
          marks: What each cell is known by.
          values: Its value.
          status: Why it shows what it shows.
        """
        blobs = [
            zlib.compress(np.asarray(part).astype(kind).tobytes())
            for part, kind in ((marks, "<i8"), (values, "<f8"), (status, "<i1"))
        ]
        with self._file.writing() as db:
            db.execute(_TABLE)
            row = (*where, what, design, *blobs)
            db.execute("INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
