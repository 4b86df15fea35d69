"""A few connections to one engine, lent to one question at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

from discreet.serve.data.seats import busy

T = TypeVar("T")
_PATIENCE = 60.0


class Pool(Generic[T]):
    """Connections that are opened when they are needed and used again.

    Args:
      make: Opens a connection.
      size: Most connections at a time.
      first: A connection that is open already.
      patience: Seconds that a question waits for one.
    """

    def __init__(
        self,
        make: Callable[[], T],
        size: int,
        *,
        first: T | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        self._make, self._free = make, queue.LifoQueue[T]()
        self._room, self._patience = threading.Semaphore(size), patience
        if first is not None:
            self._free.put(first)

    @contextmanager
    def lent(self) -> Iterator[T]:
        """A connection for the block.

        Raises:
          Refusal: None became free for too long.
        """
        if not self._room.acquire(timeout=self._patience):
            raise busy()
        try:
            connection = self._taken()
            try:
                yield connection
            finally:
                self._free.put(connection)
        finally:
            self._room.release()

    def _taken(self) -> T:
        with suppress(queue.Empty):
            return self._free.get_nowait()
        return self._make()
