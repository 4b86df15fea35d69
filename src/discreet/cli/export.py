"""`discreet export`: a release in a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import Json, answer


def export(
    release: Annotated[Path, typer.Argument(help="A release made by `discreet protect`.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The file; .csv, .parquet, .xlsx, .json, .jsonstat.json, .sdmx.csv, .px or .html.",
        ),
    ],
    layout: Annotated[str | None, typer.Option(help="long (a row per cell) or wide.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Categories by their codes, labels, or both.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="A variable in columns (may be repeated).")
    ] = None,
    title: Annotated[str, typer.Option(help="What the table shows.")] = "",
    source: Annotated[str, typer.Option(help="Who made the figures.")] = "",
    footnote: Annotated[
        list[str] | None, typer.Option(help="What readers must know (may be repeated).")
    ] = None,
    dataflow: Annotated[str, typer.Option(help="SDMX data flow, e.g. EXAMPLE:TURNOVER(1.0).")] = "",
    json: Json = False,
) -> None:
    """Write a release for other programs; statement and notes are part of every format.

    Example: discreet export release.parquet --out table.xlsx --columns sex --title "People"

    Example: discreet export release.parquet --out table.px
    """
    from discreet.facade.table import read_release  # start-up time

    written = read_release(release).write(
        out,
        layout=layout,
        labels=labels,
        columns=tuple(columns or ()),
        title=title,
        source=source,
        footnotes=tuple(footnote or ()),
        dataflow=dataflow,
    )
    summary = {"file": str(written), "side": "public", "bytes": written.stat().st_size}
    answer(summary, json, f"{written}: {summary['bytes']:,} bytes.")
