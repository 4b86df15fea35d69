"""What the tables of a ledger hold: rows in, and rows out."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from discreet.accounting import Cost, Relation, Total
from discreet.errors import LedgerError
from discreet.ledger.file import PUT_BACK
from discreet.tables.editions import EditionMode
from discreet.tables.sketches import Labels, Sketch, table_name
from discreet.tables.truth import DataSet

_KINDS = {
    "private release": "SELECT time, name, edition, epsilon, delta, rho, relation, step FROM costs",
    "release": "SELECT time, name, edition, number, digest, step FROM releases",
    "edition": "SELECT time, name, edition, keys FROM editions",
    "table": "SELECT time, name, edition, labels FROM sketches WHERE mark IS NULL",
    "counts": "SELECT time, name, edition, variables, digest FROM counts",
    "decision": "SELECT time, name, edition, decision, about, reason FROM decisions",
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
    db: sqlite3.Connection, data_set: DataSet, number: int, digest: str, step: Mapping[str, object]
) -> None:
    """Enter a release."""
    row = (*_head(data_set), number, digest, _json(step))
    db.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?)", row)


def forget_release(db: sqlite3.Connection, data_set: DataSet, number: int) -> None:
    """Take back the entry of a release that nobody has seen, with values kept of it."""
    named = (data_set.name, data_set.edition)
    db.execute(
        "DELETE FROM releases WHERE name = ? AND edition = ? AND number = ?", (*named, number)
    )
    if _has_values(db) and not releases_of(db, data_set):
        db.execute("DELETE FROM published WHERE name = ? AND edition = ?", named)


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
        raise LedgerError(f"the ledger has lost its key, so the file is damaged: {PUT_BACK}")
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
    tables = ["counts", "releases", "costs", *(["published"] if _has_values(db) else [])]
    queries = [f"SELECT 1 FROM {table} WHERE name = ? AND edition = ?" for table in tables]
    named = (data_set.name, data_set.edition)
    return any(db.execute(query, named).fetchone() for query in queries)


def _has_values(db: sqlite3.Connection) -> bool:
    """Whether there is a table of published values, which is made with the first of them."""
    found = "SELECT 1 FROM sqlite_master WHERE name = 'published'"
    return db.execute(found).fetchone() is not None


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
    new: Edition, others: Mapping[str, Edition], data_set: DataSet, rotated: Mapping[str, str]
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


def summary_line(found: Mapping[str, Any]) -> str:
    """What was spent of a data set's budget."""
    n = found["private_releases"]
    line = f"{found['name']}: {n} private release{'' if n == 1 else 's'}"
    cost = "costs" if n == 1 else "cost"
    apart = found["by_relation"]
    if len(apart) > 1:
        line += f" {cost} " + "; ".join(map(_spent_text, apart))
        line += f"; {_spent_text(found)} together" if found["relation"] else "; they have no sum"
    elif spent := _spent_text(found):
        line += f" {cost} {spent}" + (" together" if n > 1 else "")
    if found["relation_unsaid"]:
        line += (
            f" ({found['relation_unsaid']} of them were entered by a version that did not say for "
            "which neighbours, and are read as one record added or removed)"
        )
    if found["budget"] is None:
        return f"{line}; no budget."
    kept, together = found["budget"], found["epsilon_at_delta"]
    budget = Cost(kept["epsilon"], kept["delta"], relation=Relation(kept["relation"]))
    proved = "no finite ε" if together is None else f"ε = {together:g}"
    of = str(budget) if kept["relation"] == "add-remove" else budget_text(budget)
    return f"{line}; {proved} of a budget of {of}."


def _spent_text(found: Mapping[str, Any]) -> str:
    """Amounts that are not zero, and for whom."""
    parts = {"ε": found["epsilon"], "δ": found["delta"], "ρ": found["rho"]}
    spent = ", ".join(f"{sign} = {amount:g}" for sign, amount in parts.items() if amount)
    relation = found["relation"]
    return f"{spent} for {Relation.from_json(relation)}" if spent and relation else spent


def row_line(row: Mapping[str, Any]) -> str:
    """One entry."""
    line = f"{row['time']}  {row['name']}, edition {row['edition']}: {row['entry']}"
    step = ", ".join(f"{name} {value}" for name, value in row.get("step", {}).items())
    match row["entry"]:
        case "private release":
            cost = Cost(row["epsilon"], row["delta"], row["rho"])
            if row["relation"] is None:
                return f"{line}, {cost} ({step})"
            given = {k: v for k, v in row["relation"].items() if k != "replaced"}
            return f"{line}, {cost} for {Relation.from_json(given)} ({step})"
        case "release":
            return f"{line} {row['number']} ({step})"
        case "edition":
            return f"{line}, keys {row['keys']}" if row["keys"] else line
        case "table":
            return f"{line} {row['table']}"
        case "decision":
            return f"{line}, {row['decision']}: {row['reason']}"
    return f"{line} of {row['variables']}"


def budget_text(budget: Cost | None) -> str:
    """A budget in an error's words."""
    return "nothing" if budget is None else f"{budget} for {budget.relation}"
