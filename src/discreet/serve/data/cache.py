"""Results kept in memory and on the disk, each made once whoever asks for it at a time."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Generic, TypeVar
from zipfile import BadZipFile

import numpy as np

from discreet.digests import digest
from discreet.errors import DataError, DiscreetError
from discreet.files import held_lock, written_whole
from discreet.release.cube import Cube, CubeAxis, CubeEntry
from discreet.serve.refusals import Refusal, asking_visitor
from discreet.tables.statement import Statement

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_log = logging.getLogger("discreet.serve")


class MemoryCache(Generic[K, V]):
    """A cache whose readers never wait for anything but what they asked for.

    Whoever asks first makes the result, outside of any lock; whoever asks for the same meanwhile
    waits for it. A failure is told to all who wait and is not kept.

    Args:
      room: What all results together may weigh.
      weigh: The weight of a result; every result weighs one when absent.
      seats: In which the result of a key is made; as many at a time as like when absent.
    """

    def __init__(
        self,
        room: float,
        weigh: Callable[[V], float] | None = None,
        seats: Callable[[K], Seats] | None = None,
    ) -> None:
        self._room, self._weigh, self._seats = room, weigh or (lambda _: 1.0), seats
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
        return self._make(key, make, mine) if waiting is None else self._wait(key, waiting)

    def items(self) -> list[tuple[K, V]]:
        """What is kept at the moment."""
        with self._lock:
            return [(key, result) for key, (result, _) in self._results.items()]

    def __contains__(self, key: K) -> bool:
        return key in self._results

    def __len__(self) -> int:
        return len(self._results)

    def _wait(self, key: K, result: Future[V]) -> V:
        with nullcontext() if self._seats is None else self._seats(key).wait(asking_visitor()):
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
            with nullcontext() if self._seats is None else self._seats(key).take(asking_visitor()):
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


class Seats:
    """Seats in which tables are made, shared fairly among visitors.

    A seat that becomes free goes to the visitor who holds the fewest, among those to the one whose
    last turn is longest ago, and then to whoever came first: many questions of one visitor leave
    the others nearly where they would be without them.

    Args:
      seats: Tables that are made at a time.
      line: Questions that wait at a time, for a seat or for a table that another one makes.
      of_one: How many of them may be one visitor's.
      patience: Seconds that a question waits for a seat.
    """

    def __init__(
        self, seats: int = 4, line: int = 200, of_one: int = 40, patience: float = 30.0
    ) -> None:
        self.seats, self.line, self.of_one, self.patience = seats, line, of_one, patience
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._line: list[tuple[str, threading.Event]] = []
        self._turns, self._last_turn = 0, dict[str, int]()
        self._beside: Counter[str] = Counter()  # those who wait for a table, not for a seat

    @property
    def load(self) -> tuple[int, int]:
        """Seats that are taken, and questions that wait."""
        return self._held.total(), len(self._line) + self._beside.total()

    @contextmanager
    def take(self, visitor: str) -> Iterator[None]:
        """A seat for the block.

        Raises:
          Refusal: The line is full, or no seat became free for too long.
        """
        ready = threading.Event()
        with self._lock:
            self._check_room(visitor)
            self._line.append((visitor, ready))
            self._admit()
        if not ready.wait(self.patience):
            with self._lock:
                if not ready.is_set():  # else the seat came at the last moment
                    self._line.remove((visitor, ready))
                    raise busy_refusal()
        try:
            yield
        finally:
            with self._lock:
                _count_down(self._held, visitor)
                self._admit()

    @contextmanager
    def wait(self, visitor: str) -> Iterator[None]:
        """A place in the line for the block, for a table that another question makes."""
        with self._lock:
            self._check_room(visitor)
            self._beside[visitor] += 1
        try:
            yield
        finally:
            with self._lock:
                _count_down(self._beside, visitor)

    def _check_room(self, visitor: str) -> None:
        own = self._beside[visitor] + sum(name == visitor for name, _ in self._line)
        if own >= self.of_one or len(self._line) + self._beside.total() >= self.line:
            raise busy_refusal()

    def _admit(self) -> None:
        while self._line and self._held.total() < self.seats:
            visitor, ready = min(self._line, key=lambda one: self._rank(one[0]))
            self._line.remove((visitor, ready))
            self._held[visitor] += 1
            self._turns += 1
            self._last_turn[visitor] = self._turns
            ready.set()
        if not self._line and not self._held:  # nobody is behind anybody
            self._last_turn.clear()

    def _rank(self, visitor: str) -> tuple[int, int]:
        return self._held[visitor], self._last_turn.get(visitor, 0)


def _count_down(counter: Counter[str], visitor: str) -> None:
    counter[visitor] -= 1
    if not counter[visitor]:
        del counter[visitor]  # visitors come and go


def busy_refusal() -> Refusal:
    """What is told to those for whom there is no place."""
    message = "Many new tables are being made at the moment."
    return Refusal("busy", message, "The same table in a few seconds.", 503)


class SeatsBySize:
    """Seats for small tables, and others for large ones.

    Threads of Python share one core. Where all work at once, a small table takes as long as the
    large ones beside it: of 50 visitors who asked without a pause, one in a hundred waited more
    than five seconds for a table of less than 1,000 cells.

    Args:
      small: Small tables at a time.
      large: Others at a time.
    """

    most_cells = 1_000  # of a small table, and one more

    def __init__(self, small: int, large: int) -> None:
        self.small, self.large = Seats(small), Seats(large, patience=60.0)

    def of(self, cells: int) -> Seats:
        """The seats for a table of so many cells."""
        return self.small if cells < self.most_cells else self.large

    @property
    def load(self) -> tuple[int, int]:
        """Seats that are taken, and questions that wait."""
        (small, waiting), (large, others) = self.small.load, self.large.load
        return small + large, waiting + others


# Those of this process, for all its data sets; what is expensive is made in other processes.
MAKING_SEATS = SeatsBySize(1, 1)
WRITING_SEATS = SeatsBySize(1, 1)


class DiskCache:
    """A folder of cubes by key; each is made once, whatever processes ask for it at a time.

    Private tables need it: a second draw would cost the budget again. For tables with keyed noise
    it is a choice: a page takes 6 ms instead of 28 ms after a restart or in another process.

    Args:
      folder: The folder, made when it is not there.
      origin: What the cubes are made from; those of another origin are never found.
      room: Bytes that are kept, the oldest go first; without it nothing goes.
    """

    def __init__(self, folder: Path, origin: str, room: float = math.inf) -> None:
        self._folder, self._origin, self._room = folder, origin, room
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write to {folder}: {error.strerror}.") from error

    def get(self, key: tuple[str, ...], make: Callable[[], Cube]) -> Cube:
        """The cube of a key, from the disk or made and kept there."""
        path = self._path(key)
        if path.exists() and (found := self._read(path)):
            return found
        with held_lock(path.with_suffix(".lock")):
            # Another process may have made it while this one waited.
            if path.exists() and (found := self._read(path)):
                return found
            cube = make()
            write_cube(cube, path)
            self._make_room(path)
            return cube

    def _read(self, path: Path) -> Cube | None:
        """A cube that is kept; nothing where it is damaged and may be made again."""
        try:
            return read_cube(path)
        except DataError as error:
            if self._room == math.inf:  # a private table: another draw would be another release
                raise
            path.unlink(missing_ok=True)
            _log.error("%s It was removed, and the table is made again.", error)
            return None

    def _make_room(self, newest: Path) -> None:
        """Remove the oldest cubes, of other origins too, but never the one just written."""
        if self._room == math.inf:
            return
        sizes = {p: s for p in self._folder.glob("*.npz") if (s := _stat(p)) is not None}
        load = sum(size for _, size in sizes.values())
        for path in sorted(sizes, key=lambda p: sizes[p][0]):
            if load > self._room and path != newest:
                load -= sizes[path][1]
                path.unlink(missing_ok=True)
                path.with_suffix(".lock").unlink(missing_ok=True)

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return self._path(key).exists()

    def _path(self, key: tuple[str, ...]) -> Path:
        return self._folder / f"{digest(self._origin, json.dumps(key)).hex()[:32]}.npz"


def _stat(path: Path) -> tuple[int, int] | None:
    """When a file was written, and its size; nothing where another process has just removed it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


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
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
        raise DataError(
            f"{path} holds no cube that can be read ({type(error).__name__}). Remove the file."
        ) from None
    axes = tuple(
        CubeAxis(a["name"], a["label"], tuple(CubeEntry(**e) for e in a["entries"]))
        for a in about["axes"]
    )
    return Cube(axes, values, status, about["unit"], Statement.from_json(about["statement"]))
