"""Commands that judge a release before it leaves the house: assess, audit, compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import (
    Json,
    Unit,
    answer,
    choice,
    finite_rows,
    pairs,
    plain_values,
    write_rows,
)
from discreet.design.formats.files import read_text
from discreet.display.bars import show_progress
from discreet.errors import ParameterError, check_known
from discreet.facade.table import Table, read_release, read_table
from discreet.files import OWNER_ONLY, ending_of
from discreet.noise.matrix import read_matrix

if TYPE_CHECKING:
    from discreet.assessment.audit import Audit, PerturbedAudit
    from discreet.assessment.compare.comparison import Comparison
    from discreet.suppress.pattern import Pattern

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
    from discreet.assessment.assess import assess as measure_all  # start-up time
    from discreet.assessment.compare.contestants import build_from  # start-up time

    options = options_of(set, sensitive, ptable)
    if fitter is not None:
        options["fitter"] = build_from("fitter", fitter)
    truth, public = read_table(table), read_release(release)
    with show_progress():
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
        options["mechanism"] = read_matrix(ptable)
    return options


TableFile = Annotated[
    Path | None, typer.Option("--table", help="The true table, made by `discreet tabulate`.")
]
Labels = Annotated[
    Path | None,
    typer.Option(
        help="A pattern: a CSV file with a column for each variable and a column status with p, s "
        "or . for each cell, or what `protect --show-kinds` wrote."
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
    release: Annotated[
        Path | None, typer.Argument(help="A release with suppressed or perturbed cells.")
    ] = None,
    table: TableFile = None,
    labels: Labels = None,
    ptable: Ptable = None,
    intervals: Annotated[
        str, typer.Option(help="Cells whose intervals are computed: primary, all or none.")
    ] = "primary",
    lone: Annotated[
        str, typer.Option(help="View of somebody alone in a cell: equations, signs or none.")
    ] = "equations",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes for the intervals.")] = None,
    json: Json = False,
) -> None:
    """Find out what suppressed or perturbed cells give away. The result is confidential.

    Example: discreet audit release.parquet --table table.parquet

    Example: discreet audit perturbed.parquet --intervals all

    Example: discreet audit --table table.parquet --labels pattern.csv --json
    """
    from discreet import audit as find_out  # start-up time
    from discreet.assessment.audit import View, Which  # start-up time

    truth = None if table is None else read_table(table)
    if (release is None) == (labels is None):
        raise ParameterError("give either a release, or --labels with --table.")
    with show_progress():
        found = find_out(
            _pattern(truth, labels) if release is None else read_release(release),
            None if release is None else truth,
            intervals=choice(Which, intervals, "--intervals"),
            lone=choice(View, lone, "--lone"),
            workers=workers,
            law=None if ptable is None else read_matrix(ptable),
        )
    answer(_summary(found), json, found.text)


def _pattern(table: Table | None, labels: Path | None) -> Pattern:
    """The pattern of a file, for the cells of the table."""
    from discreet.suppress.pattern import Pattern  # start-up time

    if table is None or labels is None:
        raise ParameterError("--labels needs the true table: give it with --table.")
    names = [axis.name for axis in table.design.axes]
    return Pattern.from_labels(table, _letters(labels, names))


_OWN_WORDS = {"published": ".", "primary": "p", "secondary": "s"}


def _letters(labels: Path, names: list[str]) -> dict[tuple[str, ...], str]:
    """The letters of a CSV file by cell; every row has all of them, and no cell has two."""
    import csv
    import io

    lines = csv.reader(io.StringIO(read_text(labels), newline=""))
    head = next(lines, [])
    status = "state" if "state" in head and "status" not in head else "status"
    if missing := [name for name in (*names, status) if name not in head]:
        raise ParameterError(
            f"{labels} has no column {', '.join(missing)}. A pattern has one for each variable and "
            "one called status, as `discreet protect --show-kinds` writes it."
        )
    found: dict[tuple[str, ...], str] = {}
    for row in filter(None, lines):
        if len(row) != len(head):
            raise ParameterError(
                f"line {lines.line_num} of {labels} has {len(row)} values, but there are "
                f"{len(head)} columns."
            )
        values = dict(zip(head, row, strict=True))
        cell, letter = tuple(values[name] for name in names), values[status].strip()
        letter = _OWN_WORDS.get(letter, letter) if status == "state" else letter
        if found.setdefault(cell, letter) != letter:
            raise ParameterError(
                f"{labels} names cell {', '.join(cell)} twice, with {found[cell]!r} and "
                f"{letter!r}. Leave one of the lines out."
            )
    if not found:
        raise ParameterError(f"{labels} has no cells; is it the file that was meant?")
    return found


def _summary(found: Audit | PerturbedAudit) -> dict[str, Any]:
    from discreet.assessment.audit import PerturbedAudit  # start-up time

    if isinstance(found, PerturbedAudit):
        return _perturbed_summary(found)
    cells = {name: [found.name_of(int(k)) for k in getattr(found, name)] for name in _FINDINGS}
    return {
        "side": "confidential",
        "is_clean": found.is_clean,
        "suppressed": len(found.by_equations),
        "sensitive": int(found.subject.is_sensitive.sum()),
        **cells,
    }


def _perturbed_summary(found: PerturbedAudit) -> dict[str, Any]:
    """Counts that follow by cell, and how many are possible on average."""
    known = {name: getattr(found, name) for name in ("known_alone", "disclosed", "disclosed_small")}
    cells = {
        name: {found.design.name_of(int(k)): int(found.low[k]) for k in positions}
        for name, positions in known.items()
    }
    alone, together = found.possible or (None, None)
    return {
        "side": "confidential",
        "is_clean": found.is_clean,
        "known_from": found.alone.known_from,
        "possible_alone": alone,
        "possible": together,
        "programs": found.programs,
        **cells,
    }


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

    Example: discreet compare table.parquet --method cell-key --method pram
    --sensitive party --replicates 100 --seed 1 --report out.html
    """
    from discreet.assessment.compare.comparison import compare as compare_methods  # start-up time
    from discreet.assessment.compare.recommend import recommend  # start-up time

    _check_names(report, plot, out)
    limits = _numbers(threshold, "a threshold")
    _check_measures(limits, measure)
    goal = next(iter(_numbers([equal_risk], "an equal risk").items())) if equal_risk else None
    options = options_of(set, sensitive, ptable)
    truth = read_table(table)
    with show_progress():
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
        written = _write_comparison(found, limits, report, plot, out)
    advice = recommend(found, limits).sentence if limits else None
    summary = {
        "side": "confidential",
        "files": written,
        "recommendation": advice,
        "scores": finite_rows(found.frame),
    }
    text = f"{found}" + ("" if advice is None else f"\n\nrecommendation: {advice}")
    answer(summary, json, text + "".join(f"\nwritten (confidential): {p}" for p in written))


def _write_comparison(
    found: Comparison,
    limits: dict[str, float],
    report: Path | None,
    plot: Path | None,
    out: Path | None,
) -> list[str]:
    """Write what was asked for; returns the names of the files."""
    # Scores first: they took the time, and drawing needs packages that may be missing.
    if out is not None:
        write_rows(found.frame, out, OWNER_ONLY)
    if report is not None:
        found.report(report, limits)
    if plot is not None:
        from discreet.assessment.plots import save  # start-up time

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
    from discreet.assessment.compare.job import DEFAULT_MEASURES  # start-up time

    taken = DEFAULT_MEASURES if chosen is None else [name.partition(":")[0] for name in chosen]
    for threshold in thresholds:
        name = threshold.partition("@")[0]
        check_known("measure of this comparison", [name], taken)


def _numbers(given: list[str] | None, what: str) -> dict[str, float]:
    found = {}
    for name, value in pairs(given, what).items():
        try:
            found[name] = float(value)
        except ValueError:
            raise ParameterError(f"{what} needs a number: {name}={value}.") from None
    return found
