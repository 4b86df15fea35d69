"""Editions in a ledger: the guard over them, and the values that phased editions repeat.

A table that differs too little from an earlier one is held. Published values are public already.
"""

from __future__ import annotations

import shlex
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet.arrays import Array, Whole
from discreet.errors import LedgerError
from discreet.ledger import entries
from discreet.ledger.entries import OTHER_DATA, Decision, StoredSketch, edition_text
from discreet.ledger.file import LedgerFile
from discreet.tables.sketches import Labels, RecordSketches, SketchedTable, table_name
from discreet.tables.truth import DataSet

ACCEPTED, WITHDRAWN, CORRECTED, ROTATED = "accepted", "withdrawn", "corrected", "rotated"
STOPPED, UNJUDGED = "stopped", "published unjudged"
RELEASE = "release"  # what was stopped, where it was drawn
_ALIKE = 0.5  # unrelated sketches have a likeness of 0 ± 0.016, those of neighbours one near 1
_TABLE = (
    "CREATE TABLE IF NOT EXISTS published (name TEXT, edition TEXT, place INTEGER, what TEXT,"
    " design TEXT, marks BLOB, numbers BLOB, status BLOB,"
    " PRIMARY KEY (name, edition, what, design))"
)


def enter_tables(
    db: sqlite3.Connection,
    data_set: DataSet,
    tables: Sequence[SketchedTable],
    records: RecordSketches | None,
    min_changed: int,
) -> None:
    """Enter the sketches of tables that may be published.

    The total alone is never held: it tells that somebody came or went, and not who.

    Raises:
      LedgerError: Tables of this edition were entered with other records; or a table differs too
        little from that of an earlier edition, or cannot be compared with it.
    """
    key, own = entries.cell_key(db), entries.sketches_of(db, data_set.name, data_set.edition)
    earlier = {
        name: entries.sketches_of(db, data_set.name, name)
        for name in entries.editions_of(db, data_set.name)
        if name != data_set.edition
    }
    decided = entries.decisions_of(db, data_set.name)
    new = _sketches(tables, records, key)
    for given in new:
        _check_same(given, own, data_set)
    own_decisions = (d for d in decided if d.edition == data_set.edition)
    free = {d.about for d in own_decisions if d.decision == ACCEPTED}
    held: dict[Labels, str] = {}
    for labels in dict.fromkeys(table.labels for table in tables):
        is_free = not labels or entries.labels_text(labels) in free
        if min_changed and not is_free and not _is_covered(labels, own):
            mine = [s for s in new if s.labels == labels]
            keys = [s for s in new if not s.labels]
            for edition, stored in earlier.items():
                if why := _why_held(edition, mine, keys, stored, min_changed):
                    held.setdefault(labels, why)
    if held:
        raise _held_error(data_set, held)
    for given in new:
        if not any(_is_same_kind(given, known) and given.sketch == known.sketch for known in own):
            entries.add_sketch(db, data_set, given)


def check_open(decided: Sequence[Decision], data_set: DataSet) -> None:
    """Refuse an edition that was withdrawn, or that another one has taken the place of."""
    for one in decided:
        if one.edition == data_set.edition and one.decision == WITHDRAWN:
            raise LedgerError(
                f"{edition_text(data_set)} was withdrawn, so nothing more is released of it. "
                "Publish the records as a new edition."
            )
        if one.edition == data_set.edition and one.decision == CORRECTED:
            raise LedgerError(
                f"{edition_text(data_set)} was corrected, and edition {one.about!r} has taken its "
                "place. Publish tables of that edition."
            )


def was_stopped(decided: Sequence[Decision], data_set: DataSet) -> bool:
    """Whether attacks stopped a release of this edition that had been drawn."""
    stopped = (d for d in decided if d.decision == STOPPED and d.about == RELEASE)
    return any(d.edition == data_set.edition for d in stopped)


def rotated_marks(decided: Sequence[Decision]) -> Mapping[str, str]:
    """Marks of secrets that were rotated, with the marks of those that took their place."""
    pairs = (one.about.split(">") for one in decided if one.decision == ROTATED)
    return {pair[0]: pair[1] for pair in pairs}


def _sketches(
    tables: Sequence[SketchedTable], records: RecordSketches | None, key: bytes
) -> list[StoredSketch]:
    """All sketches of some tables: of their cells, of their records, and of the keys alone."""
    made = [StoredSketch(t.labels, t.design, None, t.sketch(key)) for t in tables]
    if records is None:
        return made
    by_variables = records.by_variables
    for table in tables:
        if table.variables and table.variables in by_variables:
            sketch = by_variables[table.variables]
            made.append(StoredSketch(table.labels, table.design, records.mark, sketch))
    if () in by_variables:
        made.append(StoredSketch((), "", records.mark, by_variables[()]))
    return made


def _is_same_kind(one: StoredSketch, other: StoredSketch) -> bool:
    return (one.labels, one.design, one.mark) == (other.labels, other.design, other.mark)


def _check_same(given: StoredSketch, own: Sequence[StoredSketch], data_set: DataSet) -> None:
    """Refuse other records under one edition; other codes of the same variables are another table.

    Record keys that are alike are the same keys, so a single record more or less is found.
    """
    for known in own:
        is_other = _is_same_kind(given, known) and given.sketch != known.sketch
        if is_other and given.sketch.likeness(known.sketch) >= _ALIKE:
            raise LedgerError(
                f"{edition_text(data_set)} was entered with another set of records. {OTHER_DATA}"
            )


