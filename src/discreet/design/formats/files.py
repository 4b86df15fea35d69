"""A hierarchy from a file, told apart by extension and content."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from discreet.design.codes import canonical
from discreet.design.formats.sdmx import read_sdmx
from discreet.design.formats.tables import read_columns, read_parent_child
from discreet.design.formats.tree import Tree, read_nested
from discreet.errors import CodeError, DataError, ParameterError, UnknownNameError

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


def read_hrc(source: str | Path, root: str, leading: str) -> Tree:
    """Codes line by line; a code's depth below the root is one more than its leading signs.

    Args:
        source: A path, or the text itself when it is a string with a line break.
        root: Code of the total, which the file leaves out.
        leading: The sign that is repeated once for every level.
    """
    if not leading:
        message = "leading must be a sign such as '@', got an empty text"
        raise ParameterError(message)
    is_text = isinstance(source, str) and "\n" in source
    text = str(source) if is_text else read_text(Path(source))
    return Tree(root, _pairs(text, root, leading))


def read_text(path: Path) -> str:
    """The text of a file in UTF-8 or, as older Windows programs write it, in Windows-1252."""
    try:
        content = path.read_bytes()
    except OSError as error:
        message = f"file {str(path)!r} cannot be read: {error.strerror or error}"
        raise DataError(message) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    try:
        return content.decode("cp1252")
    except UnicodeDecodeError as error:
        message = f"file {str(path)!r} is text in neither UTF-8 nor Windows-1252; save it as UTF-8"
        raise DataError(message) from error


def _pairs(text: str, root: str, leading: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    path = [root]
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        depth, code = _depth_and_code(line.strip(), leading)
        if depth > len(path):
            message = (
                f"line {number}: {code!r} is {depth} levels deep under a code of depth "
                f"{len(path) - 1}; a code goes at most one level below the line before"
            )
            raise CodeError(message)
        if not code:
            message = f"line {number}: {leading!r} stands without a code"
            raise CodeError(message)
        del path[depth:]
        pairs.append((code, path[-1]))
        path.append(code)
    return pairs


def _depth_and_code(line: str, leading: str) -> tuple[int, str]:
    depth, start = 1, 0
    while line.startswith(leading, start):
        depth, start = depth + 1, start + len(leading)
    return depth, line[start:].strip()


def write_hrc(parents: Mapping[str, str], depths: Mapping[str, int], leading: str) -> str:
    """The text of an `.hrc` file.

    Raises:
        CodeError: A code cannot be written so that it is read back as it is.
    """
    for code in parents:
        if code != code.strip() or len(code.splitlines()) != 1 or code.startswith(leading):
            message = (
                f"code {code!r} cannot stand in an .hrc file: it begins with {leading!r}, begins "
                "or ends with a blank, or breaks the line; recode it or choose another leading="
            )
            raise CodeError(message)
    return "".join(f"{leading * (depths[code] - 1)}{code}\n" for code in parents)


def read_digits(codes: Iterable[object], digits: str | Iterable[int], root: str) -> Tree:
    """Codes whose leading digits are their groups: with ``"2 1 2"``, 01101 < 011 < 01 < root.

    Args:
        codes: Codes of full length, or shorter ones that end with a level.
        digits: Number of characters of each level, coarsest first.
        root: Code of the total.
    """
    ends = _level_ends(digits)
    parents: dict[str, str] = {}
    for code in map(canonical, codes):
        if len(code) not in ends:
            message = (
                f"code {code!r} has {len(code)} characters; the levels end at "
                f"{', '.join(map(str, ends))}. Were leading zeros lost?"
            )
            raise CodeError(message)
        prefixes = [root, *(code[:end] for end in ends if end <= len(code))]
        parents.update(zip(prefixes[1:], prefixes, strict=False))
    return Tree(root, list(parents.items()))


def _level_ends(digits: str | Iterable[int]) -> list[int]:
    given = digits.split() if isinstance(digits, str) else list(digits)
    try:
        widths = [int(width) for width in given]
    except ValueError:
        widths = [-1]
    if not any(widths) or min(widths) < 0:
        message = f"digits must be numbers of characters such as '2 1 2', got {digits!r}"
        raise ParameterError(message)
    return list(accumulate(width for width in widths if width))
