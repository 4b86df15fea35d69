"""Work in other processes: how many cores there are, and processes that leave scripts alone."""

from __future__ import annotations

import multiprocessing.context
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from types import ModuleType
from typing import TypeVar

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
