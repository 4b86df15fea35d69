"""PostgreSQL: how to reach it, and what passes in both directions as `COPY`."""

from __future__ import annotations

import io
import re
import weakref
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from discreet.columns import Column
from discreet.errors import EngineError, MissingDependencyError, ParameterError
from discreet.frames import Frame
from discreet.records.connection import (
    Connection,
    GiveKeys,
    engine_function,
    in_short,
    without_unsigned,
)

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 100_000  # ids that are read, given keys and written together
_BLOCK = 1 << 24
_FORM = "(FORMAT csv, ENCODING 'UTF8')"
_PORTS = re.compile(r"[\d,]*")
_TABLES = """
SELECT n.nspname, c.relname, pg_table_is_visible(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f')
AND n.nspname NOT IN ('pg_catalog', 'information_schema')
AND (n.nspname !~ '^pg_' OR pg_table_is_visible(c.oid))
ORDER BY 3 DESC, 1, 2
"""
# Blanks at the end of char(n) mean nothing; citext and some collations take `a` and `A` for one.
_INEXACT = """
SELECT a.attname
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE c.relname = %(name)s AND a.attnum > 0 AND NOT a.attisdropped
AND (n.nspname = %(schema)s OR %(schema)s::text IS NULL AND pg_table_is_visible(c.oid))
AND (t.typname IN ('bpchar', 'citext') OR NOT l.collisdeterministic)
"""


def connect(address: str) -> tuple[Any, str, str | None]:
    """A back end, a text that names it without user secrets, and the table in the address.

    What the address leaves out comes from libpq's usual places: the variables PGHOST, PGUSER,
    PGPASSWORD, PGSERVICE and their kin, the password file and the service file.
    """
    try:
        import ibis
        import pandas  # noqa: F401  # Ibis needs it to speak to PostgreSQL
        import psycopg
    except ImportError as error:
        missing = "Ibis and psycopg"
        raise MissingDependencyError("reading PostgreSQL", missing, "postgres") from error
    parts = _parts(address)
    database, _, table = str(parts.pop("dbname", "")).partition("/")
    user, host, port = (parts.get(part, "") for part in ("user", "host", "port"))
    place = f"{user}{'@' if user else ''}{host}{':' if port else ''}{port}"
    origin = f"postgresql://{place}/{database}"  # without a password
    chosen = {**parts, "dbname": database} if database else parts
    try:
        connection = psycopg.connect(**chosen, autocommit=True)
    except psycopg.Error as error:
        said = in_short(str(error).splitlines())
        # The cause would quote the arguments of the call, a password among them.
        raise EngineError(f"{origin} cannot be reached: {said}") from None
    backend = ibis.postgres.from_connection(connection)
    weakref.finalize(backend, connection.close)  # when nobody needs the back end any more
    return backend, origin, table or None


def _parts(address: str) -> dict[str, Any]:
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = dict(conninfo_to_dict(address))
    except ProgrammingError:  # its message quotes the address, perhaps with a password
        parts = {"port": "unreadable"}
    host, port, database = (str(parts.get(part, "")) for part in ("host", "port", "dbname"))
    if not _PORTS.fullmatch(port) or "@" in host + database:  # part of a password, misread
        raise ParameterError(
            "the address of the PostgreSQL server cannot be read. It should look like "
            "postgresql://user@host:5432/database::table, with special characters "
            "percent-encoded; leave the password to PGPASSWORD or the password file."
        )
    return parts


