"""Protected cubes on the disk, shared by all processes that serve a site."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from discreet.digests import digest
from discreet.errors import DataError
from discreet.files import written_whole
from discreet.release.cube import Cube, CubeAxis, Entry
from discreet.tables.statement import Statement


class Shelf:
    """A folder of cubes by key; each is made once, whatever processes ask for it at a time.

    Args:
      folder: The folder, made when it is not there.
      origin: What the cubes are made from; those of another origin are never found.
    """

    def __init__(self, folder: Path, origin: str) -> None:
        self._folder, self._origin = folder, origin
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write to {folder}: {error.strerror}.") from error

    def get(self, key: tuple[str, ...], make: Callable[[], Cube]) -> Cube:
        """The cube of a key, from the disk or made and kept there."""
        path = self._path(key)
        if path.exists():
            return read_cube(path)
        with self._alone(path):
            if path.exists():  # another process made it while this one waited
                return read_cube(path)
            cube = make()
            write_cube(cube, path)
            return cube

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return self._path(key).exists()

    def _path(self, key: tuple[str, ...]) -> Path:
        return self._folder / f"{digest(self._origin, json.dumps(key)).hex()[:32]}.npz"

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        """Hold the lock of a cube; a process that dies lets it go."""
        with open(path.with_suffix(".lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def write_cube(cube: Cube, path: Path) -> None:
    """Write a cube to a file, whole or not at all."""
    about = {
        "axes": [
            {"name": a.name, "label": a.label, "entries": [vars(e) for e in a.entries]}
            for a in cube.axes
        ],
        "unit": cube.unit,
        "statement": cube.statement.to_json(),
    }
    text = np.frombuffer(json.dumps(about, ensure_ascii=False).encode(), dtype=np.uint8)
    with written_whole(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, values=cube.values, status=cube.status, about=text)


def read_cube(path: Path) -> Cube:
    """A cube from its file."""
    try:
        with np.load(path, allow_pickle=False) as found:
            about: dict[str, Any] = json.loads(found["about"].tobytes())
            values, status = found["values"], found["status"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{path} holds no cube that can be read ({type(error).__name__}). Remove the file."
        ) from None
    axes = tuple(
        CubeAxis(a["name"], a["label"], tuple(Entry(**e) for e in a["entries"]))
        for a in about["axes"]
    )
    return Cube(axes, values, status, about["unit"], Statement.from_json(about["statement"]))
