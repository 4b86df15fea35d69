"""The file of a ledger, and what its tables hold."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.accounting import Cost, Relation, Total
from discreet.errors import LedgerError
from discreet.files import OWNER_ONLY
from discreet.tables.editions import EditionMode
from discreet.tables.sketches import Labels, Sketch, table_name
from discreet.tables.truth import DataSet

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
    is, also when the program is killed or the power fails; writers wait for each other.

    Args:
      path: The file.
      create: Make it when it is not there; otherwise its absence is an error.
      any_version: Take a file of an older layout too.
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
        self._check_mode()
        with self.reading() as db:
            if not _is_ours(db):
                raise LedgerError(
                    f"{self.path} is not a ledger. Give the path of a ledger, or a path where "
                    f"there is no file yet. If it was a ledger, the file is damaged: {_PUT_BACK}"
                )
            found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise LedgerError(f"the ledger {self.path} is damaged: {found}. {_PUT_BACK}")
            self.version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if not any_version:
            self._check_version()

    def _check_mode(self) -> None:
        mode = self.path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise LedgerError(
                f"the ledger {self.path} has permissions {stat.S_IMODE(mode):o}: others can reach "
                f"it. Change them with `chmod 600 {self.path}`."
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
                f"discreet, on a disk of this machine. If the file is damaged: {_PUT_BACK}"
            ) from error


_PUT_BACK = (
    "put back its last copy (`discreet ledger backup` makes them), and enter what was released "
    "since then again by `discreet ledger enter`."
)


def _create(path: Path) -> None:
    """A new ledger under its name in one step; whoever comes second keeps the first one."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWNER_ONLY))
        write_schema(temporary)
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError as error:
        raise LedgerError(f"cannot open the ledger {path}: {error.strerror}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_schema(path: Path) -> None:
    """Make an empty file a ledger, with a key of its own."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            db.execute(statement)
        db.execute("INSERT INTO keys VALUES ('cells', ?)", (secrets.token_bytes(_KEY_BYTES),))
        db.execute("COMMIT")


def _is_ours(db: sqlite3.Connection) -> bool:
    return bool(db.execute("PRAGMA application_id").fetchone()[0] == _OURS)


_KINDS = {
    "private release": "SELECT time, name, edition, epsilon, delta, rho, relation, step FROM costs",
    "release": "SELECT time, name, edition, number, digest, step FROM releases",
    "edition": "SELECT time, name, edition, keys FROM editions",
    "table": "SELECT time, name, edition, labels FROM sketches WHERE mark IS NULL",
    "counts": "SELECT time, name, edition, variables, digest FROM counts",
    "decision": "SELECT time, name, edition, decision, reason FROM decisions",
}


def names(db: sqlite3.Connection) -> list[str]:
    """The data sets of which something was entered."""
    tables = ("costs", "releases", "editions", "counts", "decisions")
    query = " UNION ".join(f"SELECT name FROM {table}" for table in tables)
    return [name for (name,) in db.execute(f"{query} ORDER BY name")]


def all_rows(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Every entry as a plain dict, oldest first; neither marks of secrets nor sketches."""
    found: list[dict[str, Any]] = []
    for kind, query in _KINDS.items():
        cursor = db.execute(query)
        columns = [column[0] for column in cursor.description]
        for values in cursor:
            row: dict[str, Any] = {"entry": kind, **dict(zip(columns, values, strict=True))}
            row |= {name: _number(row[name]) for name in ("epsilon", "delta", "rho") if name in row}
            for name in ("step", "relation"):
                if row.get(name) is not None:
                    row[name] = json.loads(row[name])
            if "labels" in row:
                row["table"] = table_name(json.loads(row.pop("labels")))
            found.append(row)
    return sorted(found, key=lambda row: str(row["time"]))


def total_of(db: sqlite3.Connection, name: str) -> Total:
    """The costs of all private releases of a data set.

    Entries of earlier versions say no relation; they are read as one record added or removed.
    """
    query = (
        "SELECT epsilon, delta, rho, relation, COUNT(*) FROM costs WHERE name = ? "
        "GROUP BY 1, 2, 3, 4"
    )
    return Total(
        tuple(
            (_cost(_number(epsilon), float(delta), _number(rho), relation), times)
            for epsilon, delta, rho, relation, times in db.execute(query, (name,))
        )
    )


def unsaid_of(db: sqlite3.Connection, name: str) -> int:
    """How many costs of a data set were entered by versions that said no relation."""
    query = "SELECT COUNT(*) FROM costs WHERE name = ? AND relation IS NULL"
    return int(db.execute(query, (name,)).fetchone()[0])


def _cost(epsilon: float | None, delta: float, rho: float | None, stored: str | None) -> Cost:
    if stored is None:
        return Cost(epsilon, delta, rho)
    given = json.loads(stored)
    replaced = given.pop("replaced", None)
    other = None
    if replaced is not None:
        alike = {**given, "change": "replace"}
        other = Cost(**replaced, relation=Relation.from_json(alike))
    return Cost(epsilon, delta, rho, Relation.from_json(given), other)


def _stored_relation(cost: Cost) -> str:
    given = cost.relation.to_json()
    if cost.replaced is not None:
        amounts = {name: getattr(cost.replaced, name) for name in ("epsilon", "delta", "rho")}
        given["replaced"] = {k: v for k, v in amounts.items() if v is not None}
    return _json(given)


def add_cost(
    db: sqlite3.Connection, data_set: DataSet, cost: Cost, step: Mapping[str, object]
) -> None:
    """Enter the cost of a private release."""
    amounts = _text(cost.epsilon), _text(cost.delta), _text(cost.rho)
    row = (*_head(data_set), *amounts, _json(step), _stored_relation(cost))
    db.execute(
        "INSERT INTO costs (time, name, edition, epsilon, delta, rho, step, relation) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )


def budget_of(db: sqlite3.Connection, name: str) -> Cost | None:
    """The budget that is kept with the name."""
    query = "SELECT epsilon, delta, relation FROM budgets WHERE name = ?"
    found = db.execute(query, (name,)).fetchone()
    if found is None:
        return None
    return Cost(float(found[0]), float(found[1]), relation=Relation(found[2] or "add-remove"))


def add_budget(db: sqlite3.Connection, name: str, budget: Cost) -> None:
    """Keep a budget with a name."""
    row = name, _text(budget.epsilon), _text(budget.delta), budget.relation.change
    db.execute("INSERT INTO budgets (name, epsilon, delta, relation) VALUES (?, ?, ?, ?)", row)


def releases_of(db: sqlite3.Connection, data_set: DataSet) -> dict[str, int]:
    """Numbers of the releases of an edition, by digest."""
    query = "SELECT digest, number FROM releases WHERE name = ? AND edition = ?"
    return dict(db.execute(query, (data_set.name, data_set.edition)).fetchall())


def add_release(
    db: sqlite3.Connection,
    data_set: DataSet,
    number: int,
    digest: str,
    step: Mapping[str, object],
) -> None:
    """Enter a release."""
    row = (*_head(data_set), number, digest, _json(step))
    db.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?)", row)


def editions_of(db: sqlite3.Connection, name: str) -> dict[str, Edition]:
    """What is known of each edition of a data set."""
    query = "SELECT edition, keys, mark FROM editions WHERE name = ?"
    return {
        edition: Edition(keys and str(EditionMode.parse(keys)), mark)
        for edition, keys, mark in db.execute(query, (name,))
    }


def put_edition(db: sqlite3.Connection, data_set: DataSet, edition: Edition) -> None:
    """Enter an edition, or what has become known of it."""
    db.execute(
        "INSERT INTO editions (time, name, edition, keys, mark) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (name, edition) DO UPDATE SET keys = excluded.keys, mark = excluded.mark",
        (*_head(data_set), edition.keys, edition.mark),
    )


@dataclass(frozen=True)
class StoredSketch:
    """A sketch as the ledger keeps it: of the cells of a table, or by a mark of its records."""

    labels: Labels
    design: str
    mark: str | None
    sketch: Sketch


def sketches_of(db: sqlite3.Connection, name: str, edition: str) -> list[StoredSketch]:
    """All sketches of an edition."""
    query = "SELECT labels, design, mark, sketch FROM sketches WHERE name = ? AND edition = ?"
    return [
        StoredSketch(tuple(json.loads(labels)), design, mark, Sketch.from_bytes(sketch))
        for labels, design, mark, sketch in db.execute(query, (name, edition))
    ]


def add_sketch(db: sqlite3.Connection, data_set: DataSet, given: StoredSketch) -> None:
    """Enter the sketch of a table."""
    labels = labels_text(given.labels)
    row = (*_head(data_set), labels, given.design, given.mark, given.sketch.to_bytes())
    db.execute("INSERT INTO sketches VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def cell_key(db: sqlite3.Connection) -> bytes:
    """The key of the sketches of cells."""
    found = db.execute("SELECT key FROM keys WHERE purpose = 'cells'").fetchone()
    if found is None:
        raise LedgerError(f"the ledger has lost its key, so the file is damaged: {_PUT_BACK}")
    return bytes(found[0])


@dataclass(frozen=True)
class Decision:
    """What the custodian decided of an edition: accepted, withdrawn, corrected or rotated."""

    edition: str
    decision: str
    about: str


def decisions_of(db: sqlite3.Connection, name: str) -> list[Decision]:
    """All decisions on a data set, oldest first."""
    query = "SELECT edition, decision, about FROM decisions WHERE name = ? ORDER BY rowid"
    return [Decision(*row) for row in db.execute(query, (name,))]


def add_decision(
    db: sqlite3.Connection, data_set: DataSet, decision: str, about: str, reason: str
) -> None:
    """Enter a decision with its reason."""
    row = (*_head(data_set), decision, about, reason)
    db.execute("INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?)", row)


def labels_text(labels: Sequence[str]) -> str:
    """The labels of a table as a text that no other table has."""
    return json.dumps(list(labels), ensure_ascii=False)


def is_released(db: sqlite3.Connection, data_set: DataSet) -> bool:
    """Whether something of this edition was entered beside the edition itself."""
    found = "SELECT 1 FROM sqlite_master WHERE name = 'published'"  # made with the first release
    tables = [
        "counts",
        "releases",
        "costs",
        *(["published"] if db.execute(found).fetchone() else []),
    ]
    queries = [f"SELECT 1 FROM {table} WHERE name = ? AND edition = ?" for table in tables]
    named = (data_set.name, data_set.edition)
    return any(db.execute(query, named).fetchone() for query in queries)


def counts_of(db: sqlite3.Connection, data_set: DataSet, variables: str) -> str | None:
    """Digest of the counts that were entered for these variables."""
    query = "SELECT digest FROM counts WHERE name = ? AND edition = ? AND variables = ?"
    found = db.execute(query, (data_set.name, data_set.edition, variables)).fetchone()
    return None if found is None else str(found[0])


def add_counts(db: sqlite3.Connection, data_set: DataSet, variables: str, digest: str) -> None:
    """Enter the digest of the counts of some variables."""
    row = (*_head(data_set), variables, digest)
    db.execute("INSERT INTO counts VALUES (?, ?, ?, ?, ?)", row)


def _head(data_set: DataSet) -> tuple[str, str, str]:
    """The time of an entry and the records it is about."""
    return datetime.now(UTC).isoformat(timespec="milliseconds"), data_set.name, data_set.edition


def _text(amount: float | None) -> str | None:
    return None if amount is None else repr(float(amount))


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def _json(step: Mapping[str, object]) -> str:
    return json.dumps(dict(step), ensure_ascii=False, sort_keys=True, default=str)


OTHER_DATA = (
    "Give the data a new edition if they changed, or a name of their own if they are other data."
)


@dataclass(frozen=True)
class Edition:
    """What is known of an edition; `None` where nothing is."""

    keys: str | None = None  # the mode of editions, which decides about record keys
    mark: str | None = None  # the mark of the secret behind them

    def merge(self, new: Edition, data_set: DataSet) -> Edition:
        """What both know together; an error where they contradict each other."""
        for what, here, there in (
            ("way of making record keys", self.keys, new.keys),
            ("secret", self.mark, new.mark),
        ):
            if here is not None and there is not None and here != there:
                raise LedgerError(
                    f"{edition_text(data_set)} was entered with another {what}. {OTHER_DATA}"
                )
        return Edition(self.keys or new.keys, self.mark or new.mark)


def edition_text(data_set: DataSet) -> str:
    """The data set in an error's words."""
    return f"edition {data_set.edition!r} of data set {data_set.name!r}"


def check_kept_keys(
    new: Edition,
    others: Mapping[str, Edition],
    data_set: DataSet,
    rotated: Mapping[str, str],
) -> None:
    """Refuse a secret that is not the one behind editions which follow from each other.

    Keys that are kept or renewed, and the order in which values are repeated, come from one secret;
    fresh keys do not follow from earlier ones. A secret that was rotated is followed to the one
    that took its place.
    """
    for name, other in others.items():
        is_one = new.keys == other.keys and new.keys not in (None, "fresh")
        latest = other.mark
        for _ in rotated:
            latest = latest if latest is None else rotated.get(latest, latest)
        if is_one and new.mark and other.mark and new.mark not in (other.mark, latest):
            raise LedgerError(
                f"{edition_text(data_set)} is in mode {new.keys!r}, but its secret is not that of "
                f"edition {name!r}. Use that secret or its copy. If it is lost, "
                "draw keys anew for each edition, editions='fresh'; if others have seen it, "
                "exchange it by `discreet secret rotate`."
            )
