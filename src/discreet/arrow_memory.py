"""Arrays in Arrow's memory: types by the names that engines share, and what arro3 leaves out."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import arro3.core as arrow
import numpy as np

from discreet.arrays import Array, Mask
from discreet.errors import ColumnError

Type = arrow.DataType
WHOLE = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_PLAIN: dict[str, Any] = {
    **{name: getattr(Type, name)() for name in (*WHOLE, "float16", "float32", "float64")},
    "string": Type.string(),
    "binary": Type.binary(),
    "boolean": Type.bool(),
    "date": Type.date32(),
    "time": Type.time64("us"),
    "uuid": Type.string(),
}
UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DECIMAL = re.compile(r"decimal\((\d+), ?(-?\d+)\)", re.IGNORECASE)
_MOMENT = re.compile(r"timestamp(?:\((?:'(?P<zone>[^']*)'(?:, )?)?(?P<digits>\d)?\))?")
NESTED = ("array", "struct", "map")


def type_of(kind: str) -> Any:
    """The type of Arrow's that holds a kind."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if found := _DECIMAL.fullmatch(kind):
        return Type.decimal128(int(found[1]), int(found[2]))
    if found := _MOMENT.fullmatch(kind):
        digits = int(found["digits"] or 6)
        unit = min((u for u, d in UNITS.items() if d >= digits), key=UNITS.__getitem__)
        return Type.timestamp(unit, tz=found["zone"])  # type: ignore[arg-type]
    raise ColumnError(f"there is no column of {kind}.")


def kind_of(held: Any) -> str:
    """The name of an Arrow type; that of the values of a dictionary."""
    if Type.is_dictionary(held):
        return kind_of(held.value_type)
    if Type.is_string(held) or Type.is_large_string(held) or Type.is_string_view(held):
        return "string"
    if Type.is_timestamp(held):
        digits = UNITS[held.time_unit]
        return f"timestamp({digits})" if held.tz is None else f"timestamp({held.tz!r}, {digits})"
    told = repr(held).strip().removeprefix("arro3.core.DataType<").removesuffix(">")
    if Type.is_decimal(held):
        return "decimal" + told[told.index("(") :]
    if Type.is_date(held) or Type.is_time(held):
        return "date" if Type.is_date(held) else "time"
    if "Binary" in told and "(" not in told:
        return "binary"
    name = told.split("(")[0].lower()
    return "array" + told[len(name) :] if name.endswith(("list", "listview")) else _lower_head(told)


def _lower_head(told: str) -> str:
    head = re.match(r"\w*", told)
    return told[: head.end()].lower() + told[head.end() :] if head else told


def chunked(arrays: Sequence[Any]) -> Any:
    """Arrays of one type as chunks, one behind the other."""
    return arrow.ChunkedArray(list(arrays))


def joined(chunks: Any) -> Any:
    """One array of some chunks."""
    if isinstance(chunks, arrow.Array):
        return chunks
    if chunks.num_chunks == 1:
        return chunks.chunk(0)
    if chunks.num_chunks == 0:
        return empty(chunks.type)
    try:
        return chunks.combine_chunks()
    except Exception:  # texts of more than 2 GiB; arro3 raises bare exceptions
        if chunks.type != Type.string():
            raise
        return chunks.cast(Type.large_string()).combine_chunks()


def empty(held: Any) -> Any:
    """An array of a type without values."""
    return arrow.Array([], type=Type.string()).cast(held)


def taken(array: Any, places: Array) -> Any:
    """The values at some places; null where a place is negative."""
    if len(places) and places.max() >= len(array):
        raise IndexError(f"there is no value at {places.max()} of {len(array)}.")
    gaps = places < 0
    if gaps.any():
        array = joined(chunked([array, arrow.Array([None], type=Type.string()).cast(array.type)]))
        places = np.where(gaps, len(array) - 1, places)
    return array.take(arrow.Array.from_numpy(np.ascontiguousarray(places, dtype=np.int64)))


def encoded(array: Any) -> Any:
    """An array as places in a list of its values."""
    if Type.is_dictionary(array.type):
        return array
    if array.type in (Type.large_string(), Type.string_view()):
        array = array.cast(Type.string())
    return array.cast(Type.dictionary(Type.int32(), array.type))


def masked(array: Any, mask: Any) -> Any:
    """An array with nulls where a mask is true."""
    if not np.any(mask):
        return array
    return taken(array, np.where(np.asarray(mask), -1, np.arange(len(mask))))


class _ArrowArray(ctypes.Structure):
    """The head of Arrow's C data interface."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers")),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    )


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def null_mask(array: Any) -> Mask:
    """Which values are null, read off the bits that Arrow keeps for it."""
    n = len(array)
    if not array.null_count:
        return np.zeros(n, dtype=bool)
    _, capsule = array.__arrow_c_array__()  # it keeps the memory until the end of this function
    told = _ArrowArray.from_address(_pointer(capsule, b"arrow_array"))
    packed = _bytes_at(told.buffers[0], (told.offset + n + 7) // 8)
    known = np.unpackbits(packed, count=told.offset + n, bitorder="little")[told.offset :]
    return np.logical_not(known)


def _bytes_at(address: int, size: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def decimals_of(array: Any) -> list[Decimal | None]:
    """Decimal numbers of 128 bits; arro3 cuts those of 39 digits, which DuckDB's sums may have."""
    if not len(array):
        return []
    _, capsule = array.__arrow_c_array__()  # it keeps the memory until the end of this function
    told = _ArrowArray.from_address(_pointer(capsule, b"arrow_array"))
    held = _bytes_at(told.buffers[1], 16 * (told.offset + len(array))).tobytes()[16 * told.offset :]
    scale = int(kind_of(array.type).rstrip(")").rpartition(" ")[2])
    parts = (held[start : start + 16] for start in range(0, len(held), 16))
    texts = (f"{int.from_bytes(part, 'little', signed=True)}e{-scale}" for part in parts)
    gaps = null_mask(array).tolist()
    return [None if gap else Decimal(text) for gap, text in zip(gaps, texts, strict=True)]
