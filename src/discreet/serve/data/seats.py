"""How many may wait for the engine: threads must be left for questions that need none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.serve.refusals import Refusal

MOST = 24
"""Questions of a process that may wait at a time; the web server has 40 threads."""


class Seats:
    """Places to wait in; whoever finds none is told to come back.

    Args:
      most: Number of places.
    """

    def __init__(self, most: int = MOST) -> None:
        self._free = threading.Semaphore(most)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A place for the block.

        Raises:
          Refusal: Every place is taken.
        """
        if not self._free.acquire(blocking=False):
            raise busy()
        try:
            yield
        finally:
            self._free.release()


def busy() -> Refusal:
    """What is told to those for whom there is no place."""
    message = "Many new tables are being made at the moment."
    return Refusal("busy", message, "The same table in a few seconds.", 503)


FOR_THE_ENGINE = Seats()
"""The places of this process, for all its data sets."""
