"""How many may ask the engine or wait: threads must be left for questions that need neither."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from discreet.serve.refusals import Refusal

MOST = 16
"""Tables that a process makes at a time; the web server has 40 threads."""
CROWD = 16
"""Questions that wait at a time for a table that another one makes."""


class Seats:
    """Places for those who make a table, and others for those who wait for one under way.

    Whoever finds none is told to come back. A crowd before one slow table leaves the places in
    which other tables are made.

    Args:
      most: Places to make a table in.
      crowd: Places to wait in.
    """

    def __init__(self, most: int = MOST, crowd: int = CROWD) -> None:
        self._making, self._waiting = threading.Semaphore(most), threading.Semaphore(crowd)

    def making(self) -> AbstractContextManager[None]:
        """A place to make a table in, for the block.

        Raises:
          Refusal: Every place is taken.
        """
        return _taken(self._making)

    def waiting(self) -> AbstractContextManager[None]:
        """A place to wait in, for the block.

        Raises:
          Refusal: Every place is taken.
        """
        return _taken(self._waiting)


@contextmanager
def _taken(places: threading.Semaphore) -> Iterator[None]:
    if not places.acquire(blocking=False):
        raise busy()
    try:
        yield
    finally:
        places.release()


def busy() -> Refusal:
    """What is told to those for whom there is no place."""
    message = "Many new tables are being made at the moment."
    return Refusal("busy", message, "The same table in a few seconds.", 503)


FOR_THE_ENGINE = Seats()
"""The places of this process, for all its data sets."""
