"""Columns of values in Arrow's memory, and no more of Arrow than that.

A `Column` holds what every library reads and writes without a copy (the Arrow PyCapsule interface,
by way of arro3). What is computed is computed by NumPy; text stays in Arrow until it is encoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import arro3.core as arrow
import numpy as np

from discreet import arrow_memory as memory
from discreet.arrays import Array, Index, Mask, Whole32
from discreet.arrow_memory import NESTED, WHOLE, Type, kind_of, type_of
from discreet.arrow_values import chunks_of
from discreet.errors import ColumnError

CHUNK = 122_880  # values that DuckDB gives to a thread at once
_EXACT = 2**53  # from here on not every whole number is a double


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
        chunks = values._chunks if isinstance(values, Column) else chunks_of(values)
        if Type.is_null(chunks.type):  # a column of nothing is one of texts that are missing
            chunks = nulls(len(chunks), "string")._chunks
        if mask is not None and np.any(mask):
            chunks = memory.masked(memory.joined(chunks), mask)
        self._chunks = (
            chunks if isinstance(chunks, arrow.ChunkedArray) else memory.chunked([chunks])
        )
        if kind is not None and kind_of(self._chunks.type) != kind:
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
        listed = memory.encoded(distinct._array)
        if codes.dtype == np.int16:  # as narrow as they came
            listed = listed.cast(Type.dictionary(Type.int16(), distinct._array.type))
        return cls(memory.taken(listed, codes))

    @property
    def kind(self) -> str:
        """What it holds, by the names that engines share; that of the values of a dictionary."""
        return kind_of(self._chunks.type)

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
        return memory.joined(self._chunks)

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_pylist())

    def __getitem__(self, place: int) -> Any:
        return self.slice(place % len(self), 1).to_pylist()[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Column) or self.kind != other.kind or len(self) != len(other):
            return False
        if self.kind.startswith(NESTED):
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
        return self.encoded()[0] < 0 if self.is_dictionary else memory.null_mask(self._array)

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
        known = _plain_numpy(memory.taken(found, np.flatnonzero(is_there)), self.kind)
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
            return memory.decimals_of(self._array)
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
        if self.kind.startswith(NESTED):
            raise ColumnError(f"values of type {self.kind} cannot be told apart as categories.")
        if self.kind == "boolean" or self.kind.startswith("decimal"):
            place: dict[Any, int] = {}
            found = [-1 if v is None else place.setdefault(v, len(place)) for v in self.to_pylist()]
            codes = np.array(found, dtype=np.int32)
            first, there = np.empty(len(place), dtype=np.int64), np.flatnonzero(codes >= 0)[::-1]
            first[codes[there]] = there
            return codes, self.take(first)
        return _of_dictionary(memory.encoded(self._array))

    def dictionary_encode(self) -> Column:
        """The same values, kept as places in a list of them."""
        if self.is_dictionary or self.kind == "boolean":
            return self
        return Column(memory.encoded(self._array))

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
        return Column(memory.taken(memory.joined(memory.chunked(chunks)), place))

    def equal(self, value: Any) -> Mask:
        """Where a value stands; nowhere it is missing."""
        codes, distinct = self.encoded()
        same = np.array([*(v == value for v in distinct.to_pylist()), False], dtype=bool)
        found: Mask = same[codes]
        return found

    def take(self, places: Array | Sequence[int]) -> Column:
        """The values at some places; null where a place is negative."""
        return Column(memory.taken(self._array, np.asarray(places, dtype=np.int64)))

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
            return Column(self._chunks.cast(type_of(kind)))
        if self.is_dictionary:
            codes, distinct = self.encoded()
            return distinct.cast(kind).take(codes)
        if kind == "string" and self.kind.startswith("float"):
            return self._floats_as_text()
        if kind.startswith("float") and self.kind.startswith("timestamp"):
            raise ColumnError(f"values of type {self.kind} cannot be held as {kind}.")
        wanted, array = type_of(kind), self._array
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
    return Column(memory.taken(arrow.Array([], type=type_of(kind)), np.full(n, -1)))


def is_number_kind(kind: str) -> bool:
    """Whether a kind holds numbers."""
    return kind in WHOLE or kind.startswith(("float", "decimal"))


def is_whole_kind(kind: str) -> bool:
    """Whether a kind holds whole numbers of up to 64 bits."""
    return kind in WHOLE


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
        return Column(memory.chunked(chunks)) if chunks else alike[0]
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
    if all(kind in WHOLE or kind.startswith("float") for kind in kinds):
        return str(np.result_type(*kinds))
    raise ColumnError(f"values of types {' and '.join(sorted(set(kinds)))} share no column.")


def _mask_of(mask: Any) -> Mask:
    found = np.asarray(mask.fill_null(False) if isinstance(mask, Column) else mask)
    return found.astype(bool)


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
    elif not (kind in WHOLE or kind.startswith("float") or kind == "boolean"):
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
    if kind in WHOLE and before.kind != "string":
        return bool(np.array_equal(*_as_numbers(before, Column(after))))
    if kind.startswith("float") and before.kind in WHOLE:
        numbers = before.drop_null().to_numpy()
        return bool(((numbers <= _EXACT) & (numbers >= -_EXACT)).all())
    if kind.startswith("timestamp") and before.kind.startswith("timestamp"):
        return bool((before.drop_null().to_numpy() == Column(after).drop_null().to_numpy()).all())
    return True


def _as_numbers(before: Column, after: Column) -> tuple[Array, Array]:
    first, second = before.drop_null().to_numpy(), after.drop_null().to_numpy()
    return (first.astype(object) if before.kind.startswith("decimal") else first), second
