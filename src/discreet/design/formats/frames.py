"""Frames of any library, read as columns of codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.design.codes import factorise
from discreet.errors import UnknownNameError
from discreet.frames import open_frame


def distinct_rows(frame: object, columns: Sequence[str]) -> Any:
    """Distinct rows of some columns, collected: by first appearance, or sorted if it is lazy."""
    import narwhals as nw

    data = chosen_columns(frame, columns)
    if isinstance(data, nw.LazyFrame):
        return data.unique().sort(*columns).collect(backend="pyarrow")
    row = nw.generate_temporary_column_name(8, data.columns)
    first = data.with_row_index(row).unique(subset=list(columns), keep="first")
    return first.sort(row).drop(row)


def all_rows(frame: object, columns: Sequence[str]) -> Any:
    """Every row of some columns, collected."""
    import narwhals as nw

    data = chosen_columns(frame, columns)
    return data.collect(backend="pyarrow") if isinstance(data, nw.LazyFrame) else data


def chosen_columns(frame: object, columns: Sequence[str]) -> Any:
    """A narwhals frame of these columns alone.

    Raises:
        UnknownNameError: The frame has no such column.
    """
    data = open_frame(frame)
    known = data.collect_schema().names()
    for name in columns:
        if name not in known:
            raise UnknownNameError("column", name, known)
    return data.select(*columns)


def text_columns(rows: Any) -> list[list[str | None]]:
    """The columns of a collected frame as codes; None where missing or blank."""
    return [_texts(rows[name].to_native()) for name in rows.columns]


def _texts(values: object) -> list[str | None]:
    codes, positions = factorise(values)
    texts = [code if code.strip() else None for code in codes]
    return [texts[i] if i >= 0 else None for i in positions.tolist()]
