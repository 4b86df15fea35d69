"""Record keys beside the records: a side table of ids and keys, made outside the engine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.frames import to_arrow
from discreet.design.keys import KeyConvention
from discreet.errors import DataError, KeysError, UnknownNameError
from discreet.files import OWNER_ONLY, written_whole
from discreet.microdata.backend import attempt, fetch
from discreet.microdata.recode import fresh_name
from discreet.randomness import system_integers

if TYPE_CHECKING:
    import pyarrow as pa

RECORD_KEY = "record_key"
_HEADER = b"discreet.keys"


@dataclass(frozen=True, eq=False, repr=False)
class RecordKeys:
    """Keys by id.

    Attributes:
      id: The column of ids, of the same name in the records and in the side table.
      side: An Ibis table of two columns, the ids and `record_key`.
    """

    id: str
    side: Any

    def join(self, table: Any) -> tuple[Any, str]:
        """The records with their keys, and the name of that column; null where there is no key."""
        key = fresh_name(RECORD_KEY, table.columns)
        other = fresh_name(f"{self.id}_of_key", [*table.columns, key])
        side = self.side.select(self.side[self.id].name(other), self.side[RECORD_KEY].name(key))
        joined = table.left_join(side, table[self.id] == side[other])
        return joined.drop(other), key


def distinct_ids(backend: Any, table: Any, name: str, origin: str) -> pa.ChunkedArray:
    """The ids of all records, none missing and none twice."""
    import pyarrow.compute as pc

    ids = fetch(backend, table.select(table[name]), origin).column(0)
    if ids.null_count:
        raise DataError(
            f"id column {name!r} has {ids.null_count:,} missing values; every record needs an id."
        )
    repeated = len(ids) - pc.count_distinct(ids).as_py()
    if repeated:
        raise _duplicates(name, repeated, "the records")
    return ids


def _duplicates(name: str, repeated: int, where: str) -> DataError:
    return DataError(
        f"id column {name!r} of {where} has {repeated:,} duplicates; records are told apart by "
        "their id, so each may occur once."
    )


def side_table(name: str, ids: pa.ChunkedArray, keys: NDArray[np.int64]) -> pa.Table:
    """Ids and keys side by side."""
    import pyarrow as pa

    return pa.table({name: ids, RECORD_KEY: pa.array(keys)})


def in_memory(name: str, side: pa.Table) -> RecordKeys:
    """Keys held by this program and handed to the engine as a table."""
    import ibis

    return RecordKeys(name, ibis.memtable(side))


def random_keys(n: int, rule: KeyConvention) -> NDArray[np.int64]:
    """Uniform keys of a convention, from 64 bits of the operating system's source each."""
    words = system_integers(2 * n).astype(np.uint64)
    mixed = (words[:n] << np.uint64(32)) | words[n:]
    return (mixed % np.uint64(rule.modulus)).astype(np.int64)


def write(path: str | Path, side: pa.Table, rule: KeyConvention) -> Path:
    """A side table in a Parquet file that only its owner can read."""
    import pyarrow.parquet as pq

    header = {"side": "confidential", "convention": [rule.name, rule.modulus, rule.edge]}
    content = side.replace_schema_metadata({_HEADER: json.dumps(header).encode()})
    with written_whole(path, OWNER_ONLY) as temporary:
        pq.write_table(content, temporary, compression="zstd")
    return Path(path)


def read(backend: Any, source: Any, name: str | None) -> tuple[RecordKeys, KeyConvention | None]:
    """A side table from a Parquet file, a frame or an Ibis table, checked; and its convention.

    Args:
      backend: The engine that holds the records.
      source: Two columns: ids, and keys under the name `record_key`.
      name: The column of ids; by default the one beside the keys.
    """
    side, rule = _opened(backend, source)
    name = name or next(c for c in side.columns if c != RECORD_KEY)
    for column in (name, RECORD_KEY):
        if column not in side.columns:
            raise UnknownNameError("column of the side table of keys", column, side.columns)
    _check_once(backend, side, name, "the side table of keys")
    return RecordKeys(name, side), rule


def check_match(backend: Any, table: Any, keys: RecordKeys, origin: str) -> None:
    """The records' ids have the side table's type, and none occurs twice."""
    if keys.id not in table.columns:
        raise UnknownNameError("id column", keys.id, table.columns)
    here, there = table[keys.id].type(), keys.side[keys.id].type()
    if here.is_string() != there.is_string():
        raise KeysError(
            f"id {keys.id!r} holds {here} in the records but {there} in the side table of keys."
        )
    _check_once(backend, table, keys.id, origin)


def _check_once(backend: Any, table: Any, name: str, where: str) -> None:
    ids = table[name]
    counted = fetch(backend, table.aggregate(some=ids.count(), distinct=ids.nunique()), where)
    some, distinct = (column[0].as_py() for column in counted.columns)
    if some != distinct:
        raise _duplicates(name, some - distinct, where)


def _opened(backend: Any, source: Any) -> tuple[Any, KeyConvention | None]:
    import ibis

    if isinstance(source, ibis.expr.types.Table):
        return source, None
    if not isinstance(source, (str, Path)):
        return ibis.memtable(to_arrow(source)), None
    rule = _convention_of(Path(source))
    if backend.name == "duckdb":
        return attempt(lambda: backend.read_parquet(str(source)), str(source)), rule
    import pyarrow.parquet as pq

    return ibis.memtable(pq.read_table(source)), rule


def _convention_of(path: Path) -> KeyConvention | None:
    """What the keys in a file mean, as noted when they were written."""
    import pyarrow.parquet as pq

    if not path.is_file():
        raise DataError(f"there is no file {path}.")
    metadata = attempt(lambda: pq.read_schema(path).metadata or {}, str(path))
    if _HEADER not in metadata:
        return None
    name, modulus, edge = json.loads(metadata[_HEADER])["convention"]
    return KeyConvention(name, modulus, edge)
