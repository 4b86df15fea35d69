"""Results kept in memory and on the disk, each made once whoever asks for it at a time."""

from __future__ import annotations

import fcntl
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from discreet.digests import digest
from discreet.errors import DataError, DiscreetError
from discreet.files import written_whole
from discreet.release.cube import Cube, CubeAxis, CubeEntry
from discreet.serve.refusals import Refusal
from discreet.tables.statement import Statement

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class MemoryCache(Generic[K, V]):
    """A cache whose readers never wait for anything but what they asked for.

    Whoever asks first makes the result, outside of any lock; whoever asks for the same meanwhile
    waits for it. A failure is told to all who wait and is not kept.

    Args:
      room: What all results together may weigh.
      weigh: The weight of a result; every result weighs one when absent.
      limits: How many may make a result or wait for one; as many as like when absent.
    """

    def __init__(
        self,
        room: float,
        weigh: Callable[[V], float] | None = None,
        limits: WorkLimits | None = None,
    ) -> None:
        self._room, self._weigh, self._limits = room, weigh or (lambda _: 1.0), limits
        self._lock = threading.Lock()
        self._results: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._under_way: dict[K, Future[V]] = {}
        self._load = 0.0

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The result of a key, made if nobody has.

        Raises:
          Refusal: It is not at hand, and there is no place to make it or to wait for it.
        """
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key][0]
            waiting = self._under_way.get(key)
            if waiting is None:
                mine = self._under_way[key] = Future()
        return self._make(key, make, mine) if waiting is None else self._wait(waiting)

    def items(self) -> list[tuple[K, V]]:
        """What is kept at the moment."""
        with self._lock:
            return [(key, result) for key, (result, _) in self._results.items()]

    def __contains__(self, key: K) -> bool:
        return key in self._results

    def __len__(self) -> int:
        return len(self._results)

    def _wait(self, result: Future[V]) -> V:
        with nullcontext() if self._limits is None else occupy(self._limits.waiting):
            error = result.exception()
        if isinstance(error, DiscreetError):
            # Whoever waits gets an error of their own: offers near to each question are written
            # on it, and one object would show them to everybody.
            copy = type(error).__new__(type(error), *error.args)
            vars(copy).update(vars(error))
            raise copy from error
        return result.result()

    def _make(self, key: K, make: Callable[[], V], mine: Future[V]) -> V:
        try:
            with nullcontext() if self._limits is None else occupy(self._limits.making):
                result = make()
        except BaseException as error:
            with self._lock:
                del self._under_way[key]
            mine.set_exception(error)
            raise
        with self._lock:
            self._keep(key, result)
            del self._under_way[key]
        mine.set_result(result)
        return result

    def _keep(self, key: K, result: V) -> None:
        weight = self._weigh(result)
        self._results[key] = (result, weight)
        self._load += weight
        while self._load > self._room and len(self._results) > 1:
            _, (_, gone) = self._results.popitem(last=False)
            self._load -= gone


class WorkLimits:
    """Places for those who make a table, and others for those who wait for one under way.

    Whoever finds none is told to come back. A crowd before one slow table leaves the places in
    which other tables are made.

    Args:
      making: Tables that are made at a time.
      waiting: Questions that wait at a time for a table that another one makes.
    """

    # The web server has 40 threads: eight are left for questions that need no engine.
    def __init__(self, making: int = 16, waiting: int = 16) -> None:
        self.making, self.waiting = threading.Semaphore(making), threading.Semaphore(waiting)


@contextmanager
def occupy(places: threading.Semaphore) -> Iterator[None]:
    """A place for the block, or a refusal where every place is taken."""
    if not places.acquire(blocking=False):
        raise busy_refusal()
    try:
        yield
    finally:
        places.release()


def busy_refusal() -> Refusal:
    """What is told to those for whom there is no place."""
    message = "Many new tables are being made at the moment."
    return Refusal("busy", message, "The same table in a few seconds.", 503)


ENGINE_LIMITS = WorkLimits()
"""The places of this process, for all its data sets."""


class DiskCache:
    """A folder of cubes by key; each is made once, whatever processes ask for it at a time.

    Private tables need it: a second draw would cost the budget again. For tables with keyed noise
    it is a choice: a page takes 6 ms instead of 28 ms after a restart or in another process.

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
        with open(path.with_suffix(".lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a process that dies lets it go
            if path.exists():  # another process made it while this one waited
                return read_cube(path)
            cube = make()
            write_cube(cube, path)
            return cube

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return self._path(key).exists()

    def _path(self, key: tuple[str, ...]) -> Path:
        return self._folder / f"{digest(self._origin, json.dumps(key)).hex()[:32]}.npz"


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
        CubeAxis(a["name"], a["label"], tuple(CubeEntry(**e) for e in a["entries"]))
        for a in about["axes"]
    )
    return Cube(axes, values, status, about["unit"], Statement.from_json(about["statement"]))
