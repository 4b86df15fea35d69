"""Any Ibis back end as an engine: one grouping query, from which only cells come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError
from discreet.microdata.backend import fetch
from discreet.tabulate.engine import (
    COUNT,
    KEY,
    WEIGHT,
    WEIGHT_SQUARED,
    as_array,
    bad_keys,
    check_weights,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.microdata.microdata import Microdata

_VALID_KEYS = "k_valid"


class IbisEngine:
    """DuckDB, PostgreSQL, Spark and whatever else Ibis speaks to.

    Counts, sums of weights and of squared weights, sums of keys and the checks of both are one
    `GROUP BY`. Names of columns are quoted by Ibis, and the cells come back under names of ours.
    """

    name = "ibis"

    def group(self, data: Microdata, variables: Sequence[str]) -> pa.Table:
        """The cells that occur; see `Engine.group`."""
        cells = fetch(data.backend, self.query(data, variables), data.origin)
        sums = {name: as_array(cells.column(name)) for name in cells.column_names[len(variables) :]}
        _check(data, sums)
        kept = [name for name in cells.column_names if name != _VALID_KEYS]
        return cells.select(kept).rename_columns([*variables, *kept[len(variables) :]])

    def query(self, data: Microdata, variables: Sequence[str]) -> Any:
        """The grouping as an Ibis expression."""
        table, key = data.keyed()
        sums = {COUNT: table.count()}
        if data.weight is not None:
            sums |= _weight_sums(_weights(table, data))
        if key is not None:
            sums |= _key_sums(table[key], data.convention.modulus)
        if not variables:
            return table.aggregate(**sums)
        by = {f"v{i}": table[name] for i, name in enumerate(variables)}
        return table.group_by(**by).aggregate(**sums)


def _weights(table: Any, data: Microdata) -> Any:
    column = table[data.weight]
    _require_numbers(column, "weight")
    return column if column.type().is_float64() else column.cast("float64")


def _weight_sums(w: Any) -> dict[str, Any]:
    """Sums of weights and squares; a weight that is missing or negative makes its sum NaN.

    Beside the sums themselves this costs next to nothing, unlike a smallest weight for each cell.
    """
    import ibis

    valid = ibis.ifelse(w >= 0, w, ibis.literal(float("nan")))
    return {WEIGHT: valid.sum(), WEIGHT_SQUARED: (w * w).sum()}


def _key_sums(column: Any, modulus: int) -> dict[str, Any]:
    """The sum of valid keys, and how many there are."""
    import ibis

    _require_numbers(column, "key")
    given = _as_numbers(column)
    is_fraction = given.type().is_floating()
    whole = nearest(given * float(modulus)).cast("int64") if is_fraction else given
    is_valid = (given >= 0) & (given < (1 if is_fraction else modulus))
    valid = ibis.ifelse(is_valid, whole, ibis.null("int64"))
    return {KEY: valid.sum(), _VALID_KEYS: valid.count()}


def _as_numbers(column: Any) -> Any:
    """Keys as integers or, when they have decimals, as floats; text holds whole numbers."""
    kind = column.type()
    if kind.is_floating() or (kind.is_decimal() and kind.scale != 0):
        return column if kind.is_float64() else column.cast("float64")
    is_safe = kind.is_integer() and not kind.is_uint64()
    return column if is_safe else column.cast("int64")


def _require_numbers(column: Any, role: str) -> None:
    kind = column.type()
    if not (kind.is_numeric() or kind.is_string()) or kind.is_boolean():
        raise DataError(f"{role} column {column.get_name()!r} holds {kind}, not numbers.")


def nearest(number: Any) -> Any:
    """The nearest whole number, halves to the even one: the same on every engine and in NumPy."""
    import ibis

    up = (number + 0.5).floor()
    is_odd_half = (up == number + 0.5) & (up % 2 == 1)
    return ibis.ifelse(is_odd_half, up - 1, up)


def _check(data: Microdata, sums: dict[str, NDArray[Any]]) -> None:
    """What the sums say about the weights and keys in them."""
    if WEIGHT in sums and not np.isfinite(sums[WEIGHT]).all():
        check_weights(data, _lowest_weight(data), sums[WEIGHT])
    if _VALID_KEYS in sums and (sums[_VALID_KEYS] != sums[COUNT]).any():
        raise bad_keys(data)


def _lowest_weight(data: Microdata) -> float:
    """The smallest weight, minus infinity when one is missing; asked only to explain an error."""
    w = _weights(data.table, data)
    found = fetch(data.backend, data.table.aggregate(low=w.min(), n=w.count()), data.origin)
    whole = fetch(data.backend, data.table.aggregate(n=data.table.count()), data.origin)
    is_missing = found.column("n")[0] != whole.column("n")[0]
    return float("-inf") if is_missing else float(found.column("low")[0].as_py())
