"""`discreet study`: papers run again, printed figures beside computed ones."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from discreet.cli.options import Json, answer, say
from discreet.display import align_columns
from discreet.display.bars import show_progress
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet_studies.model import Options, Study

_ALL = "all"
_OF_FIGURES = ("row", "column", "printed", "computed", "tolerance")


def study(
    action: Annotated[Literal["list", "run"], typer.Argument(help="List the studies, or run one.")],
    name: Annotated[str | None, typer.Argument(help="A study's name, or `all`.")] = None,
    folder: Annotated[Path, typer.Option(help="Where the pages go.")] = Path("studies"),
    replicates: Annotated[
        int | None, typer.Option(min=2, help="Draws of every simulation; the paper's by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Root of all streams of random numbers.")] = 1,
    data: Annotated[
        str | None, typer.Option(help="Records of your own, for studies that can use them.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Variables of these records, A*B*C; the paper's by default.")
    ] = None,
    json: Json = False,
) -> None:
    """Run a paper's study again and write a page; exit code 1 when a figure does not agree.

    Example: discreet study run three-approaches --folder studies
    """
    from discreet_studies.catalogue import STUDIES
    from discreet_studies.model import Options

    if action == "list":
        lines = {key: entry.about for key, entry in STUDIES.items()}
        answer({"studies": lines}, json, "\n".join(align_columns([*lines.items()])))
        return
    if name is None:
        raise ParameterError(f"name a study to run, or all: {', '.join(STUDIES)}.")
    chosen = list(STUDIES) if name == _ALL else [name]
    options = Options(replicates, seed, data, by)
    results = [_run(each, options, folder, json) for each in chosen]
    if json:
        answer({"studies": [_plain(found) for found in results]}, json, "")
    if any(found.failures for found in results):
        raise typer.Exit(1)


def _run(name: str, options: Options, folder: Path, json: bool) -> Study:
    """Run one study, write its page, and say what came out."""
    from discreet_studies.catalogue import run_study
    from discreet_studies.page import study_text, write_page

    with show_progress():
        found = run_study(name, options)
        folder.mkdir(parents=True, exist_ok=True)
        path = write_page(found, folder / f"{name}.html")
    if not json:
        say(f"{study_text(found)}\nwritten: {path}\n")
    return found


def _plain(found: Study) -> dict[str, Any]:
    """A study as plain data."""
    return {
        "name": found.name,
        "confidential": found.is_confidential,
        "origin": None if found.origin is None else asdict(found.origin),
        "seconds": round(found.seconds, 3),
        "failures": found.failures,
        "tables": {
            table.title: [
                {**{name: getattr(f, name) for name in _OF_FIGURES}, "verdict": f.verdict.value}
                for f in table.figures
            ]
            for table in found.tables
        },
        "findings": [
            {"text": f.text, "outcome": f.outcome.value, "ours": f.is_ours, "evidence": f.remark}
            for f in found.findings
        ],
        "log": [asdict(entry) for entry in found.log],
    }
