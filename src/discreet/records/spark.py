"""Spark: how to reach it, and what passes in both directions as Arrow."""

from __future__ import annotations

import os
import shutil
from typing import Any

from discreet.columns import Column
from discreet.errors import EngineError, MissingDependencyError, ParameterError
from discreet.frames import Frame
from discreet.records.connection import (
    Connection,
    GiveKeys,
    attempt,
    engine_function,
    without_unsigned,
)

_AT_ONCE = 5_000_000  # ids that are read, given keys and written together
_BINARY = "UTF8_BINARY"
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"  # where Spark keeps what a text column was declared as


def connect(address: str) -> tuple[Any, str, str | None]:
    """A back end on a cluster, its address, and the table in the address."""
    try:
        import pandas  # noqa: F401  # Ibis needs it to speak to Spark
        import pyspark  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("reading Spark", "pyspark", "spark") from error
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise EngineError("Spark needs Java: sudo apt-get install default-jre-headless")
    head, slash, table = address.removeprefix("spark://").partition("/")
    master = f"spark://{head}"
    session = attempt(lambda: _session(master), master)
    return backend_of(session), master, table if slash else None


def _session(master: str) -> Any:
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None and active.sparkContext.master != master:
        raise ParameterError(
            f"a Spark session on {active.sparkContext.master} is in use, and a program can have "
            f"one. Stop it, or give the session itself instead of {master}."
        )
    return SparkSession.builder.master(master).appName("discreet").getOrCreate()


def backend_of(session: Any) -> Any:
    """An Ibis back end on a session, whose time zone becomes UTC."""
    try:
        import ibis
    except ImportError as error:
        raise MissingDependencyError("reading Spark", "Ibis", "spark") from error
    return attempt(lambda: ibis.pyspark.connect(session), "the Spark session")


def view_of(frame: Any) -> tuple[Any, Any]:
    """A frame of Spark's as a table with its back end; its records stay in Spark."""
    backend = backend_of(frame.sparkSession)
    connection = SparkConnection(backend)
    return attempt(lambda: connection.exact(connection.view(frame)), "the Spark frame"), backend


class SparkConnection(Connection):
    """Cells come as Arrow, and keys go as Arrow."""

    def answer(self, query: Any) -> Frame:
        """The answer to a query; moments are in UTC."""
        found = self._frame(query).toArrow()
        return Frame.from_arrow(found.cast(query.schema().to_pyarrow()))

    def _frame(self, query: Any) -> Any:
        """A query as a frame of Spark's, not yet computed."""
        self.backend._run_pre_execute_hooks(query)  # small side tables of recodes
        return self.backend.raw_sql(self.backend.compile(query))

    def names(self) -> list[str]:
        """Tables of the current database, and those of the others with its name."""
        here = self.backend.current_database
        others = [name for name in self.backend.list_databases() if name != here]
        tables = self.backend.list_tables
        return [*tables(), *(f"{d}.{name}" for d in others for name in tables(database=d))]

    def has(self, name: str) -> bool:
        """Whether a name can be opened; a path is looked at when it is."""
        return "/" in name or bool(self._session.catalog.tableExists(_quote(name)))

    def table(self, name: str) -> Any:
        """A table of the catalogue, or Parquet files by their path."""
        if "/" in name:
            return self.backend.read_parquet(name)
        *place, table = name.split(".")
        database = place[0] if len(place) == 1 else tuple(place) or None
        return self.backend.table(table, database=database)

    def exact(self, table: Any) -> Any:
        """A table with texts that are equal only when their characters are."""
        trim = engine_function("rtrim", (str, str), str)
        changed = {}
        for field in self._frame(table.limit(0)).schema.fields:
            if getattr(field.dataType, "collation", _BINARY) != _BINARY:
                changed[field.name] = table[field.name].cast("binary").cast("string")
            elif field.metadata.get(_DECLARED, "").startswith("char("):
                changed[field.name] = trim(" ", table[field.name])
        return table.mutate(**changed)

    def view(self, frame: Any) -> Any:
        """A frame of Spark's under a name, no longer than the session."""
        from ibis.util import gen_name

        name = gen_name("discreet")
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)

    def lend(self, frame: Frame) -> Any:
        """A frame as a temporary view."""
        return self.view(self._session.createDataFrame(without_unsigned(frame).to_arrow()))

    def store(self, name: str, frame: Frame) -> Any:
        """A frame as a new table of the catalogue."""
        self._session.createDataFrame(without_unsigned(frame).to_arrow()).write.saveAsTable(
            _quote(name)
        )
        return self.table(name)

    def store_keys(self, name: str, side: Any, give_keys: GiveKeys) -> Any:
        """A new table of ids and their keys, in parts that are given its name when all are there.

        Each part is a scan of the ids: there is no other way to have them in this program a few at
        a time, and the secret does not leave it.
        """
        from ibis.util import gen_name
        from pyspark.sql import functions

        unfinished = ".".join([*name.split(".")[:-1], gen_name("discreet_keys")])
        n = self.answer(side.aggregate(n=side.count())).column(0)[0]
        parts = max(1, -(-n // _AT_ONCE))
        ids = self._frame(side.select(side[0])).toDF("id")
        try:
            for part in range(parts):
                # A hash of the ids tells which part an id is in, the same in every scan.
                share = functions.pmod(functions.xxhash64("id"), functions.lit(parts))
                keys = give_keys(Column(ids.where(share == part).toArrow().column(0)))
                rows = self._session.createDataFrame(keys.to_arrow())
                rows.write.mode("append").saveAsTable(_quote(unfinished))
            self._session.sql(f"ALTER TABLE {_quote(unfinished)} RENAME TO {_quote(name)}")
        except BaseException:
            self._session.sql(f"DROP TABLE IF EXISTS {_quote(unfinished)}")
            raise
        return self.table(name)

    @property
    def _session(self) -> Any:
        return self.backend._session


def _quote(name: str) -> str:
    """A name as Spark's parser reads it, part by part."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))
