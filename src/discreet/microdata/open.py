"""One way to open records, wherever they are."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from discreet import registry
from discreet.design.assembly import (
    Hierarchies,
    HierarchiesLike,
    as_hierarchies,
    frame_hierarchies,
)
from discreet.design.data_set import UNNAMED, DataSet
from discreet.design.frames import to_arrow, without_values
from discreet.design.hierarchy import Hierarchy
from discreet.design.keys import KeyConvention, convention
from discreet.errors import DataError, ParameterError
from discreet.files import PARQUET
from discreet.microdata import urls
from discreet.microdata.backend import attempt, border, duckdb, fetch, table_of
from discreet.microdata.code_list import CodeLists
from discreet.microdata.microdata import Editions, Microdata, check_spelling
from discreet.microdata.secret import Secret
from discreet.microdata.text_file import TextForm, read_text
from discreet.progress import notice

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
    random_keys: str | Path | None = None,
    encoding: str | None = None,
    decimal: str = ".",
) -> Microdata:
    """Records with roles.

    Codes in CSV files are text, so `01` stays `01`; only weights and keys are read as numbers. In a
    column of whole numbers alone, of which some are blank or written as `47` and others as `47.0`,
    both are the code `47`; a note says so. A code list that has `47.0` among its codes prevents it.
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
      random_keys: A Parquet file of keys that are drawn once: ids and keys, or without `id` a copy
        of the records with a key each. When it exists, its keys are used.
      encoding: Encoding of a CSV file, UTF-8 by default; `"cp1252"` for files of older Windows
        programs.
      decimal: Decimal sign of weights and keys in a CSV file.
    """
    lists = None if codes is None else _code_lists(codes, hierarchies or {})
    trees = {**as_hierarchies(hierarchies), **({} if lists is None else lists.hierarchies)}
    kept = [name for name in (id, *trees) if name and (name == id or _has_decimals(trees[name]))]
    form = TextForm([c for c in (key, weight) if c], kept, encoding, decimal)
    found = _found(source, table, form)
    for note in found.notes:
        notice(f"{found.origin}: {note}.")
    if random_keys is not None and id is None:
        found, key, convention = _keyed(found, random_keys, key or keys, _rule(convention))
    declared = {v: t for v, t in _categories(source).items() if v not in (weight, key, id)}
    data = Microdata(
        found.records,
        found.backend,
        found.origin,
        weight=weight,
        key=key,
        id=id,
        convention=_rule(convention),
        hierarchies={**declared, **trees},
        data_set=DataSet(_name_of(source, found.origin) if name is None else name, edition),
        notes=found.notes,
    )
    if lists is not None:
        data = replace(data, table=lists.inside(data.table), outside=lists.outside)
    if keys is not None:
        data = data.with_stored_keys(keys, id=id)
    elif random_keys is not None and id is not None:
        data = data.with_random_keys(random_keys, convention=_rule(convention))
    if secret is not None:
        data = _with_secret(data, secret, editions)
    return data if ledger is None else data.with_ledger(_ledger(ledger))


class Found(NamedTuple):
    """Records, the back end that holds them, a name for people, and what was done on the way."""

    records: Any
    backend: Any
    origin: str
    notes: tuple[str, ...] = ()


def _has_decimals(trees: Sequence[Hierarchy]) -> bool:
    """Whether a code list tells `47.0` from `47`."""
    return any(leaf.endswith((".0", ",0")) for tree in trees for leaf in tree.leaves)


def _keyed(
    found: Found, path: str | Path, others: Any, rule: KeyConvention
) -> tuple[Found, str | None, KeyConvention]:
    """A copy of the records with keys, the name of their column, and what they mean."""
    from discreet.microdata.keyed_copy import with_keys_in_copy

    if others is not None:
        raise ParameterError("random_keys= draws keys, but the records have some: key= or keys=.")
    raw = Microdata(found.records, found.backend, found.origin, convention=rule)
    copy = with_keys_in_copy(raw, path)
    return found._replace(records=copy.table, backend=copy.backend), copy.key, copy.convention


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


def _code_lists(codes: str | Path | CodeLists, others: HierarchiesLike) -> CodeLists:
    """Code lists, of other variables than those that have a hierarchy."""
    lists = codes if isinstance(codes, CodeLists) else CodeLists.read(codes)
    for name in lists.hierarchies:
        if name in others:
            raise ParameterError(
                f"variable {name!r} has a code list and a hierarchy. Name the hierarchy's file in "
                'the code list, hierarchy = "file", or remove one of the two.'
            )
    return lists


def _found(source: Any, table: str | None, form: TextForm) -> Found:
    """The records, wherever they are."""
    if isinstance(source, (str, Path)):
        return _named(str(source), table, form)
    _check_plain(form)
    if _is_session(source) or _is_spark_frame(source):
        return _spark(source, table)
    if table is not None:
        raise ParameterError("table= goes with a database: a DuckDB file, PostgreSQL or Spark.")
    if _is_ibis(source):
        backend = source.get_backend()
        exact = attempt(lambda: border(backend).exact(source), "the Ibis table")
        return Found(exact, backend, "the Ibis table")
    return _frame(source)


def _check_plain(form: TextForm) -> None:
    if not form.is_plain:
        raise ParameterError("encoding= and decimal= go with a CSV file.")


def _categories(source: Any) -> Hierarchies:
    """The code lists that a frame declares."""
    is_elsewhere = isinstance(source, (str, Path)) or _is_of_spark(source) or _is_ibis(source)
    return {} if is_elsewhere else frame_hierarchies(source)


def _named(source: str, table: str | None, form: TextForm) -> Found:
    """A file, or a server with an address."""
    place, named = urls.split_table(source)
    scheme = urls.scheme_of(place)
    if scheme is None or scheme not in registry.names("connection"):
        return _file(place, urls.one_table(named, table), form)
    _check_plain(form)
    backend, origin, inside = registry.load("connection", scheme)(place)
    return _table(backend, urls.one_table(named, inside, table), origin)


def _table(backend: Any, name: str | None, origin: str) -> Found:
    records, name = table_of(backend, name, origin)
    return Found(records, backend, f"{origin}{urls.TABLE_MARK}{name}")


def _spark(source: Any, table: str | None) -> Found:
    """A session with a table, or a frame."""
    from discreet.microdata import spark

    if _is_session(source):
        return _table(spark.backend_of(source), table, "the Spark session")
    if table is not None:
        raise ParameterError("table= goes with a Spark session, not with a frame.")
    return Found(*spark.view_of(source), "a Spark frame")


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


def _frame(source: Any) -> Found:
    import ibis
    import pyarrow as pa

    try:
        arrow = to_arrow(source)
    except (TypeError, pa.ArrowException) as error:
        raise DataError(f"the frame could not be read: {without_values(error)}") from None
    check_spelling(arrow.column_names)
    backend, records = duckdb(), ibis.memtable(arrow)
    fetch(backend, records.limit(0), "the frame")
    return Found(records, backend, "a frame")


def _file(path: str, table: str | None, form: TextForm) -> Found:
    backend = duckdb()
    if table is None and path.lower().endswith(TEXT):
        records, notes = attempt(lambda: read_text(backend, _existing(path), form), path)
        return Found(records, backend, path, notes)
    _check_plain(form)
    if table is not None or path.lower().endswith(DATABASE):
        return _database(path, table)
    if path.lower().endswith(PARQUET) or Path(path).is_dir():
        return Found(attempt(lambda: backend.read_parquet(_existing(path)), path), backend, path)
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


def _database(path: str, table: str | None) -> Found:
    if not Path(path).is_file():
        raise DataError(f"there is no file {path}.")
    return _table(attempt(lambda: duckdb(path), path), table, path)
