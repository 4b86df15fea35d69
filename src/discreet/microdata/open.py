"""One way to open records, wherever they are."""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.design.assembly import (
    Hierarchies,
    HierarchiesLike,
    as_hierarchies,
    frame_hierarchies,
)
from discreet.design.data_set import UNNAMED, DataSet
from discreet.design.frames import to_arrow
from discreet.design.keys import KeyConvention, convention
from discreet.errors import DataError, ParameterError
from discreet.microdata import urls
from discreet.microdata.backend import attempt, border, duckdb, fetch, table_of
from discreet.microdata.code_list import CodeLists
from discreet.microdata.microdata import Editions, Microdata, check_spelling
from discreet.microdata.secret import Secret

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt")
DATABASE = (".duckdb", ".ddb", ".db")
_rule = convention


def open(
    source: Any,
    *,
    key: str | None = None,
    weight: str | None = None,
    id: str | None = None,
    codes: str | Path | CodeLists | None = None,
    hierarchies: HierarchiesLike | None = None,
    keys: Any = None,
    table: str | None = None,
    convention: str | KeyConvention = "discreet",
    name: str | None = None,
    edition: str = "1",
    secret: str | Path | Secret | None = None,
    editions: Editions = "kept",
    ledger: Any = None,
) -> Microdata:
    """Records with roles.

    Codes in CSV files are text, so `01` stays `01`; only weights and keys are read as numbers.
    Codes are declared by `codes`, by `hierarchies`, or by the frame (categories of a pandas
    categorical or a polars enum); those of other variables are found in the records.

    Args:
      source: A Parquet or CSV file, a pattern or a folder of Parquet files, a DuckDB file
        (`"file.duckdb::table"`), a PostgreSQL server (`"postgresql://host/database::table"`), a
        Spark cluster (`"spark://host:7077::table"`), session or frame, an Arrow, pandas or polars
        frame, or an Ibis table of any back end.
      key: Column of record keys.
      weight: Column of survey weights.
      id: Column that identifies a record.
      codes: A file of code lists, which also says what happens to records outside them
        (`discreet codes` drafts one); see `CodeLists.read`.
      hierarchies: By variable: a `Hierarchy`, several of them, or a file.
      keys: Record keys in a side table: a Parquet file, a table beside the records (`"::name"`), a
        frame or an Ibis table.
      table: Table of a database, when `source` does not name it.
      convention: What the keys mean.
      name: Name of the data set, the same in all its editions; by default that of the file or
        table.
      edition: Changes whenever the records do.
      secret: A secret or its file, which is made when it does not exist. It makes record keys from
        the ids; beside keys that are there, or without ids, it serves noise alone.
      editions: Whether keys made by the secret are `"kept"` over editions or `"redrawn"`, as for
        `Microdata.with_keys`.
      ledger: The custodian's `Ledger`, or its file; the edition is entered there.
    """
    records, backend, origin = _found(source, table, [c for c in (key, weight) if c])
    declared = {v: t for v, t in _categories(source).items() if v not in (weight, key, id)}
    data = Microdata(
        records,
        backend,
        origin,
        weight=weight,
        key=key,
        id=id,
        convention=_rule(convention),
        hierarchies={**declared, **as_hierarchies(hierarchies)},
        data_set=DataSet(_name_of(source, origin) if name is None else name, edition),
    )
    if codes is not None:
        data = _with_codes(data, codes, hierarchies or {})
    if keys is not None:
        data = data.with_stored_keys(keys, id=id)
    if secret is not None:
        data = _with_secret(data, secret, editions)
    return data if ledger is None else data.with_ledger(_ledger(ledger))


def _name_of(source: Any, origin: str) -> str:
    """A name for the data set: that of the table or file."""
    _, mark, table = origin.rpartition(urls.TABLE_MARK)
    if mark:
        return table
    if _is_ibis(source):
        return _table_name(source)
    if not isinstance(source, (str, Path)) or glob.has_magic(str(source)):
        return UNNAMED
    file = Path(source).name
    ending = next((e for e in (*PARQUET, *TEXT) if file.lower().endswith(e)), "")
    return file[: len(file) - len(ending)] or UNNAMED


def _table_name(table: Any) -> str:
    import ibis.expr.operations as ops

    source = table.op()
    return str(source.name) if isinstance(source, ops.DatabaseTable) else UNNAMED


