"""What commands share: options, progress, output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from discreet.errors import ParameterError
from discreet.files import PARQUET
from discreet.registry import plain_value

if TYPE_CHECKING:
    from discreet.facade.release import Release

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="File to write.")]
Unit = Annotated[
    str | None, typer.Option(help="What is published of a table with weights: count or weight.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="A parameter, as NAME=VALUE (may be repeated)."),
]
_PATIENCE = 1.0


def pairs(given: list[str] | None, what: str) -> dict[str, str]:
    """NAME=VALUE options as a dict."""
    found = {}
    for text in given or []:
        name, separator, value = text.partition("=")
        if not separator or not name or not value:
            raise ParameterError(f"{what} must be given as NAME=VALUE, got {text!r}.")
        found[name.strip()] = value.strip()
    return found


def plain_values(given: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE options with plain values: numbers, true and false, lists, texts."""
    named = pairs(given, "a parameter").items()
    return {name.replace("-", "_"): plain_value(value) for name, value in named}


def choice(kind: Any, value: str, flag: str) -> Any:
    """A text of the command line as one of the values of a `Literal`."""
    if value not in get_args(kind):
        raise ParameterError(f"{flag} must be one of {', '.join(get_args(kind))}; got {value!r}.")
    return value


def say(text: str) -> None:
    """Print a line of text for people."""
    typer.echo(text)


def answer(summary: dict[str, Any], as_json: bool, text: str) -> None:
    """The result of a command: one JSON object, or text."""
    say(json.dumps(summary, ensure_ascii=False) if as_json else text)


@contextmanager
def progress_bar() -> Iterator[None]:
    """A progress bar on the error stream for work that takes over a second."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress

    from discreet.progress import listening  # start-up time

    started, tasks = time.monotonic(), {}
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=True) as bar:

        def show(task: str, fraction: float) -> None:
            if time.monotonic() - started < _PATIENCE:
                return
            if task not in tasks:
                tasks[task] = bar.add_task(task, total=1.0)
            bar.update(tasks[task], completed=fraction)

        with listening(show):
            yield


def check_out(out: Path | None) -> None:
    """Refuse a name that no release can be written under, before any work is done."""
    from discreet.release.formats.write import writer_of  # start-up time

    if out is not None and not out.name.lower().endswith(PARQUET):
        writer_of(out)


def published(release: Release, out: Path | None, as_json: bool, **more: Any) -> None:
    """Write a release where that is asked for, and say what it is."""
    if out is not None:
        put(release, out)
    summary = {
        "file": None if out is None else str(out),
        "side": "public",
        **more,
        "published_cells": release.design.n_published,
        "statement": release.statement.text,
    }
    answer(summary, as_json, f"{release}" if out is None else f"{out}: {release.statement.text}")


def put(release: Release, out: Path) -> None:
    """Write a release: to be read again where the name ends so, for other programs otherwise."""
    if out.name.lower().endswith((*PARQUET, ".csv")) and not out.name.lower().endswith(".sdmx.csv"):
        release.save(out)
    else:
        release.write(out)
