"""Frames: named columns, made of any library's on the way in and given to any on the way out."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import arro3.core as arrow
import numpy as np

from discreet.arrays import Array, Index
from discreet.columns import CHUNK, Column, is_number_kind, join_columns, nulls
from discreet.errors import (
    ColumnError,
    DataError,
    MissingDependencyError,
    UnknownNameError,
    check_known,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_VALUE = re.compile(r"""(['"]).*\1|(?<!\w)-?\d[\d.,]*""", re.DOTALL)


class Frame:
    """Columns of one length, by their names.

    Every library that reads Arrow takes it as a table: `polars.DataFrame(frame)`,
    `pyarrow.table(frame)`, a query of DuckDB's.

    Args:
      columns: By name, whatever makes a `Column`.
      kinds: What the columns hold, where their values do not tell.
    """

    def __init__(
        self, columns: Mapping[str, Any] | None = None, kinds: Mapping[str, str] | None = None
    ) -> None:
        said = kinds or {}
        self._columns: dict[str, Column] = {}
        for name, values in (columns or {}).items():
            try:
                self._columns[name] = Column(values, said.get(name))
            except ColumnError as error:
                raise ColumnError(f"column {name!r}: {error}") from None
        sizes = {len(column) for column in self._columns.values()}
        if len(sizes) > 1:
            raise ColumnError(f"the columns of a frame have one length, not {sorted(sizes)}.")

    @classmethod
    def from_arrow(cls, source: Any) -> Frame:
        """The columns of anything that has `__arrow_c_stream__` or `__arrow_c_array__`."""
        table = arrow.Table.from_arrow(source)
        names = table.column_names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ColumnError(f"two columns are called {twice!r}.")
        return cls(dict(zip(names, table.columns, strict=True)))

    @classmethod
    def from_rows(
        cls, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, str] | None = None
    ) -> Frame:
        """A frame of rows; its columns are those of `kinds`, or those of the first row."""
        names = kinds or (rows[0] if rows else {})
        return cls({name: [row.get(name) for row in rows] for name in names}, kinds)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, in their order."""
        return list(self._columns)

    @property
    def columns(self) -> list[Column]:
        """The columns, in their order."""
        return list(self._columns.values())

    @property
    def kinds(self) -> dict[str, str]:
        """What each column holds."""
        return {name: column.kind for name, column in self._columns.items()}

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self._columns.values()), ()))

    @property
    def num_columns(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str) -> Column:
        return self.column(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        return list(self._columns.items()) == list(other._columns.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        held = ", ".join(f"{name}: {kind}" for name, kind in self.kinds.items())
        return f"Frame({self.num_rows:,} rows; {held})"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._arrow().__arrow_c_schema__()

    def _arrow(self) -> Any:
        """The columns as a table of arro3, in batches that an engine can share among threads."""
        found = {name: column.chunked() for name, column in self._columns.items()}
        if len({tuple(map(len, chunks.chunks)) for chunks in found.values()}) > 1:
            found = {name: column.chunked(CHUNK) for name, column in self._columns.items()}
        return arrow.Table.from_pydict(found)

    def column(self, name: str | int) -> Column:
        """A column by its name or place."""
        if isinstance(name, int):
            return self.columns[name]
        return self._columns[name]

    def select(self, names: Iterable[str]) -> Frame:
        """Some columns, in this order."""
        return Frame({name: self._columns[name] for name in names})

    def with_column(self, name: str, values: Any, place: int | None = None) -> Frame:
        """With another column: in the place of one of its name, else last or at a place."""
        if place is None or name in self._columns:
            return Frame({**self._columns, name: values})
        items = list(self._columns.items())
        return Frame(dict([*items[:place], (name, values), *items[place:]]))

    def without(self, *names: str) -> Frame:
        """Without some columns."""
        return self.select(name for name in self._columns if name not in names)

    def rename_columns(self, names: Sequence[str]) -> Frame:
        """With other names, one for each column."""
        return Frame(dict(zip(names, self.columns, strict=True)))

    def cast(self, kinds: Mapping[str, str]) -> Frame:
        """With columns of other kinds."""
        return Frame(self._columns, kinds)

    def take(self, places: Array | Sequence[int]) -> Frame:
        """Some rows by their places; nulls where a place is negative."""
        return Frame({name: column.take(places) for name, column in self._columns.items()})

    def filter(self, mask: Any) -> Frame:
        """The rows where a mask is true."""
        places = np.flatnonzero(np.asarray(mask, dtype=bool))
        return Frame({name: column.at(places) for name, column in self._columns.items()})

    def slice(self, start: int = 0, length: int | None = None) -> Frame:
        """Some rows that stand together."""
        return Frame({name: column.slice(start, length) for name, column in self._columns.items()})

    def group(self) -> Index:
        """For each row the number of its group: rows that hold the same have the same number."""
        found = np.zeros(len(self), dtype=np.intp)
        for column in self.columns:
            codes, distinct = column.encoded()
            both = found * (len(distinct) + 1) + codes + 1
            found = np.unique(both, return_inverse=True)[1]
        return found

    def distinct(self) -> Frame:
        """The first of all rows that hold the same, in their order."""
        return self.take(np.sort(np.unique(self.group(), return_index=True)[1]))

    def to_pydict(self) -> dict[str, list[Any]]:
        """Lists of Python's values by column."""
        return {name: column.to_pylist() for name, column in self._columns.items()}

    def to_pylist(self) -> list[dict[str, Any]]:
        """Rows as dicts of Python's values."""
        names, lists = self.column_names, [column.to_pylist() for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]

    def to_arrow(self) -> pa.Table:
        """The same as a table of pyarrow."""
        return needs_arrow("`to_arrow`").table(self)

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame."""
        try:
            import pandas
        except ImportError as error:
            raise MissingDependencyError("to_pandas", "pandas") from error
        return pandas.DataFrame({name: _series(pandas, c) for name, c in self._columns.items()})

    def to_polars(self) -> pl.DataFrame:
        """The same as a polars frame."""
        try:
            import polars
        except ImportError as error:
            raise MissingDependencyError("to_polars", "polars") from error
        return polars.DataFrame(self)


def _series(pandas: Any, column: Column) -> Any:
    if column.is_dictionary:
        codes, distinct = column.encoded()
        return pandas.Categorical.from_codes(codes, distinct.to_numpy())
    if column.kind.startswith("timestamp("):
        zone = column.kind.split("'")[1] if "'" in column.kind else None
        moments = pandas.Series(column.to_numpy())
        return moments if zone is None else moments.dt.tz_localize("UTC").dt.tz_convert(zone)
    held = column.to_numpy()
    return pandas.Series(held.astype(object) if held.dtype.kind == "M" else held)


def concat(frames: Iterable[Frame]) -> Frame:
    """Frames one below the other; a column that a frame does not have is null there."""
    given = list(frames)
    names = dict.fromkeys(name for frame in given for name in frame.column_names)
    found = {}
    for name in names:
        kind = next(f.column(name).kind for f in given if name in f.kinds)
        parts = [f.column(name) if name in f.kinds else nulls(len(f), kind) for f in given]
        try:
            found[name] = join_columns(parts)
        except ColumnError as error:
            raise ColumnError(f"column {name!r}: {error}") from None
    return Frame(found)


def read_frame(source: object, columns: Sequence[str] | None = None) -> Frame:
    """A frame of any library's, collected when it is lazy; some of its columns by default all.

    Raises:
      DataError: It is nothing that can be read as a frame.
      UnknownNameError: It has no such column.
    """
    try:
        found = _read(source, columns)
    except (TypeError, ValueError) as error:
        if isinstance(error, UnknownNameError):
            raise
        raise DataError(
            f"{type(source).__name__} cannot be read as a frame: {without_values(error)} Give a "
            "pandas or polars frame, an Arrow table, or a dict of columns."
        ) from None
    return found if columns is None else found.select(columns)


def _read(source: Any, columns: Sequence[str] | None) -> Frame:
    if isinstance(source, Mapping):
        return Frame({name: source[name] for name in _chosen(source, columns)})
    if is_pandas(source):  # column by column: its own way needs pyarrow
        places = {str(name): place for place, name in enumerate(source.columns)}
        if len(places) < len(source.columns):
            raise ColumnError("two columns have the same name.")
        return Frame({n: source.iloc[:, places[n]] for n in _chosen(places, columns)})
    if is_lazy(source) and type(source).__module__.startswith("polars"):
        wanted = _chosen(source.collect_schema().names(), columns)
        return Frame.from_arrow(source.select(wanted).collect())
    frame = source if isinstance(source, Frame) else Frame.from_arrow(_collected(source))
    _chosen(frame.column_names, columns)
    return frame


def _chosen(known: Iterable[str], columns: Sequence[str] | None) -> list[str]:
    names = list(known)
    check_known("column", columns or (), names)
    return names if columns is None else list(columns)


def _collected(source: Any) -> Any:
    """Whatever Arrow's interface reads of a frame."""
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return source
    if hasattr(source, "to_table"):  # a data set of pyarrow
        return source.to_table()
    import narwhals as nw

    data = nw.from_native(source)
    return (data.collect() if isinstance(data, nw.LazyFrame) else data).to_native()


def needs_arrow(purpose: str, part: str = "") -> Any:
    """The package pyarrow, or a part of it, which some purposes need."""
    try:
        return importlib.import_module(f"pyarrow.{part}" if part else "pyarrow")
    except ImportError as error:
        raise MissingDependencyError(purpose, "pyarrow", "arrow") from error


def is_pandas(value: object) -> bool:
    """Whether something is a frame of pandas's."""
    return hasattr(value, "iloc") and hasattr(value, "columns")


def is_lazy(value: object) -> bool:
    """Whether something is a frame that is yet to be computed."""
    return hasattr(value, "collect_schema") and hasattr(value, "collect")


def is_frame(value: object) -> bool:
    """Whether something is a table of columns: a frame of some library, or an Arrow table."""
    is_table = hasattr(value, "columns") and hasattr(value, "shape")
    return is_table or hasattr(value, "collect_schema") or isinstance(value, Frame)


def without_values(error: Exception) -> str:
    """What an error says, without the values that it quotes."""
    return _VALUE.sub("…", str(error))


def fresh_name(wish: str, taken: Iterable[str]) -> str:
    """A column name that is not taken, in any case of letters."""
    folded = {name.casefold() for name in taken}
    while wish.casefold() in folded:
        wish += "_"
    return wish


def value_names(variables: Iterable[str], wished: Iterable[str]) -> dict[str, str]:
    """A name for each column of values beside columns of codes.

    A column of values has the name it is wished, with a `_` behind it for as long as a variable is
    called so: beside a variable `count`, counts are `count_`.
    """
    taken = list(variables)
    return {wish: fresh_name(wish, taken) for wish in wished}


def numbers(frame: Frame, column: str) -> Array:
    """A numeric column as an array; missing values are an error."""
    check_known("column", [column], frame.column_names)
    values = frame.column(column)
    if values.null_count:
        raise DataError(f"column {column!r} has {values.null_count} missing values.")
    if not is_number_kind(values.kind):
        raise DataError(f"column {column!r} must hold numbers, but holds {values.kind}.")
    if values.kind.startswith("decimal"):
        values = values.cast("int64" if values.kind.endswith(" 0)") else "float64")
    return values.to_numpy()