def _with_secret(data: Microdata, secret: str | Path | Secret, editions: Editions) -> Microdata:
    found = secret if isinstance(secret, Secret) else Secret.from_file(secret, create=True)
    return data.with_secret(found, editions=editions)


def _ledger(ledger: Any) -> Any:
    from discreet.ledger import Ledger

    return Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger


def _with_codes(
    data: Microdata, codes: str | Path | CodeLists, others: HierarchiesLike
) -> Microdata:
    """The records that code lists cover, and their rules for the rest."""
    lists = codes if isinstance(codes, CodeLists) else CodeLists.read(codes)
    for name in lists.hierarchies:
        if name in others:
            raise ParameterError(
                f"variable {name!r} has a code list and a hierarchy. Name the hierarchy's file in "
                'the code list, hierarchy = "file", or remove one of the two.'
            )
    data = replace(data, hierarchies={**data.hierarchies, **lists.hierarchies})
    return replace(data, table=lists.inside(data.table), outside=lists.outside)


def _found(source: Any, table: str | None, numeric: list[str]) -> tuple[Any, Any, str]:
    """The records, their back end, and a name for people."""
    if isinstance(source, (str, Path)):
        return _named(str(source), table, numeric)
    if _is_session(source) or _is_spark_frame(source):
        return _spark(source, table)
    if table is not None:
        raise ParameterError("table= goes with a database: a DuckDB file, PostgreSQL or Spark.")
    if _is_ibis(source):
        backend = source.get_backend()
        exact = attempt(lambda: border(backend).exact(source), "the Ibis table")
        return exact, backend, "the Ibis table"
    return _frame(source)


def _categories(source: Any) -> Hierarchies:
    """The code lists that a frame declares."""
    is_elsewhere = isinstance(source, (str, Path)) or _is_of_spark(source) or _is_ibis(source)
    return {} if is_elsewhere else frame_hierarchies(source)


def _named(source: str, table: str | None, numeric: list[str]) -> tuple[Any, Any, str]:
    """A file, or a server with an address."""
    place, named = urls.split_table(source)
    scheme = urls.scheme_of(place)
    if scheme in urls.POSTGRES:
        from discreet.microdata.postgres import connect
    elif scheme in urls.SPARK:
        from discreet.microdata.spark import connect
    else:
        return _file(place, urls.one_table(named, table), numeric)
    backend, origin, inside = connect(place)
    return _table(backend, urls.one_table(named, inside, table), origin)


def _table(backend: Any, name: str | None, origin: str) -> tuple[Any, Any, str]:
    records, name = table_of(backend, name, origin)
    return records, backend, f"{origin}{urls.TABLE_MARK}{name}"


def _spark(source: Any, table: str | None) -> tuple[Any, Any, str]:
    """A session with a table, or a frame."""
    from discreet.microdata import spark

    if _is_session(source):
        return _table(spark.backend_of(source), table, "the Spark session")
    if table is not None:
        raise ParameterError("table= goes with a Spark session, not with a frame.")
    return *spark.view_of(source), "a Spark frame"


def _is_session(source: Any) -> bool:
    return _is_of_spark(source) and hasattr(source, "createDataFrame")


def _is_spark_frame(source: Any) -> bool:
    return _is_of_spark(source) and hasattr(source, "createOrReplaceTempView")


def _is_of_spark(source: Any) -> bool:
    return type(source).__module__.startswith("pyspark.sql.")


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


def _file(path: str, table: str | None, numeric: list[str]) -> tuple[Any, Any, str]:
    if table is not None or path.lower().endswith(DATABASE):
        return _database(path, table)
    backend = duckdb()
    if path.lower().endswith(TEXT):
        return attempt(lambda: _csv(backend, _existing(path), numeric), path), backend, path
    if path.lower().endswith(PARQUET) or Path(path).is_dir():
        return attempt(lambda: backend.read_parquet(_existing(path)), path), backend, path
    raise ParameterError(
        f"cannot tell what {path!r} is. Give a file that ends in .parquet, .csv or .duckdb, "
        "a folder of Parquet files, an address (postgresql://…, spark://…), a frame, or an "
        "Ibis table."
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
    return _table(attempt(lambda: duckdb(path), path), table, path)
