"""Types of columns: what a column can hold, by the names that every engine shares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

_INTEGERS = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
}
_OTHERS = {
    "string": "VARCHAR",
    "float64": "DOUBLE",
    "float32": "FLOAT",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "time": "TIME",
    "uuid": "UUID",
    "binary": "BLOB",
    "timestamp(6)": "TIMESTAMP",
    "timestamp(9)": "TIMESTAMP_NS",
    "timestamp(3)": "TIMESTAMP_MS",
    "timestamp(0)": "TIMESTAMP_S",
}
_SQL = {**_INTEGERS, **_OTHERS}
_NAMES = {sql: name for name, sql in _SQL.items()} | {
    "HUGEINT": "decimal(38, 0)",
    "UHUGEINT": "decimal(38, 0)",
    "REAL": "float32",
    "TIMESTAMP WITH TIME ZONE": "timestamp('UTC', 6)",
    "INTERVAL": "interval('us')",
}
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)", re.IGNORECASE)


class TypeLimits(NamedTuple):
    """The least and the largest whole number of a type."""

    lower: int
    upper: int


@dataclass(frozen=True)
class ColumnKind:
    """The type of a column of DuckDB's, with the questions that Ibis answers of its own types."""

    name: str
    sql: str  # as the engine writes it

    def __str__(self) -> str:
        return self.name

    def copy(self, **_: Any) -> ColumnKind:
        """The same: every column may have missing values."""
        return self

    def is_string(self) -> bool:
        """Whether it holds texts."""
        return self.name == "string"

    def is_integer(self) -> bool:
        """Whether it holds whole numbers."""
        return self.name in _INTEGERS

    def is_uint64(self) -> bool:
        """Whether it holds whole numbers beyond those of 64 bits with a sign."""
        return self.name == "uint64"

    def is_floating(self) -> bool:
        """Whether it holds floating-point numbers."""
        return self.name in ("float32", "float64")

    def is_float64(self) -> bool:
        """Whether these have double precision."""
        return self.name == "float64"

    def is_decimal(self) -> bool:
        """Whether it holds decimal numbers."""
        return self.name.startswith("decimal")

    def is_numeric(self) -> bool:
        """Whether it holds numbers or truth values."""
        return self.is_integer() or self.is_floating() or self.is_decimal() or self.is_boolean()

    def is_boolean(self) -> bool:
        """Whether it holds truth values."""
        return self.name == "boolean"

    def is_date(self) -> bool:
        """Whether it holds days."""
        return self.name == "date"

    def is_timestamp(self) -> bool:
        """Whether it holds moments."""
        return self.name.startswith("timestamp")

    def is_uuid(self) -> bool:
        """Whether it holds universal ids."""
        return self.name == "uuid"

    def is_nested(self) -> bool:
        """Whether it holds lists or structures."""
        return self.name.startswith(("array", "struct", "map"))

    @property
    def scale(self) -> int:
        """Digits after the point of decimal numbers."""
        found = _DECIMAL.fullmatch(self.name)
        return int(found[2]) if found else 0

    @property
    def bounds(self) -> TypeLimits:
        """The range of whole numbers."""
        bits = int(self.name.removeprefix("u").removeprefix("int"))
        if self.name.startswith("u"):
            return TypeLimits(0, 2**bits - 1)
        return TypeLimits(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def kind_name(kind: Any) -> str:
    """The name of a type, by which a `Column` holds it; types of Ibis's have the same names."""
    return str(kind).removeprefix("!")  # Ibis marks columns without missing values


def kind_of_name(name: str) -> ColumnKind:
    """A type by the name that all engines share.

    >>> kind_of_name("int64").sql
    'BIGINT'
    """
    return ColumnKind(name, _SQL[name])


def kind_of_sql(sql: str) -> ColumnKind:
    """A type as DuckDB describes it.

    >>> [str(kind_of_sql(sql)) for sql in ("BIGINT", "DECIMAL(10,2)", "ENUM('a', 'b')")]
    ['int64', 'decimal(10, 2)', 'string']
    """
    if sql in _NAMES:
        return ColumnKind(_NAMES[sql], sql)
    if found := _DECIMAL.fullmatch(sql):
        return ColumnKind(f"decimal({found[1]}, {found[2]})", sql)
    if sql.endswith("]"):
        return ColumnKind(f"array<{kind_of_sql(sql[: sql.rindex('[')])}>", sql)
    if sql.startswith(("STRUCT", "MAP")):
        return ColumnKind(sql.lower(), sql)
    return (
        ColumnKind("string", sql)
        if sql.startswith(("ENUM", "VARCHAR"))
        else ColumnKind(sql.lower(), sql)
    )


def kinds_of(described: Iterable[tuple[Any, ...]]) -> Mapping[str, ColumnKind]:
    """The types of columns as `DESCRIBE` lists them."""
    return {str(row[0]): kind_of_sql(str(row[1])) for row in described}
