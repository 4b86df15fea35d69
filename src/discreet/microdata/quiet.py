"""Silence about old names that libraries call, for all threads at once.

`warnings.catch_warnings` saves and restores what the whole process ignores. Two threads whose
blocks overlap would undo each other's, so one block is shared: the first thread opens it and the
last one closes it.
"""

from __future__ import annotations

import threading
import warnings


class Quiet:
    """A block that any number of threads may be in."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._block = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._block = warnings.catch_warnings()
                self._block.__enter__()
                _ignore()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._block.__exit__(None, None, None)


def _ignore() -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # Ibis calls DuckDB's old names
    warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)


quiet = Quiet()
