"""What commands share: options, input, progress, output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.design.release import Release
    from discreet.microdata.microdata import Microdata

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="File to write.")]
Unit = Annotated[
    str | None, typer.Option(help="What is published of a table with weights: count or weight.")
]
SecretFile = Annotated[
    Path | None, typer.Option("--secret", help="The custodian's secret file; it makes the keys.")
]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="The custodian's ledger; made when it is not there.")
]
Again = Annotated[
    bool,
    typer.Option("--again", help="Release a whole table once more, though it can be averaged."),
]
Codes = Annotated[Path | None, typer.Option(help="Code lists of the variables: a codes.toml.")]
Name = Annotated[str | None, typer.Option(help="Name of the data set; that of the file if absent.")]
Edition = Annotated[str | None, typer.Option(help="Edition of the data set; 1 if absent.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="A parameter, as NAME=VALUE (may be repeated)."),
]
Keys = Annotated[
    str | None,
    typer.Option(help="Side table of record keys: a file, or ::TABLE beside the records."),
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
    """NAME=VALUE options with values read as JSON where they are (numbers, true, lists)."""
    found: dict[str, Any] = {}
    for name, value in pairs(given, "a parameter").items():
        try:
            found[name.replace("-", "_")] = json.loads(value)
        except json.JSONDecodeError:
            found[name.replace("-", "_")] = value
    return found


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

    from discreet.progress import listening

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


def open_source(
    source: str,
    *,
    weight: str | None = None,
    key: str | None = None,
    id: str | None = None,
    keys: str | None = None,
    secret: Path | None = None,
    hierarchies: list[str] | None = None,
    codes: Path | None = None,
    name: str | None = None,
    edition: str | None = None,
    ledger: Path | None = None,
) -> Microdata:
    """The microdata a command works on.

    A secret makes the keys; beside keys that are there it serves cells without records alone.
    """
    from discreet.microdata.open import open as open_microdata
    from discreet.microdata.secret import Secret

    given = {"name": name, "edition": edition, "ledger": ledger}
    return open_microdata(
        source,
        weight=weight,
        key=key,
        id=id,
        keys=keys,
        hierarchies=pairs(hierarchies, "a hierarchy") or None,
        codes=codes,
        secret=None if secret is None else Secret.from_file(secret),
        **{option: value for option, value in given.items() if value is not None},
    )


def write_release(release: Release, out: Path) -> Path:
    """Write a release in the format its file name asks for."""
    if out.suffix == ".csv":
        from discreet.release.export import write_csv

        return write_csv(release, out)
    if out.suffix == ".parquet":
        return release.save(out)
    raise ParameterError(f"cannot write {out.name!r}: the name must end in .parquet or .csv.")
