"""`discreet audit`: what can be found out about suppressed cells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.common import Json, answer, choice, progress_bar
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.assess.audit import Audit
    from discreet.facade.table import Table
    from discreet.suppress.pattern import Pattern

TableFile = Annotated[
    Path | None, typer.Option("--table", help="The true table, made by `discreet tabulate`.")
]
Labels = Annotated[
    Path | None,
    typer.Option(
        help="A pattern of another program: a CSV file with a column for each variable and a "
        "column status with p, s or . for each cell."
    ),
]
_FINDINGS = (
    "disclosed",
    "disclosed_with_signs",
    "one_whole_number",
    "too_near_below",
    "too_near_above",
    "told_to_lone",
    "at_risk",
)


def audit(
    release: Annotated[Path | None, typer.Argument(help="A release with suppressed cells.")] = None,
    table: TableFile = None,
    labels: Labels = None,
    intervals: Annotated[
        str, typer.Option(help="Cells whose intervals are computed: primary, all or none.")
    ] = "primary",
    lone: Annotated[
        str, typer.Option(help="View of somebody alone in a cell: equations, signs or none.")
    ] = "equations",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes for the intervals.")] = None,
    json: Json = False,
) -> None:
    """Find out what suppressed cells give away. The result is confidential.

    Example: discreet audit release.parquet --table table.parquet

    Example: discreet audit --table table.parquet --labels pattern.csv --json
    """
    from discreet.assess.audit import audit as find_out  # start-up time
    from discreet.assess.audit.audit import View, Which  # start-up time
    from discreet.facade.table import read_release, read_table  # start-up time

    truth = None if table is None else read_table(table)
    if (release is None) == (labels is None):
        raise ParameterError("give either a release, or --labels with --table.")
    with progress_bar():
        found = find_out(
            _pattern(truth, labels) if release is None else read_release(release),
            None if release is None else truth,
            intervals=choice(Which, intervals, "--intervals"),
            lone=choice(View, lone, "--lone"),
            workers=workers,
        )
    answer(_summary(found), json, found.text)


def _pattern(table: Table | None, labels: Path | None) -> Pattern:
    """The pattern of a file, for the cells of the table."""
    from discreet.suppress.pattern import Pattern  # start-up time

    if table is None or labels is None:
        raise ParameterError("--labels needs the true table: give it with --table.")
    names = [axis.name for axis in table.design.axes]
    return Pattern.from_labels(table, _letters(labels, names))


def _letters(labels: Path, names: list[str]) -> dict[tuple[str, ...], str]:
    """The letters of a CSV file by cell; every row has all of them, and no cell has two."""
    import csv
    import io

    from discreet.design.formats.files import read_text  # start-up time

    lines = csv.reader(io.StringIO(read_text(labels), newline=""))
    head = next(lines, [])
    if missing := [name for name in (*names, "status") if name not in head]:
        raise ParameterError(f"{labels} has no column {', '.join(missing)}.")
    found: dict[tuple[str, ...], str] = {}
    for row in filter(None, lines):
        if len(row) != len(head):
            raise ParameterError(
                f"line {lines.line_num} of {labels} has {len(row)} values, but there are "
                f"{len(head)} columns."
            )
        values = dict(zip(head, row, strict=True))
        cell, letter = tuple(values[name] for name in names), values["status"].strip()
        if found.setdefault(cell, letter) != letter:
            raise ParameterError(
                f"{labels} names cell {', '.join(cell)} twice, with {found[cell]!r} and "
                f"{letter!r}. Leave one of the lines out."
            )
    if not found:
        raise ParameterError(f"{labels} has no cells; is it the file that was meant?")
    return found


def _summary(found: Audit) -> dict[str, Any]:
    cells = {name: [found.name_of(int(k)) for k in getattr(found, name)] for name in _FINDINGS}
    return {
        "side": "confidential",
        "is_clean": found.is_clean,
        "suppressed": len(found.by_equations),
        "sensitive": int(found.subject.is_sensitive.sum()),
        **cells,
    }
