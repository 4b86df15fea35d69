"""Where records are: files, databases, clusters, stores and frames, each opened in its way."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet import registry
from discreet.design.hierarchy import Hierarchy
from discreet.errors import DataError, KeysError, ParameterError
from discreet.files import OWNER_ONLY, PARQUET, ending_of, written_whole
from discreet.frames import Frame, fresh_name, read_frame
from discreet.parquet import parquet_metadata, write_parquet
from discreet.records import connection as urls
from discreet.records import spark
from discreet.records.backend import check_standing, connection_of, fetch, table_of
from discreet.records.code_list import CodeLists
from discreet.records.connection import attempt
from discreet.records.duckdb import DuckDB, from_ibis, is_ibis
from discreet.records.expressions import content_sums
from discreet.records.file_formats import READERS, STORES, ending_of_records, kind_of, read_stored
from discreet.records.query import memtable
from discreet.records.record_keys import RECORD_KEY, Header, header_of, random_keys
from discreet.records.records import UnitRecords, check_spelling
from discreet.records.secret import Secret
from discreet.records.text_file import read_text
from discreet.records.text_form import TextForm
from discreet.tables.assembly import Hierarchies, HierarchiesLike, frame_hierarchies
from discreet.tables.keys import KeyConvention
from discreet.tables.storage import is_of_table
from discreet.tables.truth import UNNAMED, DataSet

_BATCH = 500_000  # records that are given keys and written together


class OpenedRecords(NamedTuple):
    """Records, the back end that holds them, a name for people, and what came or was done."""

    records: Any
    backend: Any
    origin: str
    notes: tuple[str, ...] = ()
    lists: Hierarchies = {}  # code lists that came with the records; they declare nothing


def name_of(source: Any, origin: str) -> str:
    """A name for the data set: that of the table or file."""
    _, mark, table = origin.rpartition(urls.TABLE_MARK)
    if mark:
        return table
    if is_ibis(source):
        import ibis.expr.operations as ops

        node = source.op()
        return str(node.name) if isinstance(node, ops.DatabaseTable) else UNNAMED
    if not isinstance(source, (str, Path)) or glob.has_magic(origin):
        return UNNAMED
    file = Path(origin).name
    ending = ending_of_records(file)
    return file[: len(file) - len(ending)] or UNNAMED


def code_lists_of(codes: str | Path | CodeLists, others: HierarchiesLike) -> CodeLists:
    """Code lists, of other variables than those that have a hierarchy."""
    lists = codes if isinstance(codes, CodeLists) else CodeLists.read(codes)
    for name in lists.hierarchies:
        if name in others:
            raise ParameterError(
                f"variable {name!r} has a code list and a hierarchy. Name the hierarchy's file in "
                'the code list, hierarchy = "file", or remove one of the two.'
            )
    return lists


def find_source(source: Any, table: str | None, form: TextForm) -> OpenedRecords:
    """The records, wherever they are."""
    if isinstance(source, (str, Path)):
        return _find_by_name(str(source), table, form)
    _check_plain(form)
    if _is_of_spark(source) and hasattr(source, "createDataFrame"):
        return _table(spark.backend_of(source), table, "the Spark session")
    if _is_of_spark(source) and hasattr(source, "createOrReplaceTempView"):
        if table is not None:
            raise ParameterError("table= goes with a Spark session, not with a frame.")
        return OpenedRecords(*spark.view_of(source), "a Spark frame")
    if table is not None:
        raise ParameterError("table= goes with a database: a DuckDB file, PostgreSQL or Spark.")
    if is_ibis(source):
        backend = source.get_backend()
        check_standing(backend)
        if backend.name == DuckDB.name:
            source, backend = attempt(lambda: from_ibis(source), "the Ibis table")
        exact = attempt(lambda: connection_of(backend).exact(source), "the Ibis table")
        return OpenedRecords(exact, backend, "the Ibis table")
    return _frame(source)


def _check_plain(form: TextForm) -> None:
    for option in form.said:
        raise ParameterError(f"{option}= goes with a file.")


def _find_by_name(source: str, table: str | None, form: TextForm) -> OpenedRecords:
    """A file, or a server with an address."""
    place, named = urls.split_table(source)
    scheme = urls.scheme_of(place)
    if scheme in STORES:
        return _open_stored(place, urls.one_table(named, table), form)
    if scheme is None or scheme not in registry.names("connection"):
        return _file(place, urls.one_table(named, table), form)
    _check_plain(form)
    backend, origin, inside = registry.load("connection", scheme)(place)
    return _table(backend, urls.one_table(named, inside, table), origin)


def _table(backend: Any, name: str | None, origin: str) -> OpenedRecords:
    records, name = table_of(backend, name, origin)
    return OpenedRecords(records, backend, f"{origin}{urls.TABLE_MARK}{name}")


def _is_of_spark(source: Any) -> bool:
    return type(source).__module__.startswith("pyspark.sql.")


def _frame(source: Any) -> OpenedRecords:
    frame = read_frame(source)
    check_spelling(frame.column_names)
    backend, records = DuckDB.connect(), attempt(lambda: memtable(frame), "the frame")
    fetch(backend, records.limit(0), "the frame")
    return OpenedRecords(records, backend, "a frame", (), frame_hierarchies(source))


def _open_stored(address: str, table: str | None, form: TextForm) -> OpenedRecords:
    if table is not None:
        raise ParameterError("table= goes with a database, not with an object store.")
    backend, origin = DuckDB.connect(), urls.public_address(address)
    content = attempt(lambda: read_stored(backend, address, form), origin)
    return OpenedRecords(content.records, backend, origin, content.notes)


def _file(path: str, table: str | None, form: TextForm) -> OpenedRecords:
    """A file by what it is; the engine reads text, Parquet and its own files itself."""
    kind, notes = kind_of(path, form)
    existing = _existing(path)
    if kind == "DuckDB":
        return _table(attempt(lambda: DuckDB.connect(path), path), table, path)
    if table is not None and kind != "Excel":
        raise ParameterError(f"{path} is a file of {kind}, in which no tables have names.")
    backend = DuckDB.connect()
    if kind == "text":
        files = [Path(file) for file in sorted(glob.glob(existing, recursive=True))]
        records, more = attempt(lambda: read_text(backend, files, form, existing), path)
        return OpenedRecords(records, backend, path, (*notes, *more))
    if kind == "Parquet":
        attempt(lambda: _check_records(Path(path)), path)
        records = attempt(lambda: backend.read_parquet(existing), path)
        return OpenedRecords(records, backend, path, notes)
    content = attempt(lambda: READERS[kind](backend, path, form, table), path)
    fetch(backend, content.records.limit(0), path)
    check_spelling(content.records.columns)
    return OpenedRecords(content.records, backend, path, (*notes, *content.notes), content.lists)


def _check_records(path: Path) -> None:
    """Refuse Parquet files without records; the engine would count cells as people."""
    if path.is_dir() and not any(path.rglob("*.parquet")):
        raise DataError(f"the folder {path} holds no Parquet files; name a file of records.")
    if path.is_file() and is_of_table(parquet_metadata(path)):
        raise DataError(
            f"{path} holds a table or a release of discreet, and no records: its rows are cells. "
            "Name the records that it was counted from."
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


def has_decimals(trees: Sequence[Hierarchy]) -> bool:
    """Whether a code list tells `47.0` from `47`."""
    return any(leaf.endswith((".0", ",0")) for tree in trees for leaf in tree.leaves)


def records_of_frame(frame: Any, data_set: DataSet, secret: Secret | None) -> UnitRecords:
    """The records of a frame under a name, without weights, keys or ids."""
    found = find_source(frame, None, TextForm())
    return UnitRecords(
        found.records,
        found.backend,
        found.origin,
        hierarchies=found.lists,
        undeclared=frozenset(found.lists),
        secret=secret,
        data_set=DataSet(data_set.name, data_set.edition, units=data_set.units),
        notes=found.notes,
    )


def keyed_source(
    found: OpenedRecords, path: str | Path, others: Any, rule: KeyConvention
) -> tuple[OpenedRecords, str | None, KeyConvention]:
    """A copy of the records with keys, the name of their column, and what they mean."""
    if others is not None:
        raise ParameterError("random_keys= draws keys, but the records have some: key= or keys=.")
    raw = UnitRecords(found.records, found.backend, found.origin, convention=rule)
    copy = with_keys_in_copy(raw, path)
    return found._replace(records=copy.table, backend=copy.backend), copy.key, copy.convention


def with_keys_in_copy(data: UnitRecords, path: str | Path) -> UnitRecords:
    """The records of a file with keys drawn once, in a copy that only its owner can read.

    Nothing tells records without ids apart but their place, which another export changes. So keys
    are not numbered by place: each record is written together with its key.

    Args:
      data: The records, as they were opened.
      path: A Parquet file. When it exists, its records and keys are used, and they must be the
        same records.
    """
    if data.backend.name != DuckDB.name:
        raise ParameterError(
            "records of a database get random keys by their ids: name the column with id=, or give "
            "the records a column of keys and name it with key=."
        )
    ending_of(path, PARQUET)
    is_there = Path(path).exists()
    if not is_there:
        _write(data, path)
    backend = DuckDB.connect()
    table = attempt(lambda: backend.read_parquet(str(path)), str(path))
    rule = header_of(Path(path)).convention or data.convention
    copy = UnitRecords(table, backend, data.origin, key=table.columns[-1], convention=rule)
    has_columns = set(copy.columns) - {copy.key} == set(data.columns)
    if is_there and not (has_columns and np.array_equal(content_sums(data), content_sums(copy))):
        raise KeysError(
            f"{path} holds other records than {data.origin}, or they were opened with other "
            "options. Records that changed are a new edition: draw its keys into a new file."
        )
    return copy


def _write(data: UnitRecords, path: str | Path) -> None:
    """Each record with a key from the operating system."""
    name, rule = fresh_name(RECORD_KEY, data.columns), data.convention
    batches = data.backend.to_batches(data.table, rows=_BATCH)

    def with_keys() -> Iterator[Frame]:
        while (batch := attempt(lambda: next(batches, None), data.origin)) is not None:
            yield batch.with_column(name, random_keys(len(batch), rule))

    with written_whole(path, OWNER_ONLY) as temporary:
        write_parquet(temporary, with_keys(), Header(rule).as_metadata())
