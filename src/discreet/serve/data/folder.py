"""The folder of a built data set: finished builds beside each other, and which of them is served.

A build is written under a name of its own and takes effect when the pointer to it is exchanged, so
a table is there whole or not at all, and one that is being served stays until nobody reads it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import DataError
from discreet.files import written_whole
from discreet.serve.data.inner import InnerTable

POINTER = "current"
_PARTIAL = ".part"
_ABANDONED = 86_400.0  # seconds after which a build that is not complete never will be


def write_build(table: InnerTable, folder: Path) -> Path:
    """Write an inner table and make it the one that is served; returns its place."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"build-{secrets.token_hex(6)}"
        partial = place.with_name(place.name + _PARTIAL)
        partial.mkdir()
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror}.") from error
    try:
        table.write(partial)
        _flush(partial)
        with _alone(folder):
            os.replace(partial, place)
            _point(folder, place)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return place


def read_build(folder: Path, made_from: str) -> InnerTable:
    """The inner table that is served from a folder.

    Args:
      folder: The data set's folder.
      made_from: What the table must have been made from.

    Raises:
      DataError: There is none, or it was made by another recipe or from another edition.
    """
    place = pointed(folder)
    if place is None or not place.is_dir():
        raise DataError(
            f"data set {folder.name!r} has not been built: there is no inner table in {folder}. "
            "Build it: discreet build site.toml."
        )
    table = InnerTable.read(place)
    if not _is_same(table.made_from, made_from):
        raise DataError(
            f"the inner table of data set {folder.name!r} (edition {table.edition}) was built with "
            "another recipe, edition or code list, or other keys, than the site's file names now. "
            "Build it again: discreet build site.toml."
        )
    return table


def _is_same(built: str, wanted: str) -> bool:
    """Whether both were made from the same; a secret that is not at hand is not compared."""
    (made, _, mark), (now, _, known) = built.partition("."), wanted.partition(".")
    return made == now and (mark == known or not known)


def is_built(folder: Path, made_from: str) -> bool:
    """Whether a folder holds the inner table that is wanted."""
    try:
        read_build(folder, made_from)
    except DataError:
        return False
    return True


def pointed(folder: Path) -> Path | None:
    """The build that is served from a folder, if there is one."""
    try:
        name = (folder / POINTER).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return folder / name if name and name == Path(name).name else None


def _point(folder: Path, place: Path) -> None:
    """Make a build the one that is served, and remove those that nobody needs any more."""
    before = pointed(folder)
    with written_whole(folder / POINTER) as temporary:
        temporary.write_text(place.name, encoding="ascii")
    _remove_others(folder, {place.name, before.name if before else ""})


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other builds of the same data set waiting; a process that dies lets them go."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _flush(folder: Path) -> None:
    """Have every file on the disk before the pointer names them."""
    for path in [*folder.iterdir(), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_others(folder: Path, kept: set[str]) -> None:
    """Remove builds but the newest two, and what builds that were killed have left.

    Servers that have not reloaded yet may open the older one.
    """
    for path in folder.glob("build-*"):
        is_partial = path.name.endswith(_PARTIAL)
        if (is_partial and _age(path) > _ABANDONED) or (not is_partial and path.name not in kept):
            shutil.rmtree(path, ignore_errors=True)


def _age(path: Path) -> float:
    """Seconds since something was last written into a folder; zero when it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
