"""What the tables of a ledger hold, read and written within a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from discreet.accounting import Cost, Total
from discreet.ledger.editions import Edition
from discreet.ledger.sketch import Sketch
from discreet.tables.data_set import DataSet

_KINDS = {
    "private release": "SELECT time, name, edition, epsilon, delta, rho, step FROM costs",
    "table-wise release": "SELECT time, name, edition, number, digest, step FROM releases",
    "edition": "SELECT time, name, edition, keys FROM editions",
    "counts": "SELECT time, name, edition, variables, digest FROM counts",
}
_NAMES = " UNION ".join(
    f"SELECT name FROM {table}" for table in ("costs", "releases", "editions", "counts")
)


def names(db: sqlite3.Connection) -> list[str]:
    """The data sets of which something was entered."""
    return [name for (name,) in db.execute(f"{_NAMES} ORDER BY name")]


def all_rows(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Every entry as a plain dict, oldest first; neither marks of secrets nor sketches."""
    found: list[dict[str, Any]] = []
    for kind, query in _KINDS.items():
        cursor = db.execute(query)
        columns = [column[0] for column in cursor.description]
        found += [_row(kind, dict(zip(columns, values, strict=True))) for values in cursor]
    return sorted(found, key=lambda row: str(row["time"]))


def total_of(db: sqlite3.Connection, name: str) -> Total:
    """The costs of all private releases of a data set."""
    query = "SELECT epsilon, delta, rho, COUNT(*) FROM costs WHERE name = ? GROUP BY 1, 2, 3"
    return Total(
        tuple(
            (Cost(_number(epsilon), float(delta), _number(rho)), times)
            for epsilon, delta, rho, times in db.execute(query, (name,))
        )
    )


def add_cost(
    db: sqlite3.Connection, data_set: DataSet, cost: Cost, step: Mapping[str, object]
) -> None:
    """Enter the cost of a private release."""
    amounts = _text(cost.epsilon), _text(cost.delta), _text(cost.rho)
    row = (*_head(data_set), *amounts, _json(step))
    db.execute("INSERT INTO costs VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def budget_of(db: sqlite3.Connection, name: str) -> Cost | None:
    """The budget that is kept with the name."""
    query = "SELECT epsilon, delta FROM budgets WHERE name = ?"
    found = db.execute(query, (name,)).fetchone()
    return None if found is None else Cost(float(found[0]), float(found[1]))


def add_budget(db: sqlite3.Connection, name: str, budget: Cost) -> None:
    """Keep a budget with a name."""
    row = name, _text(budget.epsilon), _text(budget.delta)
    db.execute("INSERT INTO budgets VALUES (?, ?, ?)", row)


def releases_of(db: sqlite3.Connection, data_set: DataSet) -> dict[str, int]:
    """Numbers of the table-wise releases of an edition, by digest."""
    query = "SELECT digest, number FROM releases WHERE name = ? AND edition = ?"
    return dict(db.execute(query, (data_set.name, data_set.edition)).fetchall())


def add_release(
    db: sqlite3.Connection,
    data_set: DataSet,
    number: int,
    digest: str,
    step: Mapping[str, object],
) -> None:
    """Enter a table-wise release."""
    row = (*_head(data_set), number, digest, _json(step))
    db.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?)", row)


def editions_of(db: sqlite3.Connection, name: str) -> dict[str, Edition]:
    """What is known of each edition of a data set."""
    query = "SELECT edition, keys, mark, sketch FROM editions WHERE name = ?"
    return {
        edition: Edition(keys, mark, None if sketch is None else Sketch.from_bytes(sketch))
        for edition, keys, mark, sketch in db.execute(query, (name,))
    }


def put_edition(db: sqlite3.Connection, data_set: DataSet, edition: Edition) -> None:
    """Enter an edition, or what has become known of it."""
    sketch = None if edition.sketch is None else edition.sketch.to_bytes()
    db.execute(
        "INSERT INTO editions VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name, edition) DO UPDATE "
        "SET keys = excluded.keys, mark = excluded.mark, sketch = excluded.sketch",
        (*_head(data_set), edition.keys, edition.mark, sketch),
    )


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


def _row(kind: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row with numbers and steps in place of their texts."""
    for name in ("epsilon", "delta", "rho"):
        if name in row:
            row[name] = _number(row[name])
    if "step" in row:
        row["step"] = json.loads(row["step"])
    return {"entry": kind, **row}


def _text(amount: float | None) -> str | None:
    return None if amount is None else repr(float(amount))


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)


def _json(step: Mapping[str, object]) -> str:
    return json.dumps(dict(step), ensure_ascii=False, sort_keys=True, default=str)
