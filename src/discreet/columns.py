"""Columns of values in Arrow's memory, and no more of Arrow than that.

A `Column` holds what every library reads and writes without a copy (the Arrow PyCapsule interface,
by way of arro3). What is computed is computed by NumPy; text stays in Arrow until it is encoded.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import arro3.core as arrow
import numpy as np

from discreet.arrays import Array, Index, Mask, Whole32
from discreet.errors import DataError

Type = arrow.DataType
_WHOLE = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_PLAIN: dict[str, Any] = {
    **{name: getattr(Type, name)() for name in (*_WHOLE, "float16", "float32", "float64")},
    "string": Type.string(),
    "binary": Type.binary(),
    "boolean": Type.bool(),
    "date": Type.date32(),
    "time": Type.time64("us"),
    "uuid": Type.string(),
}
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DECIMAL = re.compile(r"decimal\((\d+), ?(-?\d+)\)", re.IGNORECASE)
_MOMENT = re.compile(r"timestamp(?:\((?:'(?P<zone>[^']*)'(?:, )?)?(?P<digits>\d)?\))?")
_NESTED = ("array", "struct", "map")
CHUNK = 122_880  # values that DuckDB gives to a thread at once
_EXACT = 2**53  # from here on not every whole number is a double


class ColumnError(DataError, ValueError):
    """Values that cannot be held as they were asked for."""


class Column:
    """Values of one kind; missing ones are null.

    Args:
      values: A column, an array or series of any library, or a sequence of Python's values.
      kind: What it holds, by the names that engines share (`"int64"`, `"string"`,
        `"decimal(12, 2)"`, …); that of the values by default.
      mask: True where a value is missing, beside those that are null by themselves.
    """

    def __init__(
        self, values: Any, kind: str | None = None, mask: Sequence[bool] | Mask | None = None
    ) -> None:
        self._chunks: Any  # of arro3
        chunks = _chunks_of(values)
        if Type.is_null(chunks.type):  # a column of nothing is one of texts that are missing
            chunks = nulls(len(chunks), "string")._chunks
        if mask is not None and np.any(mask):
            chunks = _masked(_joined(chunks), mask)
        self._chunks = chunks if isinstance(chunks, arrow.ChunkedArray) else _chunked([chunks])
        if kind is not None and _kind_of(self._chunks.type) != kind:
            self._chunks = Column(self._chunks).cast(kind)._chunks

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if self.is_dictionary:
            return Column.of_codes, self.encoded()
        is_plain = is_number_kind(self.kind) and "(" not in self.kind and not self.null_count
        return Column, (self.to_numpy() if is_plain else self.to_pylist(), self.kind)

    @classmethod
    def of_codes(cls, codes: Array, values: Sequence[str] | Column) -> Column:
        """Values by their places in a list, kept as such; null where the place is negative."""
        distinct = values if isinstance(values, Column) else cls(list(values), "string")
        listed = _encoded(distinct._array)
        if codes.dtype == np.int16:  # as narrow as they came
            listed = listed.cast(Type.dictionary(Type.int16(), distinct._array.type))
        return cls(_taken(listed, codes))

    @property
    def kind(self) -> str:
        """What it holds, by the names that engines share; that of the values of a dictionary."""
        return _kind_of(self._chunks.type)

    @property
    def is_dictionary(self) -> bool:
        """Whether values are kept as places in a list of them."""
        return bool(Type.is_dictionary(self._chunks.type))

    @property
    def null_count(self) -> int:
        """How many values are missing."""
        if self.is_dictionary:
            return int((self.encoded()[0] < 0).sum())
        return int(self._chunks.null_count)

    def chunked(self, rows: int | None = None) -> Any:
        """The values as an array of arro3's in chunks: as it came, or of so many values each."""
        if rows is None and (self._chunks.num_chunks > 1 or len(self) <= CHUNK):
            return self._chunks
        whole = arrow.ChunkedArray([self._array])
        return whole.rechunk(max_chunksize=rows or CHUNK) if len(self) else whole

    @cached_property
    def _array(self) -> Any:
        return _joined(self._chunks)

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_pylist())

    def __getitem__(self, place: int) -> Any:
        return self.slice(place % len(self), 1).to_pylist()[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Column) or self.kind != other.kind or len(self) != len(other):
            return False
        if self.kind.startswith(_NESTED):
            return self.to_pylist() == other.to_pylist()
        codes, _ = join_columns([self, other]).encoded()
        return bool((codes[: len(self)] == codes[len(self) :]).all())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        head = ", ".join(map(repr, self.slice(0, 6).to_pylist()))
        return f"Column({self.kind}, {len(self):,}: {head}{', …' if len(self) > 6 else ''})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._chunks.__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.to_numpy(), dtype)

    def is_null(self) -> Mask:
        """Which values are missing."""
        return _null_mask(self._array)

    def to_numpy(self) -> Array:
        """An array; missing whole numbers make it one of floats with NaN, other gaps are None."""
        found = self._array
        if self.is_dictionary:
            codes, distinct = self.encoded()
            values = distinct.to_numpy()
            if (codes < 0).any():
                values = _with_gap(values)
            return values[codes] if len(values) else values
        if not self.null_count:
            return _plain_numpy(found, self.kind)
        is_there = ~self.is_null()
        known = _plain_numpy(_taken(found, np.flatnonzero(is_there)), self.kind)
        gap = _with_gap(known[:0])
        values = np.full(len(self), gap[0], dtype=gap.dtype)
        values[is_there] = known
        return values

    def to_pylist(self) -> list[Any]:
        """Python's values; None where missing."""
        if self.is_dictionary:
            codes, distinct = self.encoded()
            values = [*distinct.to_pylist(), None]
            return [values[code] for code in codes.tolist()]
        if self.kind == "string" and not self.null_count:  # faster than value by value
            listed: list[Any] = self._plain_text().to_numpy().tolist()
            return listed
        if self.kind.startswith("decimal") and "128" in repr(self._chunks.type):
            return _decimals_of(self._array)
        return list(self._array.to_pylist())

    def _plain_text(self) -> Any:
        return self._array if self._array.type == Type.string() else self._array.cast(Type.string())

    def encoded(self) -> tuple[Whole32, Column]:
        """The place of each value among the distinct ones, -1 where missing, and these.

        They stand in the order of first appearance, or as the dictionary lists them.

        Raises:
          ColumnError: The values are lists, structures or their kin.
        """
        if self.is_dictionary:
            return _of_dictionary(self._array)
        if self.kind.startswith(_NESTED):
            raise ColumnError(f"values of type {self.kind} cannot be told apart as categories.")
        if self.kind == "boolean" or self.kind.startswith("decimal"):
            place: dict[Any, int] = {}
            found = [-1 if v is None else place.setdefault(v, len(place)) for v in self.to_pylist()]
            return np.array(found, dtype=np.int32), Column(list(place), self.kind)
        return _of_dictionary(_encoded(self._array))

    def dictionary_encode(self) -> Column:
        """The same values, kept as places in a list of them."""
        if self.is_dictionary or self.kind == "boolean":
            return self
        return Column(_encoded(self._array))

    def plain(self) -> Column:
        """The same values without a list of them."""
        return (
            Column(self._chunks.cast(self._chunks.type.value_type)) if self.is_dictionary else self
        )

    def unique(self) -> Column:
        """The distinct values in the order of first appearance, null among them."""
        codes, distinct = self.encoded()
        _, first = np.unique(codes, return_index=True)
        return distinct.take(codes[np.sort(first)])

    def drop_null(self) -> Column:
        """The values that are there."""
        return self.filter(~self.is_null()) if self.null_count else self

    def fill_null(self, value: Any) -> Column:
        """The same with a value in place of missing ones."""
        gaps = self.is_null()
        if not gaps.any():
            return self
        place = np.where(gaps, len(self), np.arange(len(self)))
        whole = self.plain()
        chunks = [whole._array, Column([value], whole.kind).cast_like(whole)._array]
        return Column(_taken(_joined(_chunked(chunks)), place))

    def equal(self, value: Any) -> Mask:
        """Where a value stands; nowhere it is missing."""
        codes, distinct = self.encoded()
        same = np.array([*(v == value for v in distinct.to_pylist()), False], dtype=bool)
        found: Mask = same[codes]
        return found

    def take(self, places: Array | Sequence[int]) -> Column:
        """The values at some places; null where a place is negative."""
        return Column(_taken(self._array, np.asarray(places, dtype=np.int64)))

    def filter(self, mask: Any) -> Column:
        """The values where a mask is true."""
        return self.at(np.flatnonzero(_mask_of(mask)))

    def at(self, places: Index) -> Column:
        """The values at ascending places; those in a row are not copied."""
        if len(places) and places[-1] - places[0] == len(places) - 1:
            return self.slice(int(places[0]), len(places))
        return self.take(places)

    def slice(self, start: int = 0, length: int | None = None) -> Column:
        """Some values in a row."""
        begin = min(start, len(self))
        end = len(self) if length is None else min(begin + length, len(self))
        return Column(self._chunks.slice(begin, end - begin))

    def cast_like(self, other: Column) -> Column:
        """The same values in the very type of another column."""
        return Column(self._chunks.cast(other._chunks.type))

    def cast(self, kind: str) -> Column:
        """The same values as another kind.

        Raises:
          ColumnError: A value cannot be held by it.
        """
        if self.kind == kind and not self.is_dictionary:
            return Column(self._chunks.cast(_type_of(kind)))
        if self.is_dictionary:
            codes, distinct = self.encoded()
            return distinct.cast(kind).take(codes)
        if kind == "string" and self.kind.startswith("float"):
            return self._floats_as_text()
        if kind.startswith("float") and self.kind.startswith("timestamp"):
            raise ColumnError(f"values of type {self.kind} cannot be held as {kind}.")
        wanted, array = _type_of(kind), self._array
        try:
            made = array.cast(wanted)
        except Exception as error:  # arro3 raises bare exceptions
            raise ColumnError(f"values of type {self.kind} cannot be held as {kind}.") from error
        if made.null_count != array.null_count or not _is_kept(self, made, kind):
            raise ColumnError(f"a value of type {self.kind} cannot be held as {kind}.")
        return Column(made)

    def _floats_as_text(self) -> Column:
        codes, distinct = self.encoded()
        texts = [f"{v:.0f}" if v.is_integer() and abs(v) < 1e15 else repr(v) for v in distinct]
        return Column(texts, "string").take(codes)


