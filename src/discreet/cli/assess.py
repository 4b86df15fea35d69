"""`discreet assess`: risk and utility of a release against the table it was made from."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.common import Json, answer, plain_values, progress_bar

if TYPE_CHECKING:
    import pyarrow as pa

Sensitive = Annotated[str | None, typer.Option(help="The variable that must not be disclosed.")]
Measures = Annotated[
    list[str] | None, typer.Option("--measure", "-m", help="A measure's name (may be repeated).")
]
MeasureOptions = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", help="An option of measures, as NAME=VALUE (may be repeated)."),
]
Ptable = Annotated[
    Path | None, typer.Option(help="The perturbation table that was used: .csv or .json.")
]


def assess(
    table: Annotated[Path, typer.Argument(help="A table made by `discreet tabulate`.")],
    release: Annotated[Path, typer.Argument(help="A release made from it.")],
    sensitive: Sensitive = None,
    measure: Measures = None,
    ptable: Ptable = None,
    fitter: Annotated[
        str | None, typer.Option(help="What an insider would fit with, for refitted measures.")
    ] = None,
    set: MeasureOptions = None,
    json: Json = False,
) -> None:
    """Measure risk and utility of a release. The result is confidential.

    Example: discreet assess table.parquet release.parquet --sensitive party
    """
    from discreet.assess.assess import assess as measure_all  # start-up time
    from discreet.assess.compare.contestants import built_from  # start-up time
    from discreet.facade.table import read_release, read_table  # start-up time

    options = options_of(set, sensitive, ptable)
    if fitter is not None:
        options["fitter"] = built_from("fitter", fitter)
    truth, public = read_table(table), read_release(release)
    with progress_bar():
        found = measure_all(truth, public, measure, **options)
    summary = {"side": "confidential", "scores": finite_rows(found.frame)}
    answer(summary, json, f"{found}")


def options_of(
    given: list[str] | None, sensitive: str | None, ptable: Path | None
) -> dict[str, Any]:
    """Options of measures from those of the command line."""
    options = plain_values(given)
    if sensitive is not None:
        options["sensitive"] = sensitive
    if ptable is not None:
        from discreet.noise.matrix import read_matrix  # start-up time

        options["mechanism"] = read_matrix(ptable)
    return options


def finite_rows(frame: pa.Table) -> list[dict[str, Any]]:
    """Rows for JSON, which knows no infinite or missing numbers."""
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in frame.to_pylist()
    ]
