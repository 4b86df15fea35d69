"""Frames of any library on the way in, Arrow inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    import pyarrow as pa


def to_arrow(frame: Any) -> pa.Table:
    """An Arrow table from an Arrow table or batch, any data frame, or a mapping of columns."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if isinstance(frame, dict):
        return pa.table(frame)
    import narwhals as nw

    try:
        return nw.from_native(frame, eager_only=True).to_arrow()
    except TypeError as error:
        raise DataError(
            f"cannot read a frame of type {type(frame).__name__!r}. Give an Arrow table, a pandas "
            "or polars frame, or a dict of columns."
        ) from error


def numbers(frame: pa.Table, column: str) -> NDArray[Any]:
    """A numeric column as an array; missing values are an error."""
    import pyarrow as pa

    if column not in frame.column_names:
        raise UnknownNameError("column", column, frame.column_names)
    values = frame.column(column)
    if values.null_count:
        raise DataError(f"column {column!r} has {values.null_count} missing values.")
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        if not pa.types.is_decimal(values.type):
            raise DataError(f"column {column!r} must hold numbers, but holds {values.type}.")
        whole = values.type.scale == 0
        values = values.cast(pa.int64() if whole else pa.float64())
    return np.asarray(values.combine_chunks().to_numpy(zero_copy_only=False))
