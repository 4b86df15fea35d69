"""One way to open records, wherever they are."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

from discreet.design.assembly import HierarchiesLike, as_hierarchies
from discreet.design.frames import to_arrow
from discreet.design.keys import KeyConvention, convention
from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.microdata.backend import attempt, duckdb, fetch
from discreet.microdata.microdata import Microdata, check_spelling

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
DATABASE = (".duckdb", ".ddb", ".db")
_TABLE_MARK = "::"
_rule = convention


def open(
    source: Any,
    *,
    key: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    hierarchies: HierarchiesLike | None = None,
    keys: Any = None,
    table: str | None = None,
    convention: str | KeyConvention = "discreet",
) -> Microdata:
    """Records with roles.

    Codes in CSV files are text, so `01` stays `01`; only weights and keys are read as numbers.

    Args:
      source: A Parquet or CSV file, a pattern or a folder of Parquet files, a DuckDB file
        (`"file.duckdb::table"`), an Arrow, pandas or polars frame, or an Ibis table.
      key: Column of record keys.
      weight: Column of survey weights.
      id: Column that identifies a record.
      hierarchies: By variable: a `Hierarchy`, several of them, or a file.
      keys: Record keys in a side table: a Parquet file, a frame or an Ibis table.
      table: Table of a DuckDB file.
      convention: What the keys mean.
    """
    records, backend, origin = _found(source, table, [c for c in (key, weight) if c])
    data = Microdata(
        records,
        backend,
        origin,
        weight=weight,
        key=key,
        id=id,
        convention=_rule(convention),
        hierarchies=as_hierarchies(hierarchies),
    )
    return data if keys is None else data.with_stored_keys(keys, id=id)


def _found(source: Any, table: str | None, numeric: list[str]) -> tuple[Any, Any, str]:
    """The records, their back end, and a name for people."""
    if isinstance(source, (str, Path)):
        return _file(str(source), table, numeric)
    if table is not None:
        raise ParameterError("table= goes with a DuckDB file.")
    if _is_ibis(source):
        return source, source.get_backend(), "the Ibis table"
    return _frame(source)


def _is_ibis(source: Any) -> bool:
    if not type(source).__module__.startswith("ibis."):
        return False
    import ibis

    return isinstance(source, ibis.expr.types.Table)


def _frame(source: Any) -> tuple[Any, Any, str]:
    import ibis
    import pyarrow as pa

    try:
        arrow = to_arrow(source)
    except (TypeError, pa.ArrowException) as error:
        raise DataError(f"the frame could not be read: {error}") from error
    check_spelling(arrow.column_names)
    backend, records = duckdb(), ibis.memtable(arrow)
    fetch(backend, records.limit(0), "the frame")
    return records, backend, "a frame"


def _file(source: str, table: str | None, numeric: list[str]) -> tuple[Any, Any, str]:
    path, mark, named = source.partition(_TABLE_MARK)
    wanted = named if mark else table
    if wanted is not None or path.lower().endswith(DATABASE):
        return _database(path, wanted)
    backend = duckdb()
    if path.lower().endswith(TEXT):
        return attempt(lambda: _csv(backend, _existing(path), numeric), path), backend, path
    if path.lower().endswith(PARQUET) or Path(path).is_dir():
        return attempt(lambda: backend.read_parquet(_existing(path)), path), backend, path
    raise ParameterError(
        f"cannot tell what {path!r} is. Give a file that ends in .parquet, .csv or .duckdb, "
        "a folder of Parquet files, a frame, or an Ibis table."
    )


def _existing(path: str) -> str:
    """The path as the engine reads it: names taken literally, folders as all their files."""
    if Path(path).is_dir():
        return f"{glob.escape(path)}/**/*.parquet"
    if Path(path).is_file():
        return glob.escape(path)
    if not glob.glob(path, recursive=True):
        raise DataError(f"there is no file {path}.")
    return path


def _csv(backend: Any, path: str, numeric: list[str]) -> Any:
    """A CSV file with every column as text but those in a numeric role."""
    sniffed = backend.read_csv(path, header=True).schema()
    types = dict.fromkeys(sniffed, "VARCHAR")
    for name in numeric:
        if name in sniffed and sniffed[name].is_numeric():
            types[name] = "BIGINT" if sniffed[name].is_integer() else "DOUBLE"
    return backend.read_csv(path, header=True, types=types)


def _database(path: str, table: str | None) -> tuple[Any, Any, str]:
    if not Path(path).is_file():
        raise DataError(f"there is no file {path}.")
    backend = attempt(lambda: duckdb(path), path)
    known = attempt(backend.list_tables, path)
    if table is None and len(known) != 1:
        listed = ", ".join(repr(name) for name in known) or "none"
        raise ParameterError(f"{path} holds these tables: {listed}. Name one with table=.")
    name = table if table is not None else known[0]
    if name not in known:
        raise UnknownNameError(f"table of {path}", name, known)
    return attempt(lambda: backend.table(name), path), backend, f"{path}{_TABLE_MARK}{name}"
