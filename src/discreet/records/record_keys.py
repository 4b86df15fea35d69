"""Record keys beside the records: a side table of ids and keys, made outside the engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.arrays import Whole
from discreet.columns import Column
from discreet.errors import DataError, KeysError, check_known
from discreet.files import OWNER_ONLY, PARQUET, ending_of, written_whole
from discreet.frames import Frame, fresh_name, read_frame
from discreet.parquet import parquet_metadata, read_parquet, write_parquet
from discreet.randomness import system_integers
from discreet.records.backend import connection_of, fetch, table_of
from discreet.records.connection import TABLE_MARK, attempt
from discreet.records.duckdb import DuckDB, from_ibis, is_ibis
from discreet.records.query import language_of, memtable
from discreet.tables.editions import EditionMode
from discreet.tables.keys import KeyConvention

RECORD_KEY = "record_key"
_HEADER = "discreet.keys"
KeysOf = Callable[[Any], Whole]


@dataclass(frozen=True, eq=False, repr=False)
class RecordKeys:
    """Keys by id."""

    id: str  # the column of ids, of the same name in the records and in the side table
    side: Any  # a query of two columns, the ids and `record_key`

    def join(self, table: Any) -> tuple[Any, str]:
        """The records with their keys, and the name of that column; null where there is no key."""
        key = fresh_name(RECORD_KEY, table.columns)
        other = fresh_name("id_of_key", [*table.columns, key])  # short: PostgreSQL cuts long names
        ids = self.side[self.id]
        if table[self.id].type().is_uuid() and ids.type().is_string():
            ids = ids.cast("uuid")
        side = self.side.select(ids.name(other), self.side[RECORD_KEY].name(key))
        joined = table.left_join(side, table[self.id] == side[other])
        return joined.drop(other), key


@dataclass(frozen=True)
class Header:
    """What is known of keys in a side table."""

    convention: KeyConvention | None = None
    keys: str = "given"  # the mode of editions they were made for
    edition: str | None = None  # the edition they were made for

    def check_edition(self, edition: str) -> None:
        """Refuse keys that were made for another edition of the records alone."""
        if EditionMode.parse(self.keys).is_by_edition and self.edition != edition:
            raise KeysError(
                f"the keys were made for edition {self.edition!r}, but the records are edition "
                f"{edition!r}. Make keys for this edition, or name the records' edition."
            )

    def as_metadata(self) -> dict[str, bytes]:
        """The header as a Parquet file stores it."""
        rule = self.convention
        known = {"side": "confidential", "keys": self.keys, "edition": self.edition}
        convention = None if rule is None else [rule.name, rule.modulus, rule.edge]
        return {_HEADER: json.dumps({**known, "convention": convention}).encode()}

    @classmethod
    def from_json(cls, stored: bytes) -> Header:
        """The header that was stored."""
        known = json.loads(stored)
        rule = known["convention"] and KeyConvention(*known["convention"])
        return cls(rule, known.get("keys", "given"), known.get("edition"))


def distinct_ids(backend: Any, table: Any, name: str, origin: str) -> Column:
    """The ids of all records, none missing and none twice."""
    ids = fetch(backend, table.select(table[name]), origin).column(0)
    if ids.null_count:
        raise _missing(name, ids.null_count)
    repeated = len(ids) - len(ids.encoded()[1])
    if repeated:
        raise _duplicates(name, repeated, "the records")
    return ids


def _missing(name: str, missing: int) -> DataError:
    return DataError(
        f"id column {name!r} has {missing:,} missing values; every record needs an id."
    )


def _duplicates(name: str, repeated: int, where: str) -> DataError:
    return DataError(
        f"id column {name!r} of {where} has {repeated:,} duplicates; records are told apart by "
        "their id, so each may occur once. `discreet check data` names them and the remedies."
    )


def side_table(name: str, ids: Column, keys: Whole) -> Frame:
    """Ids and keys side by side."""
    return Frame({name: ids, RECORD_KEY: keys})


def lend(backend: Any, name: str, side: Frame) -> RecordKeys:
    """Keys held by this program and lent to the engine as a table."""
    return RecordKeys(name, attempt(lambda: connection_of(backend).lend(side), "the keys"))


def store(
    backend: Any, table: Any, name: str, target: str, keys_of: KeysOf, origin: str
) -> RecordKeys:
    """Keys made here by `keys_of`, batch by batch, and stored in a new table of the engine."""
    connection = connection_of(backend)
    if attempt(lambda: connection.has(target), origin):
        raise KeysError(
            f"{origin} has a table {target!r} beside it already. Keys are made once: use them with "
            f"keys='{TABLE_MARK}{target}', or store them under another name."
        )
    _check_once(backend, table, name, origin, is_complete=True)
    side = table.select(table[name], **{RECORD_KEY: language_of(table).null("int64")})

    def give_keys(ids: Column) -> Frame:
        return side_table(name, ids, keys_of(ids))

    return RecordKeys(name, attempt(lambda: connection.store_keys(target, side, give_keys), origin))


def random_keys(n: int, rule: KeyConvention) -> Whole:
    """Uniform keys of a convention, from 64 bits of the operating system's source each."""
    words = system_integers(2 * n).astype(np.uint64)
    mixed = (words[:n] << np.uint64(32)) | words[n:]
    return (mixed % np.uint64(rule.modulus)).astype(np.int64)


