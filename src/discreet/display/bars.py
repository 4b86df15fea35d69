"""How far long work is, on the error stream: one bar in terminals, one line in notebooks."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, Protocol, TypeVar

from discreet.progress import is_heard, listening

Given = ParamSpec("Given")
Result = TypeVar("Result")
_PATIENCE = 2.0  # seconds; what takes less is not announced
_PAUSE = 0.2  # seconds between two states of a line
_one_at_a_time = threading.Lock()


class _Screen(Protocol):
    def show(self, task: str, fraction: float | None) -> None:
        """Say how far a task is; without a share, that it has begun."""

    def close(self) -> None:
        """Leave nothing behind."""


class _Terminal:
    """A bar for each task, drawn by rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bars = Progress(console=Console(stderr=True), transient=True)
        self._tasks: dict[str, Any] = {}
        self._bars.start()

    def show(self, task: str, fraction: float | None) -> None:
        from rich.markup import escape

        if task not in self._tasks:
            total = None if fraction is None else 1.0
            self._tasks[task] = self._bars.add_task(escape(task), total=total)
        if fraction is not None:
            self._bars.update(self._tasks[task], completed=fraction, total=1.0)

    def close(self) -> None:
        self._bars.stop()


class _Notebook:
    """One line that is written over: notebooks know no other control of the error stream."""

    def __init__(self) -> None:
        self._written, self._width = 0.0, 0

    def show(self, task: str, fraction: float | None) -> None:
        now = time.monotonic()
        if now - self._written < _PAUSE:
            return
        self._written = now
        self._write(f"{task} …" if fraction is None else f"{task}: {fraction:.0%}")

    def close(self) -> None:
        self._write("")
        self._write("", end="\r")

    def _write(self, text: str, end: str = "") -> None:
        sys.stderr.write("\r" + text.ljust(self._width) + end)
        sys.stderr.flush()
        self._width = max(self._width, len(text))


class _Watch:
    """Shows nothing for two seconds, then what was reported last, and all that follows."""

    def __init__(self, title: str, screen: Callable[[], _Screen]) -> None:
        self._make = screen
        self._screen: _Screen | None = None
        self._last: tuple[str, float | None] = (title, None)
        self._lock, self._is_open = threading.Lock(), True
        self._timer = threading.Timer(_PATIENCE, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, task: str, fraction: float) -> None:
        with self._lock:
            self._last = task, fraction
            if self._screen is not None:
                self._screen.show(task, fraction)

    def _begin(self) -> None:
        with self._lock:
            if self._is_open:
                self._screen = self._make()
                self._screen.show(*self._last)

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_open = False
            if self._screen is not None:
                self._screen.close()


@contextmanager
def show_progress(title: str = "working", *, progress: bool = True) -> Iterator[None]:
    """Show what long work is doing, and how far it is, once it has taken two seconds.

    It goes to the error stream, and nowhere when that is a file or a pipe. Work within other work
    is shown by that.

    Args:
      title: What is done, until the work itself says more.
      progress: Whether anything is shown.
    """
    if not progress:
        with listening(_say_nothing):
            yield
        return
    screen = _screen_here()
    if screen is None or is_heard() or not _one_at_a_time.acquire(blocking=False):
        yield
        return
    watch = _Watch(title, screen)
    try:
        with listening(watch):
            yield
    finally:
        watch.close()
        _one_at_a_time.release()


def shows_progress(title: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """A function whose progress is shown, unless it is called with `progress=False`.

    A function that takes no such argument gets it, in its signature too.
    """

    def decorate(run: Callable[Given, Result]) -> Callable[Given, Result]:
        told = inspect.signature(run)
        takes_it = "progress" in told.parameters

        @functools.wraps(run)
        def call(*positional: Given.args, **named: Given.kwargs) -> Result:
            is_wanted = (named.get if takes_it else named.pop)("progress", True)
            with show_progress(title, progress=bool(is_wanted)):
                return run(*positional, **named)

        if not takes_it:
            call.__signature__ = _with_progress(told)  # type: ignore[attr-defined]
        return call

    return decorate


def _with_progress(told: inspect.Signature) -> inspect.Signature:
    """A signature with the argument, before those that may have any name."""
    kind = inspect.Parameter.KEYWORD_ONLY
    own = inspect.Parameter("progress", kind, default=True, annotation="bool")
    given = [*told.parameters.values()]
    at = len(given) - any(p.kind is inspect.Parameter.VAR_KEYWORD for p in given)
    return told.replace(parameters=[*given[:at], own, *given[at:]])


def _screen_here() -> Callable[[], _Screen] | None:
    """A terminal's bar, a notebook's line, or nothing."""
    if type(sys.stderr).__module__.startswith("ipykernel"):
        return _Notebook
    is_terminal = getattr(sys.stderr, "isatty", bool)()
    return _Terminal if is_terminal else None


def _say_nothing(task: str, fraction: float) -> None:
    """The listener of work that nobody wants to hear of."""
