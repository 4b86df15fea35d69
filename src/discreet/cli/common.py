"""What commands share: options, input, progress, output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from discreet.errors import ParameterError
from discreet.files import PARQUET

if TYPE_CHECKING:
    from discreet.design.release import Release
    from discreet.ledger import Ledger
    from discreet.microdata.microdata import Microdata

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="File to write.")]
Unit = Annotated[
    str | None, typer.Option(help="What is published of a table with weights: count or weight.")
]
SecretFile = Annotated[
    Path | None, typer.Option("--secret", help="The custodian's secret file, for keys and noise.")
]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="The custodian's ledger; made when it is not there.")
]
Budget = Annotated[
    float | None,
    typer.Option(help="ε that all private releases of the data set may cost; kept in the ledger."),
]
BudgetDelta = Annotated[float | None, typer.Option(help="δ of the budget.")]
Again = Annotated[
    bool,
    typer.Option(
        "--again", help="Make a second table-wise release of an edition; both can be averaged."
    ),
]
Codes = Annotated[Path | None, typer.Option(help="Code lists of the variables: a codes.toml.")]
Name = Annotated[str | None, typer.Option(help="Name of the data set; that of the file if absent.")]
Edition = Annotated[str | None, typer.Option(help="Edition of the data set; 1 if absent.")]
Editions = Annotated[
    str | None, typer.Option(help="Record keys over editions: kept (the default) or redrawn.")
]
Weight = Annotated[str | None, typer.Option(help="Column of survey weights.")]
WeightBound = Annotated[
    float | None,
    typer.Option(help="Public bound of weights; larger weights are cut to it."),
]
Person = Annotated[
    str | None, typer.Option(help="Column of persons, where one person has several records.")
]
MaxRecords = Annotated[
    int | None, typer.Option(help="Records of one person that are counted at most; 1 if absent.")
]
RandomKeys = Annotated[
    Path | None,
    typer.Option(
        help="Keys drawn once, a .parquet: by --id, or without ids in a copy of the records."
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a CSV file, e.g. cp1252; utf-8 if absent.")
]
Decimal = Annotated[
    str | None, typer.Option(help="Decimal sign of weights and keys in a CSV file: . or ,")
]
Key = Annotated[str | None, typer.Option(help="Column of record keys.")]
Convention = Annotated[
    str | None, typer.Option(help="What the keys mean: discreet (the default), ptable, ons-256, …")
]
Id = Annotated[str | None, typer.Option(help="Column of stable ids, for keys.")]
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
    secret: Path | None = None,
    hierarchies: list[str] | None = None,
    bounds: Bounds | None = None,
    **given: Any,
) -> Microdata:
    """The microdata a command works on.

    A secret makes the keys; beside keys that are there it serves noise alone.

    Args:
      source: A file or a database.
      secret: The custodian's secret file, which must exist.
      hierarchies: VARIABLE=FILE pairs.
      bounds: What one unit can contribute.
      **given: What else `discreet.open` takes; `None` leaves an option as it is.
    """
    from discreet.microdata.open import open as open_microdata
    from discreet.microdata.secret import Secret

    data = open_microdata(
        source,
        hierarchies=pairs(hierarchies, "a hierarchy") or None,
        secret=None if secret is None else Secret.from_file(_existing(secret)),
        **{option: value for option, value in given.items() if value is not None},
    )
    return data if bounds is None else data.with_roles(**bounds._asdict())


def _existing(secret: Path) -> Path:
    """The secret file, or how to make one: a new secret would be other noise."""
    if not secret.exists():
        raise ParameterError(
            f"there is no secret file {secret}. Make it together with the record keys: "
            f"discreet keys people.csv --id person_id --secret {secret} --out keys.parquet."
        )
    return secret


class Bounds(NamedTuple):
    """What one unit can contribute to a table."""

    weight_bound: float | None
    person: str | None
    max_records: int | None


def open_ledger(path: Path | None, budget: float | None, delta: float | None) -> Ledger | None:
    """The custodian's ledger, with the budget of the data sets that are entered in it."""
    from discreet.ledger import Ledger

    if path is not None:
        return Ledger(path, epsilon=budget, delta=delta)
    if budget is not None or delta is not None:
        raise ParameterError("a budget is kept in a ledger: name its file with --ledger.")
    return None


def check_out(out: Path | None) -> None:
    """Refuse a name that no release can be written under, before any work is done."""
    from discreet.release.formats.write import writer_of

    if out is not None and not out.name.lower().endswith(PARQUET):
        writer_of(out)


def put(release: Release, out: Path) -> None:
    """Write a release: to be read again where the name ends so, for other programs otherwise."""
    if out.name.lower().endswith((*PARQUET, ".csv")) and not out.name.lower().endswith(".sdmx.csv"):
        release.save(out)
    else:
        release.write(out)
