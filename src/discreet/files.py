"""Files that are written whole or not at all; TOML files, read."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import DataError, DiscreetError, ParameterError

OWNER_ONLY = 0o600
EVERYONE = 0o644
IS_WINDOWS = os.name == "nt"
_PATIENCE = 86_400.0  # seconds; whoever holds a lock longer than a day has been forgotten
PARQUET = (".parquet", ".pq")


def ending_of(path: str | Path, known: Sequence[str], why: str = "") -> str:
    """The ending of a file's name, which says in what format it is written.

    One that is not known is refused; `why` is said before the endings that are.
    """
    name = Path(path).name
    for ending in known:
        if name.lower().endswith(ending):
            return ending
    listed = ", ".join(known[:-1]) + " or " * (len(known) > 1) + known[-1]
    raise ParameterError(f"cannot write {name!r}: {why}the name must end in {listed}.")


@contextmanager
def written_whole(path: str | Path, mode: int = EVERYONE) -> Iterator[Path]:
    """A temporary path beside `path` that takes its name on success and vanishes on failure.

    The file has its final permissions before the first byte is written.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except FileNotFoundError:
        if target.parent.is_dir():
            raise DataError(f"cannot write to {target}: its folder takes no files.") from None
        raise DataError(
            f"cannot write to {target}: there is no folder {target.parent}; make it first."
        ) from None
    except OSError as error:
        raise DataError(f"cannot write to {target}: {error.strerror}.") from error
    try:
        yield temporary
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise DataError(f"cannot write to {target}: {error.strerror}.") from error
        raise


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise DataError(f"there is no file {path}.") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; a TOML file was expected.") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not TOML in UTF-8: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is not valid TOML: {error}.") from error


def write_text(path: str | Path, text: str, mode: int = EVERYONE) -> Path:
    """Write a text file whole or not at all; its lines end in the same way on every system."""
    with written_whole(path, mode) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


@contextmanager
def made_once(path: Path) -> Iterator[Path]:
    """A temporary path that its owner alone reads; on success it takes the name, if that is free.

    Whoever comes second keeps what the first one made.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWNER_ONLY))
        yield temporary
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def held_lock(path: Path) -> Iterator[None]:
    """A lock that one process or thread holds at a time; one that dies lets it go.

    SQLite locks the file, in the way of each system, and nothing is ever written to it.

    Raises:
      DataError: The lock cannot be had, after a day or because its file cannot be written.
    """
    import sqlite3  # start-up time

    with ExitStack() as held:
        try:
            lock = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
            held.callback(lock.close)
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise DataError(f"cannot lock {path}: {error}.") from error
        yield


def flush(path: Path) -> None:
    """Bring a file or a folder to the disk, so that a rename never points at less than it said."""
    if IS_WINDOWS and path.is_dir():  # folders cannot be opened there
        return
    # Windows brings to the disk what was opened for writing alone.
    handle = os.open(path, os.O_RDWR if IS_WINDOWS else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def refuse_shared(what: str, path: Path, found: os.stat_result, error: type[DiscreetError]) -> None:
    """Refuse a file that others than its owner can reach.

    On Windows access lists decide, which permissions say nothing about: nothing is found there.
    """
    if not IS_WINDOWS and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise error(
            f"{what} {path} has permissions {stat.S_IMODE(found.st_mode):o}: others can reach it. "
            f"Change them with `chmod 600 {path}`."
        )