def _is_covered(labels: Labels, own: Sequence[StoredSketch]) -> bool:
    """Whether the table lies in one of this edition that was entered before."""
    plain = {label: label.split("[", 1)[0] for label in labels}
    return any(
        all(label in known.labels or plain[label] in known.labels for label in labels)
        for known in own
        if known.mark is None
    )


def _why_held(
    edition: str,
    mine: Sequence[StoredSketch],
    keys: Sequence[StoredSketch],
    stored: Sequence[StoredSketch],
    min_changed: int,
) -> str:
    """Why a table is too near to that of another edition, or cannot be compared; empty if free."""
    labels, designs = mine[0].labels, {one.design for one in mine}
    theirs = [known for known in stored if known.labels == labels]
    if not theirs:
        # A table that the other edition never had: enough people who came or went will do.
        changed = _changes([one for one in keys if one.mark is not None], stored)
        is_near = changed is None or changed < min_changed
        return _INCOMPARABLE.format(edition, "has no such table in the ledger") if is_near else ""
    if not designs <= {known.design for known in theirs}:
        return _INCOMPARABLE.format(edition, "had other code lists or other `moves`")
    of_cells = _changes([one for one in mine if one.mark is None], theirs)
    if of_cells is None:
        return _INCOMPARABLE.format(edition, "has cells that look unrelated to these")
    of_records = _changes([one for one in mine if one.mark is not None], theirs)
    changed = of_cells if of_records is None else min(of_cells, of_records)
    if changed >= min_changed:
        return ""
    return (
        f"it differs from that of edition {edition!r} by about {changed} "
        f"{'record' if changed == 1 else 'records'}, fewer than min_changed={min_changed}"
    )


def _changes(mine: Sequence[StoredSketch], theirs: Sequence[StoredSketch]) -> int | None:
    """The fewest changes between sketches of one kind that can be compared; `None` without any."""
    found = [
        one.sketch.changed_since(other.sketch)
        for one in mine
        for other in theirs
        if _is_same_kind(one, other) and one.sketch.likeness(other.sketch) >= _ALIKE
    ]
    return min(found, default=None)


_INCOMPARABLE = "it cannot be compared with edition {!r}, which {}"


def _held_error(data_set: DataSet, held: Mapping[Labels, str]) -> LedgerError:
    """All tables that are held, with what the custodian can do about them."""
    whys = {table_name(labels): why for labels, why in held.items()}
    one, them = ("it", "the table") if len(whys) == 1 else ("them", "the tables")
    if len(whys) == 1:
        said = [
            f"table {name!r} of {edition_text(data_set)} is held: {why}."
            for name, why in whys.items()
        ]
    else:
        listed = "; ".join(f"{name!r}: {why}" for name, why in whys.items())
        said = [f"{len(whys)} tables of {edition_text(data_set)} are held. {listed}."]
    incomparable = [why for why in whys.values() if why.startswith(_INCOMPARABLE.partition("{")[0])]
    if len(incomparable) < len(whys):
        said.append(
            "A comparison could show who changed, and how. Publish less often, so that more "
            f"records change between editions, or leave {one} out."
        )
    if incomparable:
        said.append(
            f"Tabulate the records of that edition in the same way and enter {them} by `discreet "
            "ledger enter`, which publishes nothing."
        )
    tables = " ".join(f"--table {shlex.quote(name)}" for name in whys)
    accept = f"--name {shlex.quote(data_set.name)} --edition {shlex.quote(data_set.edition)}"
    said.append(
        f"The custodian can let {one} pass, which enters the reason: discreet ledger accept LEDGER "
        f"{accept} {tables} --reason '…'."
    )
    return LedgerError(" ".join(said))


@dataclass(frozen=True, eq=False)
class EarlierValues:
    """Values that were published before, by cell."""

    marks: Whole  # what a cell is known by in all editions, in rising order
    values: Array  # its published value
    status: Array  # why it shows what it shows
    place: Whole  # the place of the edition in its series, for each cell

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
    """The values that releases of a data set showed, kept in the ledger's file."""

    def __init__(self, path: str | Path) -> None:
        self._file = LedgerFile(path)

    def place(self, name: str, edition: str) -> int:
        """The place of an edition among those of its data set, in the order of their entry."""
        query = "SELECT edition FROM editions WHERE name = ? ORDER BY time, rowid"
        with self._file.reading() as db:
            known = [found for (found,) in db.execute(query, (name,))]
        return known.index(edition) if edition in known else len(known)

    def before(self, name: str, place: int, what: str) -> EarlierValues | None:
        """The latest value of every cell that editions before this place in the series showed.

        `what` tells one way of publishing from another: method, parameters and unit.
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
        """Keep the values of a release: what each cell is known by, its value and its status.

        `where` is data set, edition and its place in the series; `design` a digest of the table's.
        """
        blobs = [
            zlib.compress(np.asarray(part).astype(kind).tobytes())
            for part, kind in ((marks, "<i8"), (values, "<f8"), (status, "<i1"))
        ]
        with self._file.writing() as db:
            db.execute(_TABLE)
            row = (*where, what, design, *blobs)
            db.execute("INSERT OR REPLACE INTO published VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
