"""DuckDB: files, frames and tables as queries of our own, and what passes between it and us."""

from __future__ import annotations

import atexit
import contextlib
import functools
import glob
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.records.connection import Connection
from discreet.records.kinds import kinds_of
from discreet.records.query import (
    Compilation,
    SqlTable,
    compiled,
    memtable,
    quote_name,
    quote_option,
    quote_text,
)

if TYPE_CHECKING:
    import pyarrow as pa

_COLLATED = """
SELECT current_setting('default_collation') <> ''
  OR EXISTS (FROM duckdb_tables() WHERE sql ILIKE '%COLLATE%')
  OR EXISTS (FROM duckdb_views() WHERE NOT internal AND sql ILIKE '%COLLATE%')
"""
_DAY = 86_400  # seconds after which files that nobody writes to are nobody's
_OWNER = 0o700
_TABLES = "SELECT table_name FROM information_schema.tables ORDER BY table_name"


class DuckDB:
    """A connection to DuckDB, with tables and files as relations.

    Args:
      con: A connection of the package duckdb.
      origin: Whatever must live as long as the connection is used.
    """

    name = "duckdb"

    def __init__(self, con: Any, origin: Any = None) -> None:
        self.con, self._origin = con, origin

    @classmethod
    def connect(cls, path: str | None = None) -> DuckDB:
        """A database of its own: in memory, or a file that is only read."""
        import duckdb

        con = duckdb.connect(path or ":memory:", read_only=path is not None)
        con.execute("SET TimeZone = 'UTC'")
        con.execute("SET autoinstall_known_extensions = false")  # nothing is ever downloaded
        con.execute(f"SET temp_directory = {quote_text(spill_folder())}")
        return cls(con)

    def relation(self, sql: str, origin: Any = None) -> SqlTable:
        """A query of plain SQL as a relation."""
        kinds = kinds_of(self.con.execute(f"DESCRIBE {sql}").fetchall())
        return SqlTable(lambda done: sql, kinds, origin)

    def table(self, name: str) -> SqlTable:
        """A table, a view or a registered frame by its name."""
        return self.relation(f"SELECT * FROM {quote_name(name)}", name)

    def list_tables(self) -> list[str]:
        """Names of the tables and views."""
        return [name for (name,) in self.con.execute(_TABLES).fetchall()]

    def read_parquet(self, path: str) -> SqlTable:
        """Parquet files by a path or pattern."""
        return self._read("read_parquet", path, {})

    def notes_of_parquet(self, path: str) -> dict[bytes, bytes]:
        """What a Parquet file says of itself beside its columns."""
        asked = "SELECT key, value FROM parquet_kv_metadata(?)"
        return dict(self.con.execute(asked, [glob.escape(path)]).fetchall())

    def read_csv(self, path: str, **options: Any) -> SqlTable:
        """Text files by a path or pattern, with the reader's options."""
        return self._read("read_csv", path, options)

    def read_json(self, path: str, **options: Any) -> SqlTable:
        """JSON files by a path or pattern, with the reader's options."""
        return self._read("read_json", path, options)

    def _read(self, reader: str, path: str, options: Mapping[str, Any]) -> SqlTable:
        said = "".join(f", {name} = {quote_option(value)}" for name, value in options.items())
        return self.relation(f"SELECT * FROM {reader}({quote_text(path)}{said})")

    def register(self, name: str, frame: Any) -> SqlTable:
        """A frame or data set of Arrow's under a name, as long as the connection."""
        self.con.register(name, frame)
        return self.table(name)

    def create_table(self, name: str, frame: pa.Table) -> SqlTable:
        """A new table with the content of a frame."""
        with self._lent({"discreet_new": frame}):
            self.con.execute(f"CREATE TABLE {quote_name(name)} AS SELECT * FROM discreet_new")
        return self.table(name)

    def drop_table(self, name: str, *, force: bool = False) -> None:
        """Drop a table, if it is there."""
        self.con.execute(f"DROP TABLE {'IF EXISTS ' if force else ''}{quote_name(name)}")

    def to_pyarrow(self, relation: SqlTable) -> pa.Table:
        """The answer to a query; texts of a dictionary as plain texts."""
        sql, done = compiled(relation)
        with self._lent(done.frames):
            answer = self.con.execute(sql, done.parameters).to_arrow_table()
        return answer.cast(_plain_schema(answer.schema))

    def to_pyarrow_batches(self, relation: SqlTable, *, chunk_size: int) -> Iterator[Any]:
        """The answer to a query, batch by batch; frames stay lent until it ends."""
        import pyarrow as pa

        sql, done = compiled(relation)
        cursor = self.con.cursor()
        for name, frame in done.frames.items():
            cursor.register(name, frame)
        reader = cursor.execute(sql, done.parameters).to_arrow_reader(chunk_size)
        plain = _plain_schema(reader.schema)
        batches: Iterator[Any] = pa.RecordBatchReader.from_batches(
            plain, (batch.cast(plain) for batch in reader)
        )
        return batches

    @contextmanager
    def _lent(self, frames: Mapping[str, Any]) -> Iterator[None]:
        for name, frame in frames.items():
            self.con.register(name, frame)
        try:
            yield
        finally:
            for name in frames:
                self.con.unregister(name)


