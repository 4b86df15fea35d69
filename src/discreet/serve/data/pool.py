"""A few connections to one engine, lent to one question at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from discreet.serve.refusals import Refusal

T = TypeVar("T")
_PATIENCE = 60.0


class Pool(Generic[T]):
    """Connections that are opened when they are needed and used again.

    Args:
      make: Opens a connection.
      size: Most connections at a time.
      most_waiting: Questions that may wait for one; more are refused at once, so that threads are
        left for those that need none.
      first: A connection that is open already.
    """

    def __init__(
        self, make: Callable[[], T], size: int, most_waiting: int = 24, first: T | None = None
    ) -> None:
        self._make, self._free = make, queue.LifoQueue[T]()
        self._room = threading.Semaphore(size)
        self._seats = threading.Semaphore(size + most_waiting)
        if first is not None:
            self._free.put(first)

    @contextmanager
    def lent(self) -> Iterator[T]:
        """A connection for the block.

        Raises:
          Refusal: Too many questions wait already.
        """
        if not self._seats.acquire(blocking=False):
            raise _busy()
        try:
            if not self._room.acquire(timeout=_PATIENCE):
                raise _busy()
            try:
                connection = self._taken()
                try:
                    yield connection
                finally:
                    self._free.put(connection)
            finally:
                self._room.release()
        finally:
            self._seats.release()

    def _taken(self) -> T:
        try:
            return self._free.get_nowait()
        except queue.Empty:
            return self._make()


def _busy() -> Refusal:
    message = "Many new tables are being made at the moment."
    return Refusal("busy", message, "The same table in a few seconds.", 503)