def nulls(n: int, kind: str) -> Column:
    """A column with nothing in it."""
    return Column(_taken(arrow.Array([], type=_type_of(kind)), np.full(n, -1)))


def is_number_kind(kind: str) -> bool:
    """Whether a kind holds numbers."""
    return kind in _WHOLE or kind.startswith(("float", "decimal"))


def is_whole_kind(kind: str) -> bool:
    """Whether a kind holds whole numbers of up to 64 bits."""
    return kind in _WHOLE


def join_columns(columns: Sequence[Column]) -> Column:
    """Columns one below the other; those of several kinds become the widest, nothing else."""
    if len(columns) == 1:
        return columns[0]
    alike = list(columns)
    if len({str(c._chunks.type) for c in columns}) > 1:
        there = [c for c in columns if c.null_count < len(c)] or columns[:1]
        kind = _shared_kind([c.kind for c in there])
        alike = [c.cast(kind) if c.null_count < len(c) else nulls(len(c), kind) for c in columns]
    if not alike[0].is_dictionary:
        chunks = [chunk for c in alike for chunk in c._chunks.chunks]
        return Column(_chunked(chunks)) if chunks else alike[0]
    parts = [c.encoded() for c in alike]  # one list of values for all
    listed, distinct = join_columns([d for _, d in parts]).encoded()
    starts = np.cumsum([0, *(len(d) for _, d in parts)])
    codes = [
        np.append(listed[s : s + len(d)], -1)[c] for (c, d), s in zip(parts, starts, strict=False)
    ]
    held: Any = alike[0]._chunks.type
    joined = np.concatenate(codes)
    if held == Type.dictionary(Type.int16(), held.value_type) and len(distinct) < 2**15:
        joined = joined.astype(np.int16)
    return Column.of_codes(joined, distinct)