class DuckDBConnection(Connection):
    """What passes between this program and DuckDB."""

    def exact(self, table: Any) -> Any:
        """A table with texts that are equal only when their characters are.

        Only the statements that made tables and views tell of a collation. A view takes it from
        its tables, so one collation anywhere sends every text through bytes.
        """
        if table.origin is None:
            return table
        ((collated,),) = self.backend.con.execute(_COLLATED).fetchall()
        collated = collated or "COLLATE" in table.write(Compilation()).upper()
        texts = [name for name, kind in table.schema().items() if kind.is_string()]
        return table.mutate(**{name: table[name].exact() for name in texts}) if collated else table

    def lend(self, frame: pa.Table) -> SqlTable:
        """A frame as a relation, lent while a query runs."""
        return memtable(frame)


def is_ibis(source: Any) -> bool:
    """Whether this is a table of Ibis's; Ibis is not needed to tell."""
    if not type(source).__module__.startswith("ibis."):
        return False
    import ibis

    return isinstance(source, ibis.expr.types.Table)


def from_ibis(source: Any) -> tuple[SqlTable, DuckDB]:
    """A table of Ibis's DuckDB back end as a relation, with its connection."""
    import ibis.expr.operations as ops

    engine, node = source.get_backend(), source.op()
    backend = DuckDB(engine.con, engine)
    if isinstance(node, ops.DatabaseTable):
        # The whole name: an attached database may have a table of the same one.
        parts = (node.namespace.catalog, node.namespace.database, node.name)
        whole = ".".join(quote_name(part) for part in parts if part is not None)
        return backend.relation(f"SELECT * FROM {whole}", node.name), backend
    engine._run_pre_execute_hooks(source)  # frames that Ibis holds; the expression keeps them
    return backend.relation(str(engine.compile(source)), source), backend


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    def plain(kind: pa.DataType) -> pa.DataType:
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    return pa.schema([(field.name, plain(field.type)) for field in schema])


def spill_folder() -> str:
    """Where a connection writes what memory does not hold; it makes the folder, and removes it.

    DuckDB's files can be read by everybody, so they lie below a folder that is closed to others.
    All programs of a user share it: one of each program would stay behind whenever a program is
    killed, and workers always are.
    """
    closed = _closed_folder()
    for left in closed.iterdir():  # by programs that were killed while they wrote
        with contextlib.suppress(OSError):
            if time.time() - max(path.stat().st_mtime for path in (left, *left.iterdir())) > _DAY:
                shutil.rmtree(left)
    return str(closed / secrets.token_hex(8))


def _closed_folder() -> Path:
    """The user's folder; one of this program's where somebody else has taken its name."""
    if hasattr(os, "getuid"):
        shared = Path(tempfile.gettempdir()) / f"discreet-{os.getuid()}"
        with contextlib.suppress(FileExistsError):
            shared.mkdir(_OWNER)
        found = shared.lstat()
        is_closed = stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == _OWNER
        if is_closed and found.st_uid == os.getuid():
            return shared
    return Path(_own_folder())


@functools.cache
def _own_folder() -> str:
    folder = tempfile.mkdtemp(prefix="discreet-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
