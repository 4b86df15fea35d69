"""`discreet check`: what is to know before anything runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from discreet.cli.options import (
    FILE_OPTIONS,
    Hierarchies,
    Json,
    RecordOptions,
    answer,
    progress_bar,
    with_options,
)

_ROLES = ("weight", "key", "id", "codes")


@with_options
def check(
    *,
    subject: Annotated[Literal["data"], typer.Argument(help="What is checked: data.")],
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    by: Annotated[
        str | None, typer.Option(help="A table that is planned, as a formula; its size is told.")
    ] = None,
    max_codes: Annotated[
        int, typer.Option(min=1, help="Codes of a variable beyond which classes are suggested.")
    ] = 200,
    hierarchies: Hierarchies = None,
    records: Annotated[RecordOptions, (*_ROLES, *FILE_OPTIONS)],
    json: Json = False,
) -> None:
    """Look through records before anything runs. What is printed is confidential.

    Example: discreet check data people.csv --id person_id --by "region*sex"
    """
    from discreet.records.findings import look_through  # start-up time

    numbers = [name for name in (records.weight, records.key) if name]
    data = records.open(source, hierarchies=hierarchies, weight=None, key=None)
    with progress_bar():
        findings = look_through(data, by, numbers=numbers, max_codes=max_codes)
    memory = None if findings.size is None else findings.size.memory
    summary = {"side": "confidential", **asdict(findings), "memory": memory}
    answer(summary, json, str(findings))
