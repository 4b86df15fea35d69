"""The command that attacks a release before it leaves the house."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from discreet.cli.options import Json, answer, finite_rows
from discreet.display.bars import show_progress
from discreet.errors import ParameterError
from discreet.facade.table import Table, read_release, read_table
from discreet.files import OWNER_ONLY, write_text

if TYPE_CHECKING:
    from discreet.attacks.run import Findings


_Attacks = Annotated[
    list[str] | None,
    typer.Option("--attack", "-a", help="An attack, NAME:PARAMETER=VALUE,… (may be repeated)."),
]
_Service = Annotated[
    str | None, typer.Option(help="Attack a data set of a table builder instead, http://…/d/NAME.")
]
_Budget = Annotated[
    int, typer.Option(min=1, help="With --url, how many tables are asked for at most.")
]


def attack(
    release: Annotated[
        Path | None, typer.Argument(help="The release that is attacked; none with --url.")
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="Its true table. Without it people are found who are certain."),
    ] = None,
    attacks: _Attacks = None,
    method: Annotated[
        str | None, typer.Option(help="The method, where the statement does not say all of it.")
    ] = None,
    earlier: Annotated[
        list[Path] | None, typer.Option(help="An earlier release, oldest first (may be repeated).")
    ] = None,
    before: Annotated[
        list[Path] | None, typer.Option(help="The true table of each earlier release.")
    ] = None,
    url: _Service = None,
    budget: _Budget = 500,
    seed: Annotated[int, typer.Option(min=0, help="Root of everything that is drawn.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Write the confidential findings to this text file.")
    ] = None,
    json: Json = False,
) -> None:
    """Attack a release and say what was recovered beside guessing. The result is confidential.

    Example: discreet attack release.parquet --truth table.parquet

    Example: discreet attack release.parquet --truth table.parquet -a averages -a bounds --json

    Example: discreet attack release.parquet

    Example: discreet attack --url http://127.0.0.1:8000/d/census --truth table.parquet
    """
    from discreet import attack_service  # start-up time
    from discreet.attacks import Knowledge  # start-up time
    from discreet.attacks import attack as attack_release  # start-up time

    if (url is None) == (release is None):
        raise ParameterError("name a release, or a table builder by --url; one of both.")
    if url is not None and truth is None:
        raise ParameterError("what a builder tells is judged by the truth: give --truth.")
    table = None if truth is None else read_table(truth)
    with show_progress():
        if url is not None:
            found = attack_service(url, cast("Table", table), budget, attacks, seed=seed)
        else:
            found = attack_release(
                table,
                read_release(cast("Path", release)),
                attacks,
                knowledge=Knowledge(earlier=tuple(read_release(path) for path in earlier or ())),
                method=method,
                before=[read_table(path) for path in before or ()],
                seed=seed,
            )
    _hand_over(found, out, json)


def _hand_over(found: Findings, out: Path | None, json: bool) -> None:
    """Print findings, and write them where that is asked for."""
    if out is not None:
        write_text(out, found.text + "\n", OWNER_ONLY)
    summary = {
        "side": "confidential",
        "provably_fixed": found.provably_fixed,
        "undecided": found.undecided,
        "findings": finite_rows(found.to_frame()),
        "passed_over": found.passed_over,
    }
    answer(summary, json, found.text)
