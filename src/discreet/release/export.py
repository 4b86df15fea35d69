"""Releases in files that other programs read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.design.release import Release
from discreet.errors import ConfidentialError

if TYPE_CHECKING:
    import pyarrow as pa

_FORMULA = r"^[=+\-@\t\r\n]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def to_csv(release: Release) -> bytes:
    """The published cells as UTF-8 CSV, a row per cell.

    A spreadsheet would run a text that begins with one of ``= + - @``, a tab or a line break as a
    formula. Such texts, names of columns among them, get an apostrophe in front; numbers, also
    those among codes, stay as they are.
    """
    import pyarrow as pa
    import pyarrow.csv

    if not isinstance(release, Release):
        raise ConfidentialError("only a release may be exported; protect the table first.")
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(inert(release.to_arrow()), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def inert(cells: pa.Table) -> pa.Table:
    """The cells with nothing in them that a spreadsheet would run."""
    import pyarrow as pa

    columns = [_inert_texts(c) if not _is_number(c.type) else c for c in cells.columns]
    names = _inert_texts(pa.chunked_array([pa.array(cells.column_names, pa.string())]))
    return pa.table(columns, names=names.to_pylist())


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
