"""Long work: what it tells of its progress, and how it is shared among processes."""

from __future__ import annotations

import logging
import multiprocessing.context
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import TypeVar

Listener = Callable[[str, float], None]
_listener: ContextVar[Listener | None] = ContextVar("discreet_progress", default=None)


def report(task: str, fraction: float) -> None:
    """Say that a share of a task, between 0 and 1, is done."""
    listener = _listener.get()
    if listener is not None:
        listener(task, min(max(fraction, 0.0), 1.0))


def is_heard() -> bool:
    """Whether somebody listens to progress already."""
    return _listener.get() is not None


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


class OutOfTimeError(Exception):
    """The time that some work was given is over; see `time_limit`."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Stop the work of the block by an `OutOfTimeError` when it reports after so much time.

    The time is that of this process's processors, so that other work on the machine takes nothing
    of it. Work that reports nothing is not stopped before it ends.
    """
    outer, end = _listener.get(), time.process_time() + seconds

    def check(task: str, fraction: float) -> None:
        if outer is not None:
            outer(task, fraction)
        if time.process_time() >= end:
            raise OutOfTimeError(task)

    with listening(check):
        yield


Part = TypeVar("Part")
Done = TypeVar("Done")


def available_cores() -> int:
    """Cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


def in_processes(
    work: Callable[[Part], Done], parts: Sequence[Part], processes: int
) -> Iterator[Done]:
    """The results of the parts, in their order, made by several processes."""
    with ProcessPoolExecutor(min(processes, len(parts)), Spawn()) as pool:
        yield from pool.map(work, parts)


class _Process(multiprocessing.context.SpawnProcess):
    """A process that does not run the main script again, so scripts need no guard."""

    def start(self) -> None:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            super().start()
        finally:
            sys.modules["__main__"] = main


class Spawn(multiprocessing.context.SpawnContext):
    """Starts processes that do not run the main script again."""

    Process = _Process