def _shared_kind(kinds: Sequence[str]) -> str:
    if len(set(kinds)) == 1:
        return kinds[0]
    if all(kind in _WHOLE or kind.startswith("float") for kind in kinds):
        return str(np.result_type(*kinds))
    raise ColumnError(f"values of types {' and '.join(sorted(set(kinds)))} share no column.")


def _mask_of(mask: Any) -> Mask:
    found = np.asarray(mask.fill_null(False) if isinstance(mask, Column) else mask)
    return found.astype(bool)


# ---- types by their names


def _type_of(kind: str) -> Any:
    """The type of Arrow's that holds a kind."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if found := _DECIMAL.fullmatch(kind):
        return Type.decimal128(int(found[1]), int(found[2]))
    if found := _MOMENT.fullmatch(kind):
        digits = int(found["digits"] or 6)
        unit = min((u for u, d in _UNITS.items() if d >= digits), key=_UNITS.__getitem__)
        return Type.timestamp(unit, tz=found["zone"])  # type: ignore[arg-type]
    raise ColumnError(f"there is no column of {kind}.")


def _kind_of(held: Any) -> str:
    """The name of an Arrow type; that of the values of a dictionary."""
    if Type.is_dictionary(held):
        return _kind_of(held.value_type)
    if Type.is_string(held) or Type.is_large_string(held) or Type.is_string_view(held):
        return "string"
    if Type.is_timestamp(held):
        digits = _UNITS[held.time_unit]
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


# ---- values of any library


def _chunks_of(values: Any) -> Any:
    """Values as an array of arro3's, or as chunks of them."""
    if isinstance(values, Column):
        return values._chunks
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
        return _masked(_of_numpy(values.data), np.ma.getmaskarray(values))
    if values.dtype.kind in "OUTS":
        return _of_objects(values.tolist())
    if values.dtype.kind not in "biufmM":
        raise ColumnError(f"values of NumPy's type {values.dtype} are not read.")
    if values.dtype.kind == "M":
        unit = np.datetime_data(values.dtype)[0]
        unit = unit if unit in ("D", *_UNITS) else "s"
        start = np.zeros(1, dtype=f"M8[{unit}]")
        known = np.where(np.isnat(values), start, values).astype(start.dtype)
        return _masked(arrow.Array.from_numpy(known), np.isnat(values))
    plain = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    return arrow.Array.from_numpy(plain)