def write(path: str | Path, side: Frame, header: Header) -> Path:
    """A side table in a Parquet file that only its owner can read."""
    ending_of(path, PARQUET)
    with written_whole(path, OWNER_ONLY) as temporary:
        write_parquet(temporary, side, header.as_metadata())
    return Path(path)


def read(backend: Any, source: Any, name: str | None) -> tuple[RecordKeys, Header]:
    """A side table, checked, and its header.

    The source is a Parquet file, `"::table"` for a table beside the records, a frame, or an Ibis
    table, with two columns: ids, and keys under the name `record_key`.
    """
    side, header = _open(backend, source)
    name = name or next(c for c in side.columns if c != RECORD_KEY)
    for column in (name, RECORD_KEY):
        check_known("column of the side table of keys", [column], side.columns)
    _check_once(backend, side, name, "the side table of keys")
    return RecordKeys(name, side), header


def check_match(backend: Any, table: Any, keys: RecordKeys, origin: str) -> None:
    """The records' ids have the side table's type, and none occurs twice."""
    check_known("id column", [keys.id], table.columns)
    here, there = table[keys.id].type(), keys.side[keys.id].type()
    is_text = [kind.is_string() or kind.is_uuid() for kind in (here, there)]
    if is_text[0] != is_text[1]:
        raise KeysError(
            f"id {keys.id!r} holds {here} in the records but {there} in the side table of keys."
        )
    _check_once(backend, table, keys.id, origin)


def _check_once(
    backend: Any, table: Any, name: str, where: str, *, is_complete: bool = False
) -> None:
    """No id occurs twice, as the engine counts them; and none is missing if all must be there."""
    by_id = table.group_by(id=table[name]).aggregate(times=table.count())
    some = by_id.id.notnull()
    counts = by_id.aggregate(
        missing=by_id.times.sum(where=~some),
        records=by_id.times.sum(where=some),
        ids=by_id.id.count(),
    )
    found = fetch(backend, counts, where)
    missing, records, ids = (int(column[0] or 0) for column in found.columns)
    if is_complete and missing:
        raise _missing(name, missing)
    if records != ids:
        raise _duplicates(name, records - ids, where)


def _open(backend: Any, source: Any) -> tuple[Any, Header]:
    if is_ibis(source):
        if connection_of(backend).backend.name != DuckDB.name:
            return source, Header()
        side, other = from_ibis(source)
        is_beside = other.con is backend.con
        return side if is_beside else memtable(other.answer(side)), Header()
    if not isinstance(source, (str, Path)):
        return connection_of(backend).lend(read_frame(source)), Header()
    if str(source).startswith(TABLE_MARK):
        name = str(source).removeprefix(TABLE_MARK)
        return table_of(backend, name, "the records' database")[0], Header()
    header = header_of(Path(source))
    if backend.name == "duckdb":
        return attempt(lambda: backend.read_parquet(str(source)), str(source)), header
    return connection_of(backend).lend(read_parquet(source)), header


def header_of(path: Path) -> Header:
    """What is known of the keys in a file, as noted when they were written."""
    metadata = parquet_metadata(path)
    return Header.from_json(metadata[_HEADER]) if _HEADER in metadata else Header()
