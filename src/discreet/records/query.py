"""Queries on DuckDB as small trees that become SQL; what is asked of records is written once.

`SqlTable` and `Value` speak the part of Ibis's language that the questions to records need. So one
question (`expressions.py`, `recode.py`, `grouping.py`, …) is asked of DuckDB through these trees,
and of other engines through Ibis; `language_of` tells which. Names are quoted, numbers are written
out, and texts travel as variables, never as part of the SQL.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

from discreet.frames import Frame
from discreet.records.kinds import ColumnKind, kind_of_name, kinds_of

_BLANKS = " \t\n\r\v\f"
_BOOLEAN, _WHOLE, _REAL, _TEXT = map(kind_of_name, ("boolean", "int64", "float64", "string"))
_numbers = itertools.count()


def language_of(table: Any) -> Any:
    """What has `ifelse`, `literal` and their kin for a table: this module, or Ibis."""
    if isinstance(table, (SqlTable, Value)):
        return sys.modules[__name__]
    import ibis

    return ibis


class Compilation:
    """SQL in the making: its parameters, and the frames that must be lent to the engine."""

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}
        self.frames: dict[str, Any] = {}

    def parameter(self, value: Any) -> str:
        """The place of a value."""
        name = f"discreet_text_{next(_numbers)}"
        self.parameters[name] = value
        return f"getvariable('{name}')"


Names = Mapping[int, str]  # aliases by identity of relations; one for any other relation under 0
Write = Callable[[Compilation, Names], str]


@dataclass(frozen=True, eq=False, repr=False)
class Value:
    """A column, or what is computed of columns: how it is written, and its type."""

    write: Write
    kind: ColumnKind
    label: str = ""
    window: Write | None = None  # of a sum: written as part of a window

    def type(self) -> ColumnKind:
        """The type."""
        return self.kind

    def get_name(self) -> str:
        """The name."""
        return self.label

    def name(self, label: str) -> Value:
        """The same under another name."""
        return Value(self.write, self.kind, label, self.window)

    def cast(self, kind: str | ColumnKind) -> Value:
        """The value as another type; an error when it cannot be."""
        to = kind_of_name(kind) if isinstance(kind, str) else kind
        return _call("CAST({} AS " + to.sql + ")", to, self).name(self.label)

    def isnull(self) -> Value:
        """Whether it is missing."""
        return _call("({} IS NULL)", _BOOLEAN, self)

    def notnull(self) -> Value:
        """Whether it is there."""
        return _call("({} IS NOT NULL)", _BOOLEAN, self)

    def isnan(self) -> Value:
        """Whether it is not a number."""
        return _call("ISNAN({})", _BOOLEAN, self)

    def fill_null(self, other: Any) -> Value:
        """The value, or another one where it is missing."""
        return coalesce(self, other)

    def isin(self, values: Sequence[str]) -> Value:
        """Whether it is one of some texts of ours."""
        places = ", ".join("{}" for _ in values)
        return _call(f"({{}} IN ({places}))", _BOOLEAN, self, *map(_own_text, values))

    def abs(self) -> Value:
        """The absolute value."""
        return _call("ABS({})", self.kind, self)

    def floor(self) -> Value:
        """The largest whole number that is not above."""
        return _call("CAST(FLOOR({}) AS BIGINT)", _WHOLE, self)

    def __add__(self, other: Any) -> Value:
        text = self.kind.is_string()
        return _call("({} || {})" if text else "({} + {})", _joint(self, other), self, other)

    def __radd__(self, other: Any) -> Value:
        return _value(other) + self

    def __sub__(self, other: Any) -> Value:
        return _call("({} - {})", _joint(self, other), self, other)

    def __rsub__(self, other: Any) -> Value:
        return _value(other) - self

    def __mul__(self, other: Any) -> Value:
        return _call("({} * {})", _joint(self, other), self, other)

    def __rmul__(self, other: Any) -> Value:
        return _value(other) * self

    def __floordiv__(self, other: Any) -> Value:
        return _call("CAST(FLOOR({} / {}) AS BIGINT)", _WHOLE, self, other)

    def __mod__(self, other: Any) -> Value:
        return _call("({} % {})", _joint(self, other), self, other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return _call("({} = {})", _BOOLEAN, self, other)

    def __lt__(self, other: Any) -> Value:
        return _call("({} < {})", _BOOLEAN, self, other)

    def __le__(self, other: Any) -> Value:
        return _call("({} <= {})", _BOOLEAN, self, other)

    def __gt__(self, other: Any) -> Value:
        return _call("({} > {})", _BOOLEAN, self, other)

    def __ge__(self, other: Any) -> Value:
        return _call("({} >= {})", _BOOLEAN, self, other)

    def __and__(self, other: Any) -> Value:
        return _call("({} AND {})", _BOOLEAN, self, other)

    def __or__(self, other: Any) -> Value:
        return _call("({} OR {})", _BOOLEAN, self, other)

    def __invert__(self) -> Value:
        return _call("(NOT {})", _BOOLEAN, self)

    def re_search(self, pattern: str) -> Value:
        """Whether a pattern occurs in a text."""
        return _call("REGEXP_MATCHES({}, {})", _BOOLEAN, self, _own_text(pattern))

    def re_extract(self, pattern: str, group: int) -> Value:
        """A group of a pattern."""
        return _call("REGEXP_EXTRACT({}, {}, {})", _TEXT, self, _own_text(pattern), group)

    def re_replace(self, pattern: str, new: str) -> Value:
        """A text with another in place of a pattern."""
        texts = _own_text(pattern), _own_text(new)
        return _call("REGEXP_REPLACE({}, {}, {}, 'g')", _TEXT, self, *texts)

    def replace(self, old: str, new: str) -> Value:
        """A text with one part replaced."""
        return _call("REPLACE({}, {}, {})", _TEXT, self, old, new)

    def strip(self) -> Value:
        """A text without blanks at its ends."""
        return _call("TRIM({}, {})", _TEXT, self, _own_text(_BLANKS))

    def endswith(self, end: str) -> Value:
        """Whether a text ends so."""
        return _call("SUFFIX({}, {})", _BOOLEAN, self, end)

    def lpad(self, length: int, pad: str) -> Value:
        """A text with something in front until it is long enough."""
        missing = _call(f"REPEAT({{}}, {length} - LENGTH({{}}))", _TEXT, pad, self)
        return ifelse(_call(f"({length} <= LENGTH({{}}))", _BOOLEAN, self), self, missing + self)

    def substr(self, start: int, length: int) -> Value:
        """Part of a text, counted from zero."""
        return _call(f"SUBSTRING({{}}, {start + 1}, {length})", _TEXT, self)

    def join(self, texts: Sequence[Value]) -> Value:
        """Texts with this one between them."""
        places = ", ".join("{}" for _ in texts)
        return _call(f"CONCAT_WS({{}}, {places})", _TEXT, self, *texts)

    def hexdigest(self, how: str) -> Value:
        """The hash of a text in hexadecimal digits."""
        return _call(f"{how.upper()}({{}})", _TEXT, self)

    def exact(self) -> Value:
        """A text without the idea of equality that its column has."""
        return _call("DECODE(ENCODE({}))", _TEXT, self)

    def year(self) -> Value:
        """The year of a date."""
        return _call("EXTRACT(year FROM {})", _WHOLE, self)

    def quarter(self) -> Value:
        """The quarter of a date."""
        return _call("EXTRACT(quarter FROM {})", _WHOLE, self)

    def month(self) -> Value:
        """The month of a date."""
        return _call("EXTRACT(month FROM {})", _WHOLE, self)

    def day(self) -> Value:
        """The day of a date."""
        return _call("EXTRACT(day FROM {})", _WHOLE, self)

    def count(self) -> Value:
        """The number of values that are there."""
        return _sum("COUNT({})", _WHOLE, self)

    def nunique(self) -> Value:
        """The number of different values."""
        return _sum("COUNT(DISTINCT {})", _WHOLE, self)

    def sum(self, where: Value | None = None) -> Value:
        """The sum; of whole numbers a whole number."""
        kind = _WHOLE if self.kind.is_integer() or self.kind.is_boolean() else self.kind
        if self.kind.is_boolean():
            return self.cast("int32").sum(where)
        summed = "SUM({})" if where is None else "SUM({}) FILTER (WHERE {})"
        given = (self,) if where is None else (self, where)
        return _sum(summed, kind, *given, cast=kind is _WHOLE)

    def min(self) -> Value:
        """The least value."""
        return _sum("MIN({})", self.kind, self)

    def any(self) -> Value:
        """Whether it is true somewhere."""
        return _sum("BOOL_OR({})", _BOOLEAN, self)

    def mean(self) -> Value:
        """The mean."""
        return _sum("AVG({})", _REAL, self)

    def std(self, how: str) -> Value:
        """The standard deviation, of a population or a sample."""
        return _sum(f"STDDEV_{'POP' if how == 'pop' else 'SAMP'}({{}})", _REAL, self)

    def over(self, group_by: Any = (), order_by: Any = ()) -> Value:
        """A sum, or a number, within groups of records."""
        groups, orders = _several(group_by), _several(order_by)
        write, cast = self.window or self.write, self.window is not None and self.kind is _WHOLE

        def write_window(done: Compilation, names: Names) -> str:
            by = ", ".join(_reference(one, done, names) for one in groups)
            order = ", ".join(_reference(one, done, names) for one in orders)
            parts = [f"PARTITION BY {by}" if by else "", f"ORDER BY {order}" if order else ""]
            frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            ranked = f"{write(done, names)} OVER ({' '.join(filter(None, [*parts, frame]))})"
            if self.label == _ROW:
                return f"({ranked} - 1)"
            return f"CAST({ranked} AS BIGINT)" if cast else ranked

        return Value(write_window, self.kind)

    def desc(self) -> Value:
        """The value as an order from the largest down."""
        return _call("{} DESC", self.kind, self)


_ROW = "row number"


def literal(value: Any, kind: str | None = None) -> Value:
    """A constant."""
    found = _value(value)
    return found if kind is None else found.cast(kind)


def null(kind: Any) -> Value:
    """A missing value of some type."""
    to = _TEXT if kind is str else kind_of_name(kind) if isinstance(kind, str) else kind
    return Value(lambda done, names: f"CAST(NULL AS {to.sql})", to)


def ifelse(condition: Value, then: Any, otherwise: Any) -> Value:
    """One of two values."""
    return cases((condition, then), else_=otherwise)


def cases(*branches: tuple[Value, Any], else_: Any) -> Value:
    """The value of the first condition that holds."""
    written = "CASE " + "WHEN {} THEN {} " * len(branches) + "ELSE {} END"
    results = [*(then for _, then in branches), else_]
    flat = [part for branch in branches for part in branch]
    return _call(written, _joint(*results), *flat, else_)


def coalesce(*values: Any) -> Value:
    """The first value that is there."""
    places = ", ".join("{}" for _ in values)
    return _call(f"COALESCE({places})", _joint(*values), *values)


def least(*values: Any) -> Value:
    """The least of some values."""
    places = ", ".join("{}" for _ in values)
    return _call(f"LEAST({places})", _joint(*values), *values)


def and_(*conditions: Value) -> Value:
    """Whether all conditions hold."""
    return _call("(" + " AND ".join("{}" for _ in conditions) + ")", _BOOLEAN, *conditions)


def row_number() -> Value:
    """The number of a record, from zero; within groups by `over`."""
    plain = Value(lambda done, names: "ROW_NUMBER()", _WHOLE, _ROW)
    everywhere = plain.over()
    return Value(everywhere.write, _WHOLE, _ROW, plain.write)


def memtable(frame: Frame) -> SqlTable:
    """A frame of this program, lent to the engine while a query runs."""
    name = f"discreet_frame_{next(_numbers)}"

    def write(done: Compilation) -> str:
        done.frames[name] = frame
        return f"SELECT * FROM {quote_name(name)}"

    return SqlTable(write, _kinds_of_frame(name, frame))


def _kinds_of_frame(name: str, frame: Frame) -> Mapping[str, ColumnKind]:
    """The types that DuckDB gives the columns of a frame."""
    with _describer().cursor() as cursor:
        cursor.register(name, frame.slice(0, 0))
        return kinds_of(cursor.execute(f"DESCRIBE {quote_name(name)}").fetchall())


@functools.cache
def _describer() -> Any:
    import duckdb

    return duckdb.connect()


def _value(given: Any) -> Value:
    """A value, or a constant: numbers are written out, texts travel beside the query."""
    if isinstance(given, Value):
        return given
    if isinstance(given, bool):
        return Value(lambda done, names: str(given).upper(), _BOOLEAN)
    if isinstance(given, (int, float)):
        kind = _WHOLE if isinstance(given, int) else _REAL
        shown = repr(given) if isinstance(given, int) else repr(float(given))
        return Value(lambda done, names: shown if given >= 0 else f"({shown})", kind)
    return Value(lambda done, names: done.parameter(given), _TEXT)


def _own_text(text: str) -> Value:
    """A pattern of ours, written out so that the engine reads it once and not for each record."""
    return Value(lambda done, names: quote_text(text), _TEXT)


def _call(written: str, kind: ColumnKind, *given: Any) -> Value:
    values = [_value(one) for one in given]
    return Value(
        lambda done, names: written.format(*map(methodcaller("write", done, names), values)), kind
    )


def _sum(written: str, kind: ColumnKind, *given: Value, cast: bool = False) -> Value:
    """What is computed over records. Sums of whole numbers would come back as larger ones."""
    plain = _call(written, kind, *given)
    if not cast:
        return Value(plain.write, kind, "", plain.write)
    whole = _call("CAST({} AS BIGINT)", kind, plain)
    return Value(whole.write, kind, "", plain.write)


def _joint(*given: Any) -> ColumnKind:
    """The type of values that are computed together."""
    kinds = [_value(one).kind for one in given]
    for has in ("is_string", "is_floating", "is_decimal", "is_integer"):
        found = [kind for kind in kinds if getattr(kind, has)()]
        if found:
            return found[0] if has != "is_integer" else _WHOLE
    return kinds[0]


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _reference(given: Any, done: Compilation, names: Names) -> str:
    """A column by its name, or a value."""
    if isinstance(given, str):
        return f"{names[0]}.{quote_name(given)}"
    found: str = given.write(done, names)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class SqlTable:
    """Records as a query: a table, a file, or what was made of them."""

    write: Callable[[Compilation], str]
    kinds: Mapping[str, ColumnKind]
    origin: Any = field(default=None)  # kept while the relation is; a frame of Ibis's, or a name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.kinds)

    def schema(self) -> Mapping[str, ColumnKind]:
        """The types of the columns by name."""
        return self.kinds

    def __getitem__(self, name: str | int) -> Value:
        label = self.columns[name] if isinstance(name, int) else name
        quoted, me = quote_name(label), id(self)
        return Value(
            lambda done, names: f"{names.get(me, names[0])}.{quoted}", self.kinds[label], label
        )

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__") or name not in self.kinds:
            raise AttributeError(name)
        return self[name]

    def count(self) -> Value:
        """The number of records."""
        return _sum("COUNT(*)", _WHOLE)

    def select(self, *columns: str | Value, **named: Value) -> SqlTable:
        """Some columns, and values under names."""
        plain = [self[one] if isinstance(one, str) else one for one in columns]
        return self._project({one.label: one for one in plain} | named)

    def mutate(self, **named: Any) -> SqlTable:
        """All columns, with others or in other values."""
        return self._project({name: self[name] for name in self.columns} | named)

    def drop(self, *names: str) -> SqlTable:
        """The other columns."""
        return self.select(*(name for name in self.columns if name not in names))

    def _project(self, values: Mapping[str, Any], tail: str = "") -> SqlTable:
        made = {name: _value(value) for name, value in values.items()}

        def write(done: Compilation) -> str:
            listed = ", ".join(
                f"{value.write(done, {0: 't'})} AS {quote_name(name)}"
                for name, value in made.items()
            )
            return f"SELECT {listed} FROM ({self.write(done)}) AS t{tail}"

        return SqlTable(write, {name: value.kind for name, value in made.items()}, self.origin)

    def filter(self, condition: Value) -> SqlTable:
        """The records for which a condition holds."""
        return self._with_tail(lambda done: f" WHERE {condition.write(done, {0: 't'})}")

    def order_by(self, orders: Any) -> SqlTable:
        """The records in an order."""
        several = _several(orders)
        return self._with_tail(
            lambda done: " ORDER BY " + ", ".join(_reference(o, done, {0: "t"}) for o in several)
        )

    def limit(self, n: int) -> SqlTable:
        """The first records."""
        return self._with_tail(lambda done: f" LIMIT {n}")

    def _with_tail(self, tail: Callable[[Compilation], str]) -> SqlTable:
        return SqlTable(
            lambda done: f"SELECT * FROM ({self.write(done)}) AS t{tail(done)}",
            self.kinds,
            self.origin,
        )

    def union(self, other: SqlTable) -> SqlTable:
        """The records of both, one after the other."""
        return SqlTable(
            lambda done: f"({self.write(done)}) UNION ALL ({other.write(done)})",
            self.kinds,
            (self.origin, other.origin),
        )

    def left_join(self, other: SqlTable, condition: Value) -> SqlTable:
        """Every record with those of another relation that a condition joins, or with none."""

        def write(done: Compilation) -> str:
            listed = [f"l.{quote_name(name)}" for name in self.columns]
            listed += [f"r.{quote_name(name)}" for name in other.columns]
            joined = condition.write(done, {0: "l", id(other): "r"})
            return (
                f"SELECT {', '.join(listed)} FROM ({self.write(done)}) AS l "
                f"LEFT JOIN ({other.write(done)}) AS r ON {joined}"
            )

        return SqlTable(write, {**self.kinds, **other.kinds}, (self.origin, other.origin))

    def aggregate(self, **sums: Value) -> SqlTable:
        """One record of sums over all."""
        return self._project(sums)

    def group_by(self, *names: str, **values: Value) -> SqlGroups:
        """SqlGroups of records with the same values."""
        return SqlGroups(self, {**{name: self[name] for name in names}, **values})


@dataclass(frozen=True, eq=False, repr=False)
class SqlGroups:
    """Records in groups."""

    relation: SqlTable
    by: Mapping[str, Value]

    def aggregate(self, **sums: Value) -> SqlTable:
        """A record of sums for each group."""
        places = ", ".join(str(k + 1) for k in range(len(self.by)))
        return self.relation._project({**self.by, **sums}, f" GROUP BY {places}")


def quote_name(name: str) -> str:
    """A name as SQL reads it."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A text of our own as SQL reads it: patterns, paths and options."""
    return "'" + text.replace("'", "''") + "'"


def quote_option(value: Any) -> str:
    """An option of a reader as SQL writes it."""
    if isinstance(value, Mapping):
        pairs = (f"{quote_text(name)}: {quote_option(each)}" for name, each in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, bool):
        return str(value).upper()
    return str(value) if isinstance(value, int) else quote_text(str(value))


def compiled(relation: SqlTable) -> tuple[str, Compilation]:
    """The SQL of a relation with its parameters and frames."""
    done = Compilation()
    return relation.write(done), done
