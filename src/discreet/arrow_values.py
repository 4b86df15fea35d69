"""Values of any library as arrays in Arrow's memory: Python's own, NumPy's, those of pandas."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import arro3.core as arrow
import numpy as np

from discreet.arrays import Array
from discreet.arrow_memory import UNITS, Type, encoded, joined, masked, taken
from discreet.errors import ColumnError


def chunks_of(values: Any) -> Any:
    """Values as an array of arro3's, or as chunks of them."""
    if isinstance(values, (arrow.Array, arrow.ChunkedArray)):
        return values
    if hasattr(values, "array") and hasattr(values, "isna"):
        return _of_pandas(values.array)
    if hasattr(values, "isna"):
        return _of_pandas(values)
    if hasattr(values, "__arrow_c_stream__"):
        return arrow.ChunkedArray.from_arrow(values)
    if hasattr(values, "__arrow_c_array__"):
        return arrow.Array.from_arrow(values)
    return _of_numpy(values) if isinstance(values, np.ndarray) else _of_objects(list(values))


def _of_numpy(values: Array) -> Any:
    if values.ndim != 1:
        raise ColumnError(f"a column has one dimension, these values have {values.ndim}.")
    if isinstance(values, np.ma.MaskedArray):
        return masked(_of_numpy(values.data), np.ma.getmaskarray(values))
    if values.dtype.kind in "OUTS":
        return _of_objects(values.tolist())
    if values.dtype.kind not in "biufmM":
        raise ColumnError(f"values of NumPy's type {values.dtype} are not read.")
    if values.dtype.kind == "M":
        unit = np.datetime_data(values.dtype)[0]
        unit = unit if unit in ("D", *UNITS) else "s"
        start = np.zeros(1, dtype=f"M8[{unit}]")
        known = np.where(np.isnat(values), start, values).astype(start.dtype)
        return masked(arrow.Array.from_numpy(known), np.isnat(values))
    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    return arrow.Array.from_numpy(plain)


def _of_pandas(held: Any) -> Any:
    """An array of pandas; what it calls missing is null."""
    dtype = held.dtype
    if hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow":
        return chunks_of(held.__arrow_array__())
    if hasattr(dtype, "categories"):
        return taken(encoded(joined(chunks_of(held.categories))), np.asarray(held.codes))
    missing = np.asarray(held.isna())
    if getattr(dtype, "tz", None) is not None:
        moments = np.asarray(held, dtype=f"M8[{dtype.unit}]").view(np.int64)
        zoned = Type.timestamp(dtype.unit, tz=str(dtype.tz))
        return masked(arrow.Array.from_numpy(moments).cast(zoned), missing)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return masked(_of_numpy(np.asarray(held)), missing)
    if getattr(dtype, "kind", "O") in "biuf":  # with missing values, as pandas writes them
        filled = held.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.type(0))
        return masked(_of_numpy(filled), missing)
    listed = np.asarray(held, dtype=object)
    return _of_objects([None if m else v for v, m in zip(listed, missing.tolist(), strict=True)])


def _of_objects(values: list[Any]) -> Any:
    """Python's values, all of one type but for missing ones; whole numbers among floats are floats.

    NaN is a number among numbers, and a gap among everything else.
    """
    kinds = set(map(type, values)) - {type(None)}
    if any(kind.__name__ in _GAPS for kind in kinds):
        return _of_objects([None if type(v).__name__ in _GAPS else v for v in values])
    if not kinds:
        return arrow.Array(values, type=Type.string())
    if all(issubclass(kind, np.generic) for kind in kinds):
        values = [None if v is None else v.item() for v in values]
        kinds = set(map(type, values)) - {type(None)}
    for known, more_special, make in _MAKERS:
        if all(issubclass(kind, known) and not issubclass(kind, more_special) for kind in kinds):
            return make(values)
    if all(issubclass(kind, (int, float)) for kind in kinds) and bool not in kinds:
        return _of_numbers(values)
    if any(isinstance(v, float) and v != v for v in values):
        return _of_objects([None if isinstance(v, float) and v != v else v for v in values])
    named = " and ".join(sorted(kind.__name__ for kind in kinds))
    raise ColumnError(f"values of type {named} cannot stand in one column; give one simple type.")


def _of_whole_numbers(values: list[Any]) -> Any:
    try:
        return arrow.Array(values, type=Type.int64())
    except OverflowError:
        pass
    try:
        return arrow.Array(values, type=Type.uint64())
    except OverflowError:
        raise ColumnError("a whole number has more than 64 bits.") from None


def _of_numbers(values: list[Any]) -> Any:
    """Whole numbers among floats, of which each must be one."""
    floats = [None if v is None else float(v) for v in values]
    if any(v != f for v, f in zip(values, floats, strict=True) if isinstance(v, int)):
        raise ColumnError("a whole number among decimal ones has too many digits for them.")
    return arrow.Array(floats, type=Type.float64())


def _of_decimals(values: list[Any]) -> Any:
    finite = [None if v is None or not v.is_finite() else v for v in values]
    told = [v.as_tuple() for v in finite if v is not None]
    scale = max([0, *(-int(t.exponent) for t in told)])
    before = max([1, *(len(t.digits) + int(t.exponent) for t in told)])
    if before + scale > _LONGEST_DECIMAL:
        raise ColumnError(f"a decimal number has more than {_LONGEST_DECIMAL} digits.")
    texts = [None if v is None else format(v, "f") for v in finite]
    return arrow.Array(texts, type=Type.string()).cast(Type.decimal128(before + scale, scale))


def _of_moments(values: list[Any]) -> Any:
    zones = {v.tzinfo for v in values if v is not None}
    if None in zones and len(zones) > 1:
        raise ColumnError("some moments have a time zone and others none.")
    zone = next(iter(zones))
    start = datetime(1970, 1, 1, tzinfo=zone and UTC)
    ticks = [None if v is None else (v - start) // _MICROSECOND for v in values]
    name = None if zone is None else str(zone).removeprefix("UTC") or "UTC"
    name = name if len(zones) == 1 else "UTC"
    return arrow.Array(ticks, type=Type.int64()).cast(Type.timestamp("us", tz=name))


def _of_times(values: list[Any]) -> Any:
    def ticks(v: time) -> int:
        return ((v.hour * 60 + v.minute) * 60 + v.second) * 1_000_000 + v.microsecond

    found = [None if v is None else ticks(v) for v in values]
    return arrow.Array(found, type=Type.int64()).cast(Type.time64("us"))


_GAPS = ("NAType", "NaTType")
_LONGEST_DECIMAL = 38
_MICROSECOND = timedelta(microseconds=1)
_MAKERS: tuple[tuple[Any, Any, Callable[[list[Any]], Any]], ...] = (
    (str, (), lambda values: arrow.Array(values, type=Type.string())),
    (bool, (), lambda values: arrow.Array(values, type=Type.bool())),
    (int, bool, _of_whole_numbers),
    (float, (), lambda values: arrow.Array(values, type=Type.float64())),
    (datetime, (), _of_moments),
    (date, datetime, lambda values: _of_numpy(np.array(values, dtype="M8[D]"))),
    (time, (), _of_times),
    (Decimal, (), _of_decimals),
    (bytes, (), lambda values: arrow.Array(values, type=Type.binary())),
)
