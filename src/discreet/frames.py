"""Frames of any library on the way in, Arrow inside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array
from discreet.errors import DataError, check_known

if TYPE_CHECKING:
    import pyarrow as pa

_VALUE = re.compile(r"""(['"]).*\1|(?<!\w)-?\d[\d.,]*""", re.DOTALL)


def open_frame(frame: object) -> Any:
    """A narwhals frame, eager or lazy, of any frame, Arrow table, or dict of columns."""
    import narwhals as nw
    import pyarrow as pa

    try:
        native = pa.table(dict(frame)) if isinstance(frame, Mapping) else frame
        if isinstance(native, pa.RecordBatch):
            native = pa.Table.from_batches([native])
        return nw.from_native(native)
    except (TypeError, pa.ArrowException) as error:
        raise DataError(
            f"{type(frame).__name__} cannot be read as a frame: {without_values(error)}. Give a "
            "pandas or polars frame, an Arrow table, or a dict of columns."
        ) from None


def is_frame(value: object) -> bool:
    """Whether something is a table of columns: a frame of some library, or an Arrow table."""
    return hasattr(value, "columns") and hasattr(value, "shape") or hasattr(value, "collect_schema")


def without_values(error: Exception) -> str:
    """What an error says, without the values that it quotes."""
    return _VALUE.sub("…", str(error))


def to_arrow(frame: object) -> pa.Table:
    """An Arrow table of any frame, collected when it is lazy."""
    import narwhals as nw

    data = open_frame(frame)
    return (data.collect(backend="pyarrow") if isinstance(data, nw.LazyFrame) else data).to_arrow()


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


def is_numeric(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds numbers."""
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def numbers(frame: pa.Table, column: str) -> Array:
    """A numeric column as an array; missing values are an error."""
    import pyarrow as pa

    check_known("column", [column], frame.column_names)
    values = frame.column(column)
    if values.null_count:
        raise DataError(f"column {column!r} has {values.null_count} missing values.")
    if not is_numeric(values.type):
        raise DataError(f"column {column!r} must hold numbers, but holds {values.type}.")
    if pa.types.is_decimal(values.type):
        whole = values.type.scale == 0
        values = values.cast(pa.int64() if whole else pa.float64())
    return np.asarray(values.combine_chunks().to_numpy(zero_copy_only=False))
