"""Values and files as texts that are equal exactly when the values are."""

from __future__ import annotations

import base64
import dataclasses
import enum
import io
import itertools
import json
import re
import sqlite3
import zipfile
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_MONTHS_NB = [
    "januar",
    "februar",
    "mars",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "desember",
]
_VOLATILE = [
    (re.compile(r" at 0x[0-9a-f]+"), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?"), "<TIME>"),
    (re.compile(r"http://127\.0\.0\.1:\d+"), "<SERVER>"),
    (re.compile(r'"seconds": [-+.\de]+'), '"seconds": <SECONDS>'),
    (re.compile(r"\bbuild-[0-9a-f]{12}\b"), "<BUILD>"),
    (re.compile(r"localhost:\d+|127\.0\.0\.1:\d+"), "<SERVER>"),
]


def normalised(text: str, *folders: Path) -> str:
    """A text without what may change between two runs: days, times, ports, temporary folders."""
    for folder in folders:
        text = text.replace(str(folder.resolve()), "<FOLDER>").replace(str(folder), "<FOLDER>")
    for pattern, mark in _VOLATILE:
        text = pattern.sub(mark, text)
    for day in (datetime.now(UTC) - timedelta(days=back) for back in (0, 1)):
        for written in _ways_to_write(day):
            text = text.replace(written, "<TODAY>")
    return text


def _ways_to_write(day: datetime) -> list[str]:
    return [
        f"{day:%Y-%m-%d}",
        f"{day:%Y%m%d}",
        f"{day.day} {day:%B %Y}",
        f"{day.day}. {_MONTHS_NB[day.month - 1]} {day.year}",
    ]


def text_of(value: Any) -> str:
    """A value as text: arrays with their types and all digits, frames with schema and rows."""
    return "\n".join(_lines(value, ""))


def _lines(value: Any, indent: str) -> list[str]:
    value, inside = _plain(value), indent + "  "
    if isinstance(value, np.ndarray):
        return _array_lines(value, indent)
    if isinstance(value, Mapping):
        named = ([f"{indent}{key}:", *_lines(each, inside)] for key, each in value.items())
        return list(itertools.chain.from_iterable(named))
    if isinstance(value, str):
        return [f"{indent}{line}" for line in value.splitlines()] or [f"{indent}(empty)"]
    if isinstance(value, Sequence) and not isinstance(value, bytes | range):
        if all(isinstance(each, str | int | float | None) for each in value):
            return [f"{indent}{list(value)!r}"]
        return [line for each in value for line in [f"{indent}-", *_lines(each, inside)]]
    return [f"{indent}{value!r}"]


def _plain(value: Any) -> Any:
    """A value as an array, a mapping, a sequence, a text, or itself where it is none of them."""
    if isinstance(value, np.ma.MaskedArray):
        return {"masked": np.asarray(value.filled(-1)), "mask": np.asarray(value.mask)}
    if isinstance(value, np.generic):
        return f"{value.dtype} {value.item()!r}"
    if hasattr(value, "tocsr") and hasattr(value, "nnz"):
        return value.toarray()
    if isinstance(value, pa.Table):
        return frame_text(value)
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return f"{value.type} {value.to_pylist()!r}"
    if type(value).__module__.startswith("polars"):
        return {"polars": value.to_arrow()}
    if type(value).__module__.startswith("pandas"):
        return {"pandas": pa.Table.from_pandas(value)}
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return sorted(value, key=repr) if isinstance(value, Set) else value


def _array_lines(value: np.ndarray, indent: str) -> list[str]:
    rows = value.reshape(-1, value.shape[-1]) if value.ndim > 1 and value.size else value
    lines = [repr(row) for row in rows.tolist()]
    if value.ndim <= 1:
        lines = [" ".join(lines[at : at + 16]) for at in range(0, len(lines), 16)]
    shape = "x".join(map(str, value.shape))
    return [f"{indent}{value.dtype} {shape}", *(f"{indent}  {line}" for line in lines)]


def frame_text(table: pa.Table) -> str:
    """Schema, metadata and rows of an Arrow table."""
    found = [f"{field.name}: {field.type}" for field in table.schema]
    for key, value in sorted((table.schema.metadata or {}).items()):
        if key == b"ARROW:schema":
            continue
        found.append(f"metadata {key.decode()}: {_metadata(value)}")
    columns = [column.to_pylist() for column in table.columns]
    return "\n".join([*found, *(repr(row) for row in zip(*columns, strict=True))])


def _metadata(value: bytes) -> str:
    try:
        return json.dumps(json.loads(value), indent=1, ensure_ascii=False)
    except (UnicodeDecodeError, json.JSONDecodeError):
        return base64.b64encode(value).decode()


def content_text(content: bytes, name: str) -> str:
    """The content of a file, by what its name says it is."""
    if content[:4] == b"PAR1":
        return frame_text(pq.read_table(io.BytesIO(content)))
    if content[:6] == b"\x93NUMPY":
        return text_of(np.load(io.BytesIO(content)))
    if content[:2] == b"PK":
        return _zip_text(content)
    if content[:15] == b"SQLite format 3":
        return f"sqlite {name}"
    try:
        return content.decode()
    except UnicodeDecodeError:
        return base64.encodebytes(content).decode()


def _zip_text(content: bytes) -> str:
    """The parts of a workbook or archive; the times within the archive say nothing."""
    with zipfile.ZipFile(io.BytesIO(content)) as parts:
        names = parts.namelist()
        texts = [content_text(parts.read(name), name).replace("><", ">\n<") for name in names]
    return "\n".join(f"-- {name}\n{text}" for name, text in zip(names, texts, strict=True))


def sqlite_text(path: Path) -> str:
    """Tables and rows of a database; blobs in hexadecimal."""
    with sqlite3.connect(path) as db:
        return "\n".join(db.iterdump())


def folder_text(folder: Path, *, but: Set[str] = frozenset()) -> str:
    """Every file under a folder: its name, who may read it, and its content."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if name in but or name.endswith(("-wal", "-shm", ".lock")):
            continue
        content = path.read_bytes()
        is_database = content[:15] == b"SQLite format 3"
        text = sqlite_text(path) if is_database else content_text(content, name)
        found.append(f"-- {name} {path.stat().st_mode & 0o777:o}\n{text}")
    return "\n".join(found)


def outcome(action: Any) -> str:
    """What a call gives, or the error it ends in; its class says less than its text."""
    try:
        return text_of(action())
    except Exception as error:
        public = error.public() if hasattr(error, "public") else ""
        return f"{type(error).__name__}: {error}\npublic: {public}"
