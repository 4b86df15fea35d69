"""Records in their roles as Ibis expressions: those within bounds, weights, keys as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.errors import DataError
from discreet.frames import fresh_name

if TYPE_CHECKING:
    from discreet.microdata.records import UnitRecords


def within_bounds(table: Any, data: UnitRecords) -> Any:
    """The records that are counted: those of each person with the lowest ids, up to the bound."""
    import ibis

    bounds = data.data_set.bounds
    if bounds.person is None:
        return table
    place = fresh_name("record_of_person", table.columns)
    number = ibis.row_number().over(group_by=table[bounds.person], order_by=table[data.id])
    numbered = table.mutate(**{place: number})
    return numbered.filter(numbered[place] < bounds.max_records).drop(place)


def bounded_weights(table: Any, data: UnitRecords) -> tuple[Any, Any]:
    """The weights as they were given, and cut to their bound."""
    import ibis

    given, bound = weights_of(table, data), data.data_set.bounds.weight
    return given, given if bound is None else ibis.least(given, bound)


def weights_of(table: Any, data: UnitRecords) -> Any:
    """The weights as they were given."""
    column = table[data.weight]
    require_numbers(column, "weight")
    return column if column.type().is_float64() else column.cast("float64")


def whole_keys(column: Any, modulus: int) -> tuple[Any, Any]:
    """Keys as whole numbers, and whether they lie in their range."""
    require_numbers(column, "key")
    given = _as_numbers(column)
    if given.type().is_floating():
        return nearest(given * float(modulus)).cast("int64"), (given >= 0) & (given < 1)
    return given, (given >= 0) & (given < modulus)


def _as_numbers(column: Any) -> Any:
    """Keys as integers or, when they have decimals, as floats; text holds whole numbers."""
    kind = column.type()
    if kind.is_floating() or (kind.is_decimal() and kind.scale != 0):
        return column if kind.is_float64() else column.cast("float64")
    is_safe = kind.is_integer() and not kind.is_uint64()
    return column if is_safe else column.cast("int64")


def require_numbers(column: Any, role: str) -> None:
    """Refuse a column that cannot be read as numbers."""
    kind = column.type()
    if not (kind.is_numeric() or kind.is_string()) or kind.is_boolean():
        raise DataError(f"{role} column {column.get_name()!r} holds {kind}, not numbers.")


def nearest(number: Any) -> Any:
    """The nearest whole number, halves to the even one: the same on every engine and in NumPy."""
    import ibis

    up = (number + 0.5).floor()
    is_odd_half = (up == number + 0.5) & (up % 2 == 1)
    return ibis.ifelse(is_odd_half, up - 1, up)
