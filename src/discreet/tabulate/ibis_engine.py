"""Any Ibis back end as an engine: one grouping query, from which only cells come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from discreet.errors import DataError
from discreet.microdata.backend import fetch
from discreet.tabulate.engine import (
    COUNT,
    KEY,
    PARTS,
    WEIGHT,
    WEIGHT_SQUARED,
    as_array,
    check_keys,
    check_weights,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.microdata.microdata import Microdata

_LOWEST_WEIGHT, _LOWEST_KEY, _HIGHEST_KEY = "w_low", "k_low", "k_high"
_SUMS = (*PARTS, _LOWEST_WEIGHT, _LOWEST_KEY, _HIGHEST_KEY)


class IbisEngine:
    """DuckDB, PostgreSQL, Spark and whatever else Ibis speaks to.

    Counts, sums of weights and of squared weights, sums of keys and the checks of both are one
    `GROUP BY`. Names of columns are quoted by Ibis, and the cells come back under names of ours.
    """

    name = "ibis"

    def group(self, data: Microdata, variables: Sequence[str]) -> pa.Table:
        """The cells that occur; see `Engine.group`."""
        cells = fetch(data.backend, self.query(data, variables), data.origin)
        at = {name: place for place, name in enumerate(cells.column_names)}
        sums = [name for name in at if name in _SUMS]
        _check(data, {name: as_array(cells.column(name)) for name in sums}, _key_limit(data))
        kept = [*range(len(variables)), *(at[name] for name in sums if name in PARTS)]
        chosen = cells.select(kept)
        return chosen.rename_columns([*variables, *chosen.column_names[len(variables) :]])

    def query(self, data: Microdata, variables: Sequence[str]) -> Any:
        """The grouping as an Ibis expression."""
        table, key = data.keyed()
        sums = {COUNT: table.count()}
        if data.weight is not None:
            sums |= _weight_sums(table[data.weight])
        if key is not None:
            sums |= _key_sums(table[key], data.convention.modulus)
        if not variables:
            return table.aggregate(**sums)
        by = {f"v{i}": table[name] for i, name in enumerate(variables)}
        return table.group_by(**by).aggregate(**sums)


def _weight_sums(column: Any) -> dict[str, Any]:
    """Sums of weights and squares; a missing weight shows as a smallest one of minus infinity."""
    _require_numbers(column, "weight")
    w = column if column.type().is_float64() else column.cast("float64")
    return {
        WEIGHT: w.sum(),
        WEIGHT_SQUARED: (w * w).sum(),
        _LOWEST_WEIGHT: w.fill_null(float("-inf")).min(),
    }


def _key_sums(column: Any, modulus: int) -> dict[str, Any]:
    """The sum of keys and their range; a missing key shows as a smallest one of -1."""
    _require_numbers(column, "key")
    kind = column.type()
    if _is_fraction(kind):
        given = column if kind.is_float64() else column.cast("float64")
        whole = nearest(given * float(modulus)).cast("int64")
    else:
        is_safe = kind.is_integer() and not kind.is_uint64()
        given = whole = column if is_safe else column.cast("int64")
    return {
        KEY: whole.sum(),
        _LOWEST_KEY: given.fill_null(-1).min(),
        _HIGHEST_KEY: given.max(),
    }


def _key_limit(data: Microdata) -> float:
    """Keys are below the modulus, or below one when they are fractions."""
    column = None if data.key is None else data.table[data.key]
    is_fraction = column is not None and _is_fraction(column.type())
    return 1 if is_fraction else data.convention.modulus


def _require_numbers(column: Any, role: str) -> None:
    kind = column.type()
    if not (kind.is_numeric() or kind.is_string()) or kind.is_boolean():
        raise DataError(f"{role} column {column.get_name()!r} holds {kind}, not numbers.")


def _is_fraction(kind: Any) -> bool:
    """Whether keys of this type are fractions in [0, 1); text holds whole numbers."""
    return bool(kind.is_floating() or (kind.is_decimal() and kind.scale != 0))


def nearest(number: Any) -> Any:
    """The nearest whole number, halves to the even one: the same on every engine and in NumPy."""
    import ibis

    up = (number + 0.5).floor()
    is_odd_half = (up == number + 0.5) & (up % 2 == 1)
    return ibis.ifelse(is_odd_half, up - 1, up)


def _check(data: Microdata, sums: dict[str, NDArray[Any]], limit: float) -> None:
    """The checks that came back with the cells; where there are no records, nothing to check."""
    if not sums[COUNT].any():
        return
    if _LOWEST_WEIGHT in sums:
        check_weights(data, float(sums[_LOWEST_WEIGHT].min()), sums[WEIGHT])
    if _LOWEST_KEY in sums:
        check_keys(data, sums[_LOWEST_KEY].min(), sums[_HIGHEST_KEY].max(), limit)
