"""The guard over editions: a table that differs too little from an earlier one is held."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from discreet.errors import LedgerError
from discreet.ledger import entries
from discreet.ledger.entries import OTHER_DATA, Decision, StoredSketch, edition_text
from discreet.tables.sketches import Labels, RecordSketches, SketchedTable, table_name
from discreet.tables.truth import DataSet

ACCEPTED, WITHDRAWN, CORRECTED, ROTATED = "accepted", "withdrawn", "corrected", "rotated"
_ALIKE = 0.5  # unrelated sketches have a likeness of 0 ± 0.016, those of neighbours one near 1


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
    for labels in dict.fromkeys(table.labels for table in tables):
        is_free = not labels or entries.labels_text(labels) in free
        if min_changed and not is_free and not _is_covered(labels, own):
            mine = [s for s in new if s.labels == labels]
            keys = [s for s in new if not s.labels]
            for edition, stored in earlier.items():
                _compare(data_set, edition, mine, keys, stored, min_changed)
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


def _compare(
    data_set: DataSet,
    edition: str,
    mine: Sequence[StoredSketch],
    keys: Sequence[StoredSketch],
    stored: Sequence[StoredSketch],
    min_changed: int,
) -> None:
    """Hold a table that is too near to that of another edition, or cannot be compared with it."""
    labels, designs = mine[0].labels, {one.design for one in mine}
    theirs = [known for known in stored if known.labels == labels]
    if not theirs:
        # A table that the other edition never had: enough people who came or went will do.
        changed = _changes([one for one in keys if one.mark is not None], stored)
        if changed is None or changed < min_changed:
            raise _not_comparable(data_set, labels, edition, "has no such table in the ledger")
        return
    if not designs <= {known.design for known in theirs}:
        raise _not_comparable(data_set, labels, edition, "had other code lists or other `moves`")
    of_cells = _changes([one for one in mine if one.mark is None], theirs)
    if of_cells is None:
        raise _not_comparable(data_set, labels, edition, "has cells that look unrelated to these")
    of_records = _changes([one for one in mine if one.mark is not None], theirs)
    changed = of_cells if of_records is None else min(of_cells, of_records)
    if changed < min_changed:
        raise LedgerError(
            f"table {table_name(labels)!r} of {edition_text(data_set)} is held: it differs from "
            f"that of edition {edition!r} by about {changed} records, fewer than "
            f"min_changed={min_changed}, so a comparison could show who changed, and how. Publish "
            "less often, so that more records change between editions, or leave this table out. "
            f"{_ON_THE_RECORD}"
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


def _not_comparable(data_set: DataSet, labels: Labels, edition: str, why: str) -> LedgerError:
    return LedgerError(
        f"table {table_name(labels)!r} of {edition_text(data_set)} is held: it cannot be compared "
        f"with edition {edition!r}, which {why}. Tabulate the records of edition {edition!r} in "
        "the same way and enter the table by `discreet ledger enter`, which publishes nothing. "
        f"{_ON_THE_RECORD}"
    )


_ON_THE_RECORD = (
    "The custodian can let it pass by `discreet ledger accept`, which enters the reason."
)
