"""Progress of long work: whoever works reports, whoever wants to know listens."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float], None]
_listener: ContextVar[Listener | None] = ContextVar("discreet_progress", default=None)


def report(task: str, fraction: float) -> None:
    """Say that a share of a task, between 0 and 1, is done."""
    listener = _listener.get()
    if listener is not None:
        listener(task, min(max(fraction, 0.0), 1.0))


def notice(text: str) -> None:
    """Say something that the custodian should know before the work goes on; never a record's value.

    It goes to the log `discreet`, which shows it on the error stream unless it is set up otherwise.
    """
    logging.getLogger("discreet").warning(text)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have progress reported to `listener` within the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