def _of_pandas(held: Any) -> Any:
    """An array of pandas; what it calls missing is null."""
    dtype = held.dtype
    if hasattr(dtype, "pyarrow_dtype") or getattr(dtype, "storage", "") == "pyarrow":
        return _chunks_of(held.__arrow_array__())
    if hasattr(dtype, "categories"):
        return _taken(_encoded(Column(held.categories)._array), np.asarray(held.codes))
    missing = np.asarray(held.isna())
    if getattr(dtype, "tz", None) is not None:
        moments = np.asarray(held, dtype=f"M8[{dtype.unit}]").view(np.int64)
        zoned = Type.timestamp(dtype.unit, tz=str(dtype.tz))
        return _masked(arrow.Array.from_numpy(moments).cast(zoned), missing)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return _masked(_of_numpy(np.asarray(held)), missing)
    if getattr(dtype, "kind", "O") in "biuf":  # with missing values, as pandas writes them
        filled = held.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.type(0))
        return _masked(_of_numpy(filled), missing)
    listed = np.asarray(held, dtype=object)
    return _of_objects([None if m else v for v, m in zip(listed, missing.tolist(), strict=True)])


def _masked(array: Any, mask: Any) -> Any:
    if not np.any(mask):
        return array
    return _taken(array, np.where(np.asarray(mask), -1, np.arange(len(mask))))


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


# ---- what arro3 leaves out


def _chunked(arrays: Sequence[Any]) -> Any:
    return arrow.ChunkedArray(list(arrays))


def _joined(chunks: Any) -> Any:
    """One array of some chunks."""
    if isinstance(chunks, arrow.Array):
        return chunks
    if chunks.num_chunks == 1:
        return chunks.chunk(0)
    if chunks.num_chunks == 0:
        return _empty(chunks.type)
    try:
        return chunks.combine_chunks()
    except Exception:  # texts of more than 2 GiB; arro3 raises bare exceptions
        if chunks.type != Type.string():
            raise
        return chunks.cast(Type.large_string()).combine_chunks()


def _empty(held: Any) -> Any:
    return arrow.Array([], type=Type.string()).cast(held)


def _taken(array: Any, places: Array) -> Any:
    """The values at some places; null where a place is negative."""
    if len(places) and places.max() >= len(array):
        raise IndexError(f"there is no value at {places.max()} of {len(array)}.")
    gaps = places < 0
    if gaps.any():
        array = _joined(_chunked([array, arrow.Array([None], type=Type.string()).cast(array.type)]))
        places = np.where(gaps, len(array) - 1, places)
    return array.take(arrow.Array.from_numpy(np.ascontiguousarray(places, dtype=np.int64)))


def _encoded(array: Any) -> Any:
    """An array as places in a list of its values."""
    if Type.is_dictionary(array.type):
        return array
    if array.type in (Type.large_string(), Type.string_view()):
        array = array.cast(Type.string())
    return array.cast(Type.dictionary(Type.int32(), array.type))


