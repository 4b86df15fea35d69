"""A hierarchy from a file, told apart by extension and content."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from discreet.design.formats.hrc import read_hrc, read_text
from discreet.design.formats.nested import read_nested
from discreet.design.formats.sdmx import read_sdmx
from discreet.design.formats.tables import read_columns, read_parent_child
from discreet.design.formats.tree import Tree
from discreet.errors import DataError, UnknownNameError

_DELIMITERS = ",;\t"


def read_file(path: Path, root: str | None) -> Tree:
    """The tree of a file; see `Hierarchy.read` for the formats."""
    readers = {
        ".hrc": _hrc,
        ".xml": _sdmx,
        ".json": _json,
        ".csv": _csv,
        ".parquet": _parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnknownNameError("hierarchy format", path.suffix or path.name, readers)
    return reader(path, root)


def _hrc(path: Path, root: str | None) -> Tree:
    return read_hrc(path, root or "Total", "@")


def _sdmx(path: Path, root: str | None) -> Tree:
    return read_sdmx(path, None, root)


def _json(path: Path, root: str | None) -> Tree:
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        message = f"file {str(path)!r} is not JSON: {error}"
        raise DataError(message) from error
    if isinstance(content, dict) and {"meta", "data"} <= content.keys():
        return read_sdmx(path, None, root)
    return read_nested(content, root)


def _csv(path: Path, root: str | None) -> Tree:
    """Every cell is text, so that leading zeros stay."""
    text = read_text(path)
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    for row in body:
        if len(row) != len(header):
            message = f"file {str(path)!r}: row {row} has {len(row)} cells under {header}"
            raise DataError(message)
    return _table({name: [row[i] for row in body] for i, name in enumerate(header)}, header, root)


def _parquet(path: Path, root: str | None) -> Tree:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        message = f"file {str(path)!r} cannot be read as Parquet: {error}"
        raise DataError(message) from error
    return _table(table, table.column_names, root)


def _table(table: Any, names: list[str], root: str | None) -> Tree:
    if {"child", "parent"} <= set(names):
        label, level = (name if name in names else None for name in ("label", "level"))
        return read_parent_child(table, "child", "parent", label, root, level)
    return read_columns(table, names, root or "Total")
