"""`discreet compare`: methods side by side on one table, by risk and utility."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.assess import (
    MeasureOptions,
    Measures,
    Ptable,
    Sensitive,
    finite_rows,
    options_of,
)
from discreet.cli.common import Json, Unit, answer, pairs, progress_bar
from discreet.errors import ParameterError, UnknownNameError
from discreet.files import OWNER_ONLY, ending_of, written_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.assess.compare.comparison import Comparison


Methods = Annotated[
    list[str], typer.Option(help="NAME or NAME:PARAMETER=VALUE,… of a method (repeat for each).")
]
Fitters = Annotated[
    list[str] | None, typer.Option(help="What recovers inner cells (may be repeated).")
]
EqualRisk = Annotated[
    str | None, typer.Option(help="Tune every method to this risk first: MEASURE=TARGET.")
]
Thresholds = Annotated[
    list[str] | None,
    typer.Option(help="What is acceptable, to recommend by: MEASURE=VALUE (may be repeated)."),
]
Report = Annotated[Path | None, typer.Option(help="Write a page for the review board: .html.")]
Plot = Annotated[Path | None, typer.Option(help="Draw the risk-utility map: .svg, .png or .html.")]
Scores = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write all scores: .parquet or .csv.")
]
Resume = Annotated[Path | None, typer.Option(help="Directory of finished draws, to go on from.")]


def compare(
    table: Annotated[Path, typer.Argument(help="A table made by `discreet tabulate`.")],
    method: Methods,
    sensitive: Sensitive = None,
    fitter: Fitters = None,
    measure: Measures = None,
    ptable: Ptable = None,
    set: MeasureOptions = None,
    unit: Unit = None,
    replicates: Annotated[int, typer.Option(help="Draws of every method.")] = 100,
    seed: Annotated[int, typer.Option(help="Root of all streams of random numbers.")] = 1,
    equal_risk: EqualRisk = None,
    threshold: Thresholds = None,
    report: Report = None,
    plot: Plot = None,
    out: Scores = None,
    resume: Resume = None,
    workers: Annotated[int | None, typer.Option(help="Number of processes.")] = None,
    json: Json = False,
) -> None:
    """Compare methods on a table, over many draws. Everything it writes is confidential.

    Example: discreet compare table.parquet --method cell-key:D=5,V=3,js=2 --method pram
    --sensitive party --replicates 100 --seed 1 --report out.html
    """
    from discreet.assess.compare.comparison import compare as compare_methods  # start-up time
    from discreet.assess.compare.recommend import recommend  # start-up time
    from discreet.facade.table import read_table  # start-up time

    _check_names(report, plot, out)
    limits = _numbers(threshold, "a threshold")
    _check_measures(limits, measure)
    goal = next(iter(_numbers([equal_risk], "an equal risk").items())) if equal_risk else None
    options = options_of(set, sensitive, ptable)
    truth = read_table(table)
    with progress_bar():
        found = compare_methods(
            truth,
            method,
            fitters=fitter,
            measures=measure,
            unit=unit,
            replicates=replicates,
            seed=seed,
            equal_risk=goal,
            resume=resume,
            workers=workers,
            **options,
        )
        written = _written(found, limits, report, plot, out)
    advice = recommend(found, limits).sentence if limits else None
    summary = {
        "side": "confidential",
        "files": written,
        "recommendation": advice,
        "scores": finite_rows(found.frame),
    }
    text = f"{found}" + ("" if advice is None else f"\n\nrecommendation: {advice}")
    answer(summary, json, text + "".join(f"\nwritten (confidential): {p}" for p in written))


def _written(
    found: Comparison,
    limits: dict[str, float],
    report: Path | None,
    plot: Path | None,
    out: Path | None,
) -> list[str]:
    """Write what was asked for, scores before pictures; returns the names of the files."""
    if out is not None:
        _write(found.frame, out)
    if report is not None:
        found.report(report, limits)
    if plot is not None:
        from discreet.assess.plots.style import save  # start-up time

        save(found.plot(), plot)
    return [str(path) for path in (report, plot, out) if path is not None]


def _check_names(report: Path | None, plot: Path | None, out: Path | None) -> None:
    """Refuse file names that will not do before hours of work."""
    wanted = (
        (report, (".html", ".htm")),
        (plot, (".svg", ".png", ".html")),
        (out, (".parquet", ".csv")),
    )
    for path, endings in wanted:
        if path is None:
            continue
        ending_of(path, endings)
        if not path.parent.is_dir():
            raise ParameterError(f"cannot write {path}: there is no directory {path.parent}.")


def _check_measures(thresholds: dict[str, float], chosen: list[str] | None) -> None:
    """Refuse thresholds of measures that will not be taken, before hours of work."""
    from discreet.assess.compare.judge import DEFAULT_MEASURES  # start-up time

    taken = DEFAULT_MEASURES if chosen is None else [name.partition(":")[0] for name in chosen]
    for threshold in thresholds:
        name = threshold.partition("@")[0]
        if name not in taken:
            raise UnknownNameError("measure of this comparison", name, taken)


def _numbers(given: list[str] | None, what: str) -> dict[str, float]:
    found = {}
    for name, value in pairs(given, what).items():
        try:
            found[name] = float(value)
        except ValueError:
            raise ParameterError(f"{what} needs a number: {name}={value}.") from None
    return found


def _write(frame: pa.Table, out: Path) -> None:
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    with written_whole(out, OWNER_ONLY) as temporary:
        if out.suffix == ".csv":
            csv.write_csv(frame, temporary)
        else:
            pq.write_table(frame, temporary)
