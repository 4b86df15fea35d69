"""A hierarchy from a file, told apart by extension and content."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from discreet.design.codes import canonical
from discreet.design.formats.sdmx import read_sdmx
from discreet.design.formats.tables import read_columns, read_parent_child
from discreet.design.formats.tree import CodeTree, read_nested
from discreet.errors import CodeError, DataError, ParameterError, UnknownNameError

_DELIMITERS = ",;\t"


def read_file(path: Path, root: str | None) -> CodeTree:
    """The tree of a file; see `Hierarchy.read` for the formats."""
    readers: dict[str, Callable[[Path, str | None], CodeTree]] = {
        ".hrc": lambda path, root: read_hrc(path, root or "Total", "@"),
        ".xml": lambda path, root: read_sdmx(path, None, root),
        ".json": _read_json,
        ".csv": _read_csv,
        ".parquet": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnknownNameError("hierarchy format", path.suffix or path.name, readers)
    return reader(path, root)


def _read_json(path: Path, root: str | None) -> CodeTree:
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"file {str(path)!r} is not JSON: {error}") from error
    if isinstance(content, dict) and {"meta", "data"} <= content.keys():
        return read_sdmx(path, None, root)
    return read_nested(content, root)


def _read_csv(path: Path, root: str | None) -> CodeTree:
    # The csv module leaves every cell text: a frame library would read "01" as the number 1.
    text = read_text(path)
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    for row in body:
        if len(row) != len(header):
            raise DataError(f"file {str(path)!r}: row {row} has {len(row)} cells under {header}")
    columns = {name: [row[i] for row in body] for i, name in enumerate(header)}
    return _read_table(columns, header, root)


def _read_parquet(path: Path, root: str | None) -> CodeTree:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"file {str(path)!r} cannot be read as Parquet: {error}") from error
    return _read_table(table, table.column_names, root)


def _read_table(table: Any, names: list[str], root: str | None) -> CodeTree:
    if {"child", "parent"} <= set(names):
        label, level = (name if name in names else None for name in ("label", "level"))
        return read_parent_child(table, "child", "parent", label, root, level)
    return read_columns(table, names, root or "Total")


def read_hrc(source: str | Path, root: str, leading: str) -> CodeTree:
    """Codes line by line, one level deeper than their leading signs; see `Hierarchy.from_hrc`."""
    if not leading:
        raise ParameterError("leading must be a sign such as '@', got an empty text")
    is_text = isinstance(source, str) and "\n" in source
    text = str(source) if is_text else read_text(Path(source))
    pairs: list[tuple[str, str]] = []
    path = [root]  # from the root to the code of the line before
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line:
            continue
        code, depth = line, 1
        while code.startswith(leading):
            code, depth = code.removeprefix(leading), depth + 1
        code = code.strip()
        if depth > len(path):
            raise CodeError(
                f"line {number}: {code!r} is {depth} levels deep under a code of depth "
                f"{len(path) - 1}; a code goes at most one level below the line before"
            )
        if not code:
            raise CodeError(f"line {number}: {leading!r} stands without a code")
        del path[depth:]
        pairs.append((code, path[-1]))
        path.append(code)
    return CodeTree(root, pairs)


def read_text(path: Path) -> str:
    """The text of a file in UTF-8 or, as older Windows programs write it, in Windows-1252."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"file {str(path)!r} cannot be read: {error.strerror or error}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError as error:
        message = f"file {str(path)!r} is text in neither UTF-8 nor Windows-1252; save it as UTF-8"
        raise DataError(message) from error


def write_hrc(parents: Mapping[str, str], depths: Mapping[str, int], leading: str) -> str:
    """The text of an `.hrc` file.

    Raises:
        CodeError: A code cannot be written so that it is read back as it is.
    """
    for code in parents:
        if code != code.strip() or len(code.splitlines()) != 1 or code.startswith(leading):
            raise CodeError(
                f"code {code!r} cannot stand in an .hrc file: it begins with {leading!r}, begins "
                "or ends with a blank, or breaks the line; recode it or choose another leading="
            )
    return "".join(f"{leading * (depths[code] - 1)}{code}\n" for code in parents)


def read_digits(codes: Iterable[object], digits: str | Iterable[int], root: str) -> CodeTree:
    """Codes, of full length or ending with a level, as the leaves of `Hierarchy.from_digits`."""
    try:
        widths = [int(width) for width in (digits.split() if isinstance(digits, str) else digits)]
    except ValueError:
        widths = [-1]
    if not any(widths) or min(widths) < 0:
        message = f"digits must be numbers of characters such as '2 1 2', got {digits!r}"
        raise ParameterError(message)
    # τ-ARGUS pads its lists of digits with zeros, which end no level.
    ends = list(accumulate(width for width in widths if width))
    parents: dict[str, str] = {}
    for code in map(canonical, codes):
        if len(code) not in ends:
            raise CodeError(
                f"code {code!r} has {len(code)} characters; the levels end at "
                f"{', '.join(map(str, ends))}. Were leading zeros lost?"
            )
        prefixes = [root, *(code[:end] for end in ends if end <= len(code))]
        parents.update(zip(prefixes[1:], prefixes, strict=False))
    return CodeTree(root, list(parents.items()))