class PostgresConnection(Connection):
    """Cells come, and keys go, as `COPY`: whole columns at once, and no values in the query log."""

    def answer(self, query: Any) -> Frame:
        """The answer to a query, which may use all processes that PostgreSQL gives it."""
        self.backend._run_pre_execute_hooks(query)  # small side tables of recodes
        sql = f"COPY ({self.backend.compile(query)}) TO STDOUT {_FORM}"
        connection = self.backend.con
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL datestyle = 'ISO, YMD'")
            with cursor.copy(sql) as copy:
                content = b"".join(copy)
        return Frame.from_arrow(_read(content, query.schema()))

    def names(self) -> list[str]:
        """Tables and views; those outside the search path with their schema."""
        return [table if seen else f"{schema}.{table}" for schema, table, seen in self._tables()]

    def has(self, name: str) -> bool:
        """Whether a table has this name, with or without its schema."""
        return name in self._places()

    def table(self, name: str) -> Any:
        """A table by its name, with or without its schema."""
        return self._expression(*self._places()[name])

    def _places(self) -> dict[str, tuple[str, str]]:
        """Schema and table of every name that says which is meant."""
        rows = self._tables()
        visible = {name: (schema, name) for schema, name, is_visible in rows if is_visible}
        return {f"{schema}.{name}": (schema, name) for schema, name, _ in rows} | visible

    def _tables(self) -> list[tuple[str, str, bool]]:
        with self.backend.con.transaction():
            rows: list[tuple[str, str, bool]]
            rows = self.backend.con.execute(_TABLES).fetchall()
            return rows

    def _expression(self, schema: str | None, table: str) -> Any:
        """The table; Ibis would read a schema's name as SQL."""
        import ibis.expr.operations as ops

        columns = self.backend.get_schema(table, database=schema)
        place = ops.Namespace(database=schema)
        return ops.DatabaseTable(table, columns, self.backend, namespace=place).to_expr()

    def exact(self, table: Any) -> Any:
        """A table with texts that are equal only when their characters are."""
        import ibis.expr.operations as ops

        source = table.op()
        if not isinstance(source, ops.DatabaseTable):
            return table
        wanted = {"name": source.name, "schema": source.namespace.database}
        with self.backend.con.transaction():
            inexact = [name for (name,) in self.backend.con.execute(_INEXACT, wanted)]
        # A text that has gone through bytes has lost its column's idea of equality.
        to_bytes = engine_function("convert_to", (str, str), bytes)
        to_text = engine_function("convert_from", (bytes, str), str)
        plain = {name: to_text(to_bytes(table[name], "UTF8"), "UTF8") for name in inexact}
        return table.mutate(**plain)

    def digest(self, text: Any) -> Any:
        """The SHA-256 of a text, in hexadecimal digits."""
        to_bytes = engine_function("convert_to", (str, str), bytes)
        hashed = engine_function("sha256", (bytes,), bytes)
        in_digits = engine_function("encode", (bytes, str), str)
        return in_digits(hashed(to_bytes(text, "UTF8")), "hex")

    def lend(self, frame: Frame) -> Any:
        """A frame as a temporary table, dropped when the connection closes."""
        from ibis.util import gen_name

        return self._create((gen_name("discreet"),), frame, is_temporary=True)

    def store(self, name: str, frame: Frame) -> Any:
        """A frame as a new table."""
        return self._create(tuple(name.split(".", 1)), frame)

    def _create(self, place: tuple[str, ...], frame: Frame, is_temporary: bool = False) -> Any:
        import ibis

        plain = without_unsigned(frame)
        columns = ibis.schema(plain.to_arrow().schema)
        *schema, table = place
        with self.backend.con.transaction():
            made = self.backend.create_table(
                table, schema=columns, database=schema[0] if schema else None, temp=is_temporary
            )
            self._copy(place, _csv(plain))
            self.backend.con.execute(_statement("ANALYZE {}", place))
        return made

    def _copy(self, place: tuple[str, ...], content: Iterable[bytes]) -> None:
        order = _statement(f"COPY {{}} FROM STDIN {_FORM}", place)
        with self.backend.con.cursor() as cursor, cursor.copy(order) as copy:
            for part in content:
                copy.write(part)

    def store_keys(self, name: str, side: Any, give_keys: GiveKeys) -> Any:
        """A new table of ids and their keys, batch by batch in one transaction."""
        from psycopg import sql

        place = tuple(name.split(".", 1))
        ids = side.select(side[0])
        to_id: Callable[[Any], Any] = str if ids[0].type().is_uuid() else lambda value: value
        connection = self.backend.con
        with connection.transaction():
            like = sql.SQL(self.backend.compile(side))
            connection.execute(_statement("CREATE TABLE {} AS {} WITH NO DATA", place, like))
            with connection.cursor(name="discreet_ids") as reader:
                reader.execute(self.backend.compile(ids))
                while rows := reader.fetchmany(_AT_ONCE):
                    self._copy(place, _csv(give_keys(Column([to_id(row[0]) for row in rows]))))
            column = sql.Identifier(ids.columns[0])
            connection.execute(_statement("ALTER TABLE {} ADD PRIMARY KEY ({})", place, column))
            connection.execute(_statement("ANALYZE {}", place))
        return self._expression(place[0] if len(place) > 1 else None, place[-1])


def _statement(text: str, place: tuple[str, ...], *more: Any) -> Any:
    """A statement with the quoted name of a table in it, and further parts."""
    from psycopg import sql

    return sql.SQL(text).format(sql.Identifier(*place), *more)


def _read(content: bytes, schema: Any) -> pa.Table:
    """What `COPY` wrote, in the types of the schema; what Arrow does not know stays text."""
    import pyarrow as pa
    import pyarrow.csv as csv

    types = {}
    for name, kind in schema.items():
        is_bare = kind.is_decimal() and kind.precision is None
        known = kind.is_numeric() or kind.is_boolean() or kind.is_date() or kind.is_timestamp()
        types[name] = kind.to_pyarrow() if known and not is_bare else pa.string()
    if not content:
        return pa.table({name: pa.array([], kind) for name, kind in types.items()})
    found = csv.read_csv(
        io.BytesIO(content),
        csv.ReadOptions(column_names=list(schema.names), block_size=_BLOCK),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )
    for place, (name, kind) in enumerate(schema.items()):
        if kind.is_decimal() and kind.precision is None:
            texts = found.column(place).to_pylist()
            values = [None if text is None else Decimal(text) for text in texts]
            known = any(value is not None for value in values)  # else Arrow cannot infer a type
            column = pa.array(values) if known else pa.nulls(len(values))
            found = found.set_column(place, name, column)
    return found


def _csv(frame: Frame) -> Iterable[bytes]:
    """A frame as `COPY` reads it: what is quoted is a value, what is not is missing."""
    import pyarrow.csv as csv

    form = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    for batch in frame.to_arrow().to_batches(max_chunksize=_AT_ONCE):
        content = io.BytesIO()
        csv.write_csv(batch, content, form)
        yield content.getvalue()
