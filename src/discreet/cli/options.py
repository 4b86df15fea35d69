"""Options, progress and output that commands share.

A command with the parameter `records: RecordOptions` has an option for each field of that class.
With `Annotated[RecordOptions, ("id", "key")]` it has these two alone, in this order.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

from discreet.delimited import write_delimited
from discreet.errors import ParameterError
from discreet.facade.microdata import Microdata
from discreet.facade.opening import FILE_OPTIONS as FILE_OPTIONS
from discreet.facade.opening import open as open_microdata
from discreet.facade.release import Release
from discreet.files import EVERYONE, PARQUET, written_whole
from discreet.frames import Frame
from discreet.ledger import Ledger
from discreet.parquet import write_parquet
from discreet.registry import plain_value
from discreet.release.formats.write import writer_of
from discreet.tables.editions import DRAWS_NOTHING
from discreet.tables.statement import Statement

SecretFile = Annotated[
    Path | None,
    typer.Option("--secret", help="The custodian's secret file; made when it is first used."),
]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", help="The custodian's ledger; made when it is not there.")
]
Again = Annotated[
    bool,
    typer.Option(
        "--again", help="Make a second table-wise release of an edition; both can be averaged."
    ),
]
Accept = Annotated[str, typer.Option(help="Why it may pass although attacks on it did not finish.")]
Hierarchies = Annotated[
    list[str] | None,
    typer.Option(help="VARIABLE=FILE with a hierarchy (.hrc, …); may be repeated."),
]
Weight = Annotated[str | None, typer.Option(help="Column of survey weights.")]
MeanWeight = Annotated[
    float | None, typer.Option(help="Declared mean weight: population over sample size.")
]
_BOUNDS = ("weight_bound", "mean_weight", "person", "max_records")
_BY_NAME = inspect.Parameter.KEYWORD_ONLY

# Arguments of Python that commands have flags for: errors speak of what the reader can type.
_FLAGS = (
    "again clusters codes contributor convention decimal delimiter edition editions encoding gain "
    "groups header holding id keep key keys large ledger max_records mean_weight merge metadata "
    "method missing name person pieces random_keys secret seed support thousands unit value weight "
    "weight_bound"
)
_ARGUMENT = re.compile(
    rf"\b(?P<name>{'|'.join(_FLAGS.split())})="
    r"(?:'(?P<text>[^']*)'|(?P<number>\d+)|True|\.\.\.|…)?"
)
_CALL = re.compile(r"[\w.]+\((?:(?:\.\.\.|…), )?(.*)\)")


@dataclass(frozen=True)
class RecordOptions:
    """What is known of the records that a command works on."""

    weight: Weight = None
    weight_bound: Annotated[
        float | None, typer.Option(help="Public bound of weights; larger weights are cut to it.")
    ] = None
    mean_weight: MeanWeight = None
    person: Annotated[
        str | None, typer.Option(help="Column of persons, where one person has several records.")
    ] = None
    max_records: Annotated[
        int | None,
        typer.Option(help="Records of one person that are counted at most; 1 if absent."),
    ] = None
    key: Annotated[str | None, typer.Option(help="Column of record keys.")] = None
    id: Annotated[str | None, typer.Option(help="Column of stable ids, for keys.")] = None
    keys: Annotated[
        str | None,
        typer.Option(help="Side table of record keys: a file, or ::TABLE beside the records."),
    ] = None
    random_keys: Annotated[
        Path | None,
        typer.Option(
            help="Keys drawn once, a .parquet: by --id, or without ids in a copy of the records."
        ),
    ] = None
    convention: Annotated[
        str | None,
        typer.Option(help="What the keys mean: discreet (the default), ptable, ons-256, …"),
    ] = None
    secret: SecretFile = None
    codes: Annotated[
        Path | None, typer.Option(help="Code lists of the variables: a codes.toml.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of a CSV file, e.g. cp1252; found if absent.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(help="Decimal sign of a CSV file, . or ,; found if absent.")
    ] = None
    delimiter: Annotated[
        str | None, typer.Option(help="What separates values of a CSV file; found if absent.")
    ] = None
    thousands: Annotated[
        str | None, typer.Option(help="Sign between thousands in a CSV file; found if absent.")
    ] = None
    header: Annotated[
        int | None, typer.Option(help="Line or row with the names of the columns; 1 if absent.")
    ] = None
    metadata: Annotated[
        Path | None, typer.Option(help="The .rda file that describes a file of fixed width.")
    ] = None
    name: Annotated[
        str | None, typer.Option(help="Name of the data set; that of the file if absent.")
    ] = None
    edition: Annotated[str | None, typer.Option(help="Edition of the data set; 1 if absent.")] = (
        None
    )
    units: Annotated[
        str | None, typer.Option(help="What the records are of, for statements: enterprises, …")
    ] = None
    editions: Annotated[
        str | None,
        typer.Option(
            help="How editions are drawn: fresh, phased:4, kept, renewed:0.05; else by --churn."
        ),
    ] = None
    churn: Annotated[
        float | None,
        typer.Option(help="Share of the records that change between editions, e.g. 0.01."),
    ] = None
    planned: Annotated[int | None, typer.Option(help="How many editions there will be.")] = None

    time: Annotated[
        list[str] | None,
        typer.Option(help="Column of time, which a ledger leaves out; may be repeated."),
    ] = None
    period: Annotated[
        str | None, typer.Option(help="Period whose records are read, by the column of --time.")
    ] = None
    moves: Annotated[
        list[str] | None,
        typer.Option(
            help="COLUMN=STEP that moves with every edition, e.g. age=1; may be repeated."
        ),
    ] = None

    def open(self, source: str, *, hierarchies: list[str] | None = None, **more: Any) -> Microdata:
        """The microdata a command works on.

        A secret makes the keys; beside keys that are there it serves noise alone.

        Args:
          source: A file or a database.
          hierarchies: VARIABLE=FILE pairs.
          **more: What else `discreet.open` takes; `None` leaves an option as it is.
        """
        given = {
            **vars(self),
            **more,
            "hierarchies": pairs(hierarchies, "a hierarchy", "VARIABLE=FILE") or None,
        }
        bounds = {name: given.pop(name) for name in _BOUNDS}
        given["moves"] = plain_values(self.moves) or None
        if given.get("time") is not None and len(given["time"]) == 1:
            given["time"] = given["time"][0]
        chosen = {option: value for option, value in given.items() if value is not None}
        return open_microdata(source, **chosen).with_roles(**bounds)


UNWEIGHTED = tuple(f.name for f in fields(RecordOptions) if f.name not in ("weight", *_BOUNDS))


def previous_releases(paths: list[Path] | None) -> list[Release] | None:
    """The releases of the edition before."""
    from discreet.facade.table import read_release  # start-up time

    return [read_release(path) for path in paths] if paths else None


@dataclass(frozen=True)
class LedgerOptions:
    """The custodian's ledger, and what it allows."""

    ledger: LedgerFile = None
    budget: Annotated[
        float | None,
        typer.Option(
            help="ε that all private releases of the data set may cost; kept in the ledger."
        ),
    ] = None
    budget_delta: Annotated[float | None, typer.Option(help="δ of the budget.")] = None
    budget_relation: Annotated[
        Literal["add-remove", "replace", "known"],
        typer.Option(
            help="What the budget is for: one unit added or removed, replaced, or replaced within "
            "known margins."
        ),
    ] = "add-remove"
    again: Again = False

    def open(self) -> Ledger | None:
        """The ledger, with the budget of the data sets that are entered in it."""
        if self.ledger is not None:
            return Ledger(
                self.ledger,
                epsilon=self.budget,
                delta=self.budget_delta,
                relation=self.budget_relation,
            )
        if self.budget is not None or self.budget_delta is not None:
            raise ParameterError("a budget is kept in a ledger: name its file with --ledger.")
        return None


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its option objects as options of their own."""
    hints = get_type_hints(command, include_extras=True)
    objects: dict[str, tuple[Any, tuple[str, ...]]] = {}
    shown: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind, *picked = get_args(hints[name]) or [hints[name]]
        if is_dataclass(kind):
            options = picked[0] if picked else tuple(field.name for field in fields(kind))
            objects[name] = kind, options
            shown += [_option(kind, option) for option in options]
        else:
            shown.append(parameter.replace(kind=_BY_NAME, annotation=hints[name]))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: kind(**{option: given.pop(option) for option in options})
            for name, (kind, options) in objects.items()
        }
        command(**given, **made)

    # typer makes its options from the signature, so each field must stand in it by itself.
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _option(kind: Any, name: str) -> inspect.Parameter:
    annotation = get_type_hints(kind, include_extras=True)[name]
    return inspect.Parameter(name, _BY_NAME, default=getattr(kind, name), annotation=annotation)


Previous = Annotated[
    list[Path] | None,
    typer.Option(
        "--previous", help="Release of the edition before, to repeat or follow (may be repeated)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="File to write.")]
Unit = Annotated[
    str | None, typer.Option(help="What is published of a table with weights: count or weight.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="A parameter, as NAME=VALUE (may be repeated)."),
]


def pairs(given: list[str] | None, what: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """NAME=VALUE options as a dict."""
    found = {}
    for text in given or []:
        name, separator, value = text.partition("=")
        if not separator or not name or not value:
            raise ParameterError(f"{what} must be given as {form}, got {text!r}.")
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


def in_flags(message: str) -> str:
    """A message with the arguments of Python as flags; other code between backticks stays."""
    parts = message.split("`")
    return "`".join(_as_flags(p) if k % 2 else _ARGUMENT.sub(_flag, p) for k, p in enumerate(parts))


def _as_flags(code: str) -> str:
    """Code as flags, if it is a call or an argument that the command line has flags for."""
    call = _CALL.fullmatch(code)
    found = [_ARGUMENT.fullmatch(a) for a in (call[1] if call else code).split(", ")]
    return " ".join(_flag(a) for a in found if a) if all(found) else code


def _flag(found: re.Match[str]) -> str:
    name, value = found["name"].replace("_", "-"), found["text"] or found["number"]
    return f"--{name} {shlex.quote(value)}" if value else f"--{name}"


def answer(summary: dict[str, Any], as_json: bool, text: str) -> None:
    """The result of a command: one JSON object, or text."""
    say(json.dumps(summary, ensure_ascii=False) if as_json else text)


def check_out(out: Path | None) -> None:
    """Refuse a name that no release can be written under, before any work is done."""
    if out is not None and not out.name.lower().endswith(PARQUET):
        writer_of(out)


def write_release(release: Release, out: Path | None, as_json: bool, **more: Any) -> None:
    """Write a release where that is asked for, and say what it is and how editions are drawn."""
    mode = editions_line(release.statement)
    if out is not None:
        save_or_write(release, out)
    summary = {
        "file": None if out is None else str(out),
        # What is printed for the custodian makes the whole answer confidential; the file is public.
        "side": "confidential" if "confidential" in more else "public",
        **more,
        "published_cells": release.design.n_published,
        "editions": mode,
        "statement": release.statement.text,
    }
    text = f"{release}" if out is None else f"{out}\n\n{release.statement}\n"
    answer(summary, as_json, f"{text}\n{mode}" if mode else text)


def editions_line(statement: Statement) -> str:
    """Which mode the editions of a release are drawn in, and why; nothing where none is drawn."""
    first = statement.steps[0].parameters if statement.steps else {}
    if first.get("why") in (None, DRAWS_NOTHING):
        return ""
    how = "by the keys of their records" if first["keys"] == "given" else first["keys"]
    return f"Editions are drawn {how}: {first['why']}."


def finite_rows(frame: Frame) -> list[dict[str, Any]]:
    """Rows for JSON, which knows no infinite or missing numbers."""
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in frame.to_pylist()
    ]


def write_rows(rows: Frame, path: Path, mode: int = EVERYONE) -> None:
    """Write a frame as CSV or Parquet, as the name ends."""
    with written_whole(path, mode) as temporary:
        if path.name.lower().endswith(".csv"):
            with temporary.open("wb") as file:
                file.writelines(write_delimited(rows))
        else:
            write_parquet(temporary, rows)


def save_or_write(release: Release, out: Path) -> None:
    """Write a release: to be read again where the name ends so, for other programs otherwise."""
    if out.name.lower().endswith((*PARQUET, ".csv")) and not out.name.lower().endswith(".sdmx.csv"):
        release.save(out)
    else:
        release.write(out)
