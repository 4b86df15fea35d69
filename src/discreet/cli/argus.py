"""The command that runs batch files of τ-ARGUS."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import Json, SecretFile, answer
from discreet.display.bars import show_progress


def argus(
    job: Annotated[Path, typer.Argument(help="A batch file of τ-ARGUS, .arb.")],
    secret: SecretFile = None,
    show_kinds: Annotated[
        bool,
        typer.Option(
            "--show-kinds",
            help="Statuses tell primary from secondary cells; the files are then confidential.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Run a batch file of τ-ARGUS; its files lie beside it. What is printed is confidential.

    Files of types 1 to 4 may be published; those of types 5 and 6 hold true values, and only their
    owner can read them. Rounding (RND) and adjustment (CTA) draw, and need --secret.

    Example: discreet argus job.arb

    Example: discreet argus job.arb --show-kinds --json
    """
    from discreet import argus as files  # start-up time
    from discreet.suppress.report import describe_pattern  # start-up time

    with show_progress():
        done = files.run_batch(job, secret=secret, show_kinds=show_kinds)
    reports = {}
    for number, found in done.tables.items():
        if found.pattern is not None:
            reports[number] = describe_pattern(found.pattern)
    summary = {
        "side": "confidential",
        "files": [str(path) for path in done.files],
        "log": done.log,
        "tables": {str(number): report.summary for number, report in reports.items()},
    }
    texts = dict.fromkeys(str(report) for report in reports.values())
    answer(summary, json, "\n".join([*done.log, *texts]))
