"""Parquet files, written and read by DuckDB: the same bytes for the same content."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import arro3.core as arrow

from discreet.errors import DataError
from discreet.frames import Frame

Metadata = Mapping[str, bytes]
_ROWS_PER_GROUP = 1_000_000


def write_parquet(
    path: str | Path,
    frame: Frame | Iterable[Frame],
    metadata: Metadata | None = None,
    *,
    rows_per_group: int = _ROWS_PER_GROUP,
) -> None:
    """Write a frame, or frames of the same columns one after the other as they are made."""
    options = ["FORMAT parquet", "USE_TMP_FILE false", "COMPRESSION zstd", "PARQUET_VERSION v2"]
    options += [f"ROW_GROUP_SIZE {rows_per_group}"]
    if metadata:
        told = ", ".join(f"{_name(key)}: {_blob(value)}" for key, value in metadata.items())
        options += [f"KV_METADATA {{{told}}}"]
    failed: list[BaseException] = []
    with _duckdb() as con:
        con.register("content", frame if isinstance(frame, Frame) else _stream(iter(frame), failed))
        try:
            con.execute(f"COPY (FROM content) TO {_text(path)} ({', '.join(options)})")
        except Exception:
            if failed:  # what stopped the frames, and not that the database got no more of them
                raise failed[0] from None
            raise


def parquet_bytes(frame: Frame, metadata: Metadata | None = None) -> bytes:
    """A frame as the content of a Parquet file."""
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:  # its owner's alone
        path = Path(folder, "content.parquet")
        write_parquet(path, frame, metadata)
        return path.read_bytes()


def read_parquet(path: str | Path) -> Frame:
    """The content of a Parquet file, row by row as it stands there.

    Raises:
      DataError: There is no such file, or it is none of Parquet.
    """
    with _duckdb() as con, _reading(path):
        return Frame.from_arrow(con.sql(f"FROM read_parquet({_pattern(path)})"))


def parquet_metadata(path: str | Path) -> dict[str, bytes]:
    """What a Parquet file tells beside its columns, by key.

    Raises:
      DataError: There is no such file, or it is none of Parquet.
    """
    with _duckdb() as con, _reading(path):
        found = con.execute(f"SELECT key, value FROM parquet_kv_metadata({_pattern(path)})")
        return {bytes(key).decode(): bytes(value) for key, value in found.fetchall()}


def _stream(frames: Iterator[Frame], failed: list[BaseException]) -> Any:
    """Frames as one stream of record batches, each made when it is asked for."""
    first = next(frames)._arrow()

    def batches() -> Iterator[Any]:
        yield from first.to_batches()
        try:
            for frame in frames:
                yield from frame._arrow().to_batches()
        except BaseException as error:
            failed.append(error)
            raise

    return arrow.RecordBatchReader.from_batches(first.schema, batches())


@contextmanager
def _duckdb() -> Iterator[Any]:
    """A database in memory, of one thread: rows keep their order, and files their bytes."""
    import duckdb

    with duckdb.connect(config={"threads": 1, "temp_directory": ""}) as con:
        con.execute("SET TimeZone = 'UTC'")
        con.execute("SET enable_progress_bar = false")  # it would stand among a program's output
        yield con


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    import duckdb

    if not Path(path).is_file():
        raise DataError(f"there is no file {path}.")
    try:
        yield
    except duckdb.Error as error:
        said = str(error).splitlines()[0]
        raise DataError(f"{path} could not be read as Parquet: {said}") from error


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _name(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def _pattern(path: str | Path) -> str:
    """A path in which nothing stands for other files."""
    return _text(glob.escape(str(path)))


def _blob(content: bytes) -> str:
    return "'" + "".join(f"\\x{byte:02X}" for byte in content) + "'::BLOB"