def _of_dictionary(array: Any) -> tuple[Whole32, Column]:
    """Places and distinct values of a dictionary; a value listed twice, or null, is told once."""
    places, listed = arrow.dictionary_indices(array), Column(arrow.dictionary_dictionary(array))
    codes = np.nan_to_num(Column(places).to_numpy(), nan=-1).astype(np.int32)
    values = listed.to_pylist()
    seen: dict[Any, int] = {}
    for value in values:
        if value is not None:
            seen.setdefault(value, len(seen))
    if len(seen) == len(values):
        return codes, listed
    renumbered = np.array([-1 if v is None else seen[v] for v in (*values, None)], dtype=np.int32)
    return renumbered[codes], Column(list(seen), listed.kind)


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


def _null_mask(array: Any) -> Mask:
    """Which values are null, read off the bits that Arrow keeps for it."""
    n = len(array)
    if Type.is_dictionary(array.type):
        return Column(array).encoded()[0] < 0
    if not array.null_count:
        return np.zeros(n, dtype=bool)
    _, capsule = array.__arrow_c_array__()  # it keeps the memory until the end of this function
    told = _ArrowArray.from_address(_pointer(capsule, b"arrow_array"))
    packed = _bytes_at(told.buffers[0], (told.offset + n + 7) // 8)
    return np.unpackbits(packed, count=told.offset + n, bitorder="little")[told.offset :] == 0


def _bytes_at(address: int, size: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _decimals_of(array: Any) -> list[Decimal | None]:
    """Decimal numbers of 128 bits; arro3 cuts those of 39 digits, which DuckDB's sums may have."""
    if not len(array):
        return []
    _, capsule = array.__arrow_c_array__()  # it keeps the memory until the end of this function
    told = _ArrowArray.from_address(_pointer(capsule, b"arrow_array"))
    held = _bytes_at(told.buffers[1], 16 * (told.offset + len(array))).tobytes()[16 * told.offset :]
    scale = int(_kind_of(array.type).rstrip(")").rpartition(" ")[2])
    parts = (held[start : start + 16] for start in range(0, len(held), 16))
    texts = (f"{int.from_bytes(part, 'little', signed=True)}e{-scale}" for part in parts)
    gaps = _null_mask(array).tolist()
    return [None if gap else Decimal(text) for gap, text in zip(gaps, texts, strict=True)]


def _plain_numpy(array: Any, kind: str) -> Array:
    """An array without gaps as one of NumPy's."""
    if kind.startswith("timestamp"):
        ticks: Array = array.cast(Type.int64()).to_numpy()
        return ticks.view(f"M8[{array.type.time_unit}]")
    if kind == "date":
        days: Array = array.cast(Type.date32()).cast(Type.int32()).to_numpy()
        return days.astype("M8[D]")
    if kind == "string":
        array = array if array.type == Type.string() else array.cast(Type.string())
    elif not (kind in _WHOLE or kind.startswith("float") or kind == "boolean"):
        return np.fromiter(Column(array).to_pylist(), dtype=object, count=len(array))
    return np.asarray(array.to_numpy())


def _with_gap(values: Array) -> Array:
    """Values and one that stands for what is missing."""
    if values.dtype.kind in "iu":
        return np.append(values.astype(float), np.nan)
    if values.dtype.kind in "fM":
        return np.append(values, values.dtype.type("nan" if values.dtype.kind == "f" else "NaT"))
    return np.append(values.astype(object), np.array([None], dtype=object))


def _is_kept(before: Column, after: Any, kind: str) -> bool:
    """Whether a cast kept every value."""
    if before.kind == kind:
        return True
    if kind in _WHOLE and before.kind != "string":
        return bool(np.array_equal(*_as_numbers(before, Column(after))))
    if kind.startswith("float") and before.kind in _WHOLE:
        numbers = before.drop_null().to_numpy()
        return bool(((numbers <= _EXACT) & (numbers >= -_EXACT)).all())
    if kind.startswith("timestamp") and before.kind.startswith("timestamp"):
        return bool((before.drop_null().to_numpy() == Column(after).drop_null().to_numpy()).all())
    return True


def _as_numbers(before: Column, after: Column) -> tuple[Array, Array]:
    first, second = before.drop_null().to_numpy(), after.drop_null().to_numpy()
    return (first.astype(object) if before.kind.startswith("decimal") else first), second
