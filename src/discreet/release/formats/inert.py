"""Texts that no spreadsheet runs as a formula."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_FORMULA = r"^[=+\-@\t\r\n]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def inert_text(text: str) -> str:
    """A text that is not run as a formula.

    A spreadsheet would run a text that begins with one of ``= + - @``, a tab or a line break. Such
    texts get an apostrophe in front; numbers stay as they are.
    """
    is_formula = re.match(_FORMULA, text) and not re.match(_NUMBER, text)
    return f"'{text}" if is_formula else text


def inert(cells: pa.Table) -> pa.Table:
    """A table with nothing in it, names of columns included, that a spreadsheet would run."""
    import pyarrow as pa

    columns = [_inert_texts(c) if not _is_number(c.type) else c for c in cells.columns]
    return pa.table(columns, names=[inert_text(name) for name in cells.column_names])


def _inert_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.string())
    runs = pc.match_substring_regex(texts, _FORMULA)
    is_formula = pc.and_not(runs, pc.match_substring_regex(texts, _NUMBER))
    return pc.if_else(is_formula, pc.binary_join_element_wise("'", texts, ""), texts)


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
