"""Commands from records to a release: tabulate, protect, fit, run, export."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet import registry
from discreet.cli.options import (
    Hierarchies,
    Json,
    LedgerFile,
    LedgerOptions,
    Out,
    Parameters,
    Previous,
    RecordOptions,
    SecretFile,
    Unit,
    answer,
    check_out,
    choice,
    pairs,
    plain_values,
    previous_releases,
    save_or_write,
    say,
    with_options,
    write_release,
    write_rows,
)
from discreet.design.support import Support
from discreet.display.bars import show_progress
from discreet.errors import ParameterError
from discreet.facade.table import read_release, read_table
from discreet.files import OWNER_ONLY, PARQUET, ending_of
from discreet.records.indicators import read_link
from discreet.records.secret import secret_of
from discreet.release.fitting import Rounding
from discreet.tables.magnitude import Negative
from discreet.tables.storage import check_table_name

if TYPE_CHECKING:
    from discreet.facade.table import Table
    from discreet.ledger import Ledger
    from discreet.suppress.pattern import Pattern
    from discreet.suppress.report import PatternReport


ShowKinds = Annotated[
    Path | None,
    typer.Option(
        "--show-kinds",
        help="Suppression: write true values with primary and secondary cells, a confidential "
        ".csv or .parquet.",
    ),
]
KeepParameters = Annotated[
    bool,
    typer.Option(
        "--keep-parameters",
        help="Noise by key: leave its parameters out of the statement. They protect nothing.",
    ),
]


@dataclass(frozen=True)
class MagnitudeOptions:
    """What is summed, and whose it is."""

    value: Annotated[str | None, typer.Option(help="Column to sum, for magnitudes.")] = None
    contributor: Annotated[
        str | None, typer.Option(help="Column that names the contributor of each value.")
    ] = None
    holding: Annotated[
        str | None, typer.Option(help="Column of groups of contributors that count as one.")
    ] = None
    negative: Annotated[
        str, typer.Option(help="Negative values: 'refuse', or judge by 'absolute' value.")
    ] = "refuse"
    largest: Annotated[int, typer.Option(help="Largest contributions kept for each cell.")] = 3
    link: Annotated[
        str | None,
        typer.Option(
            help="What the value is the sum of, 'turnover = domestic + export', or its name where "
            "parts have it in front; adds the variable 'indicator'."
        ),
    ] = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The options as arguments of `Microdata.tabulate`."""
        given = {name: each for name, each in vars(self).items() if name != "link"}
        return {**given, "negative": choice(Negative, self.negative, "--negative")}


@with_options
def tabulate(
    *,
    source: Annotated[str, typer.Argument(help="Records: a Parquet or CSV file, or a database.")],
    by: Annotated[
        str | None, typer.Option(help="What to publish, e.g. 'region*age + region*sex'.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help="NAME=FORMULA, a table by its name (may be repeated), instead of --by."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The table, a confidential .parquet.")],
    hierarchy: Hierarchies = None,
    records: RecordOptions,
    ledger: LedgerFile = None,
    support: Annotated[str, typer.Option(help="Inner cells: 'all' or 'occurring'.")] = "all",
    magnitude: MagnitudeOptions,
    json: Json = False,
) -> None:
    """Count records into a table. The result holds true counts: only its owner can read it.

    Example: discreet tabulate people.csv --by "region*age + region*sex" --codes codes.toml
    --id person_id --secret keys.secret --name census --edition 2024 --out table.parquet

    Example: discreet tabulate people.csv --table "Age by region=region*age"
    --table "Sex by region=region*sex" --codes codes.toml --out table.parquet

    Example: discreet tabulate people.csv --by "region*age" --codes codes.toml --id person_id
    --secret keys.secret --name census --edition 2025 --moves age=1 --ledger discreet.db
    --out table.parquet

    Example: discreet tabulate firms.csv --by "activity*region" --value turnover
    --contributor enterprise --out table.parquet

    Example: discreet tabulate firms.csv --link "turnover = domestic + export"
    --by "indicator*activity" --value turnover --contributor enterprise --out table.parquet
    """
    check_table_name(out)
    if (not by) == (not table):
        raise ParameterError("say what to publish: --by FORMULA, or --table NAME=FORMULA.")
    margins = by or pairs(table, "a table")
    data = records.open(source, hierarchies=hierarchy, ledger=ledger)
    if magnitude.link is not None:
        data = data.with_parts(*read_link(magnitude.link))
    with show_progress():
        chosen = choice(Support, support, "--support")
        made = data.tabulate(margins, support=chosen, **magnitude.arguments)
        made.save(out)
    summary = {
        "file": str(out),
        "side": "confidential",
        "tables": [*made.tables],
        "published_cells": made.design.n_published,
        "inner_cells": made.design.n_inner,
        "keys": made.published.key is not None,
        "weights": made.published.weight is not None,
        "value": magnitude.value,
        "ledger": made.ledger_path,
    }
    text = f"{out}: {made.design.n_published:,} published cells (confidential, owner only)"
    answer(summary, json, text)


_NO_SECRET = (
    "No secret was given here, so the pattern follows from the true values alone. Files of "
    "tables hold none: give the one that made the keys, --secret keys.secret."
)


@with_options
def protect(
    *,
    table: Annotated[Path, typer.Argument(help="A table made by `discreet tabulate`.")],
    method: Annotated[
        str, typer.Option(help="NAME or NAME:PARAMETER=VALUE,…; see `discreet methods`.")
    ],
    out: Out = None,
    set: Parameters = None,
    unit: Unit = None,
    secret: SecretFile = None,
    show_kinds: ShowKinds = None,
    keep_parameters: KeepParameters = False,
    book: LedgerOptions,
    previous: Previous = None,
    json: Json = False,
    seed: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Protect a table; the release may be published.

    Example: discreet protect table.parquet --method cell-key --out release.csv

    Example: discreet protect table.parquet --method cell-key:D=4,V=2.5,js=2 --out release.xlsx

    Example: discreet protect table.parquet --method safe --secret keys.secret
    --ledger discreet.db --out release.parquet

    Example: discreet protect table.parquet --method discrete-laplace:epsilon=0.5
    --ledger discreet.db --budget 1 --out release.csv

    Example: discreet protect table.parquet --method "suppress:rules=p%(10)" --out release.csv
    --show-kinds pattern.csv
    """
    _check_protection(method, out, show_kinds, seed)
    ledger = book.open()  # a wrong ledger is found before the table is read
    truth = read_table(table)
    if secret is not None:
        truth = _with_secret(truth, secret, ledger)
    chosen = registry.build("method", method, plain_values(set))
    from discreet.suppress.pattern import watched_patterns  # start-up time

    with show_progress(), watched_patterns() as patterns:
        release = truth.protect(
            chosen,
            unit=unit,
            ledger=ledger,
            again=book.again,
            previous=previous_releases(previous),
            publish_parameters=not keep_parameters,
        )
    if not patterns:
        write_release(release, out, json, method=method)
        return
    counted = truth if unit is None else replace(truth, unit=unit)
    report = _report(patterns[-1], counted, chosen, show_kinds)
    write_release(release, out, json, method=method, confidential=report.summary)
    if not json:
        say(f"\n{report}")
    if truth.secret is None and truth.published.key is not None and not json:
        say(_NO_SECRET)


def _check_protection(
    method: str, out: Path | None, show_kinds: Path | None, seed: int | None
) -> None:
    """Refuse what cannot be done before any table is read."""
    if seed is not None:
        raise ParameterError(
            "--seed no longer protects: publication draws from a secret, since whoever knows a "
            "seed can undo the noise. Give --secret keys.secret instead; experiments are made in "
            "Python, by `table.simulate`."
        )
    check_out(out)
    if show_kinds is not None:
        ending_of(show_kinds, (".csv", *PARQUET))
        if registry.read_text(method)["name"] != "suppress":
            raise ParameterError(f"--show-kinds is for method 'suppress', not for {method!r}.")


def _with_secret(table: Table, secret: Path, ledger: Ledger | None) -> Table:
    name, has_keys = table.data_set.name, table.published.key is not None
    marks = () if ledger is None else ledger.secret_marks(name)
    by_secret = has_keys and table.data_set.keys != "given"
    return table.with_secret(secret_of(secret, name, marks=marks, has_keys=by_secret))


def _report(pattern: Pattern, table: Table, method: Any, show_kinds: Path | None) -> PatternReport:
    """What was hidden and why, for the custodian; written as a file where that is asked for."""
    from discreet.suppress.report import describe_pattern  # start-up time

    if show_kinds is not None:  # true values, states and reasons, for their owner
        write_rows(pattern.to_frame(), show_kinds, OWNER_ONLY)
    return describe_pattern(pattern, table, getattr(method, "rules", ()))


def fit(
    release: Annotated[Path, typer.Argument(help="A release made by `discreet protect`.")],
    fitter: Annotated[
        str, typer.Option(help="NAME or NAME:PARAMETER=VALUE,…; see `discreet methods`.")
    ] = "auto",
    out: Out = None,
    set: Parameters = None,
    zeros: Annotated[
        str,
        typer.Option(
            help="Which inner cells may be filled: all, or margins (none in a published zero)."
        ),
    ] = "all",
    round: Annotated[
        str | None,
        typer.Option(help="Whole numbers: margins, near, unbiased, total or cube. Needs --seed."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the rounding.")] = None,
    decimals: Annotated[
        bool, typer.Option("--decimals", help="Counts keep the decimals of the fit.")
    ] = False,
    json: Json = False,
) -> None:
    """Fit inner cells to a release; the result is additive and public.

    Examples: discreet fit release.parquet --fitter non-negative --out fitted.parquet
    and in whole numbers, discreet fit release.parquet --fitter whole-number:seed=1
    """
    check_out(out)
    whole = _rounding(round, seed)
    public = read_release(release)
    chosen = registry.build("fitter", fitter, plain_values(set))
    with show_progress():
        keeps_decimals = True if decimals or whole is not None else None
        fitted = public.fit(chosen, zeros=zeros, decimals=keeps_decimals)
    result = fitted.fit_result
    if whole is not None:
        fitted = fitted.round(whole[0], seed=whole[1])
    if out is not None:
        save_or_write(fitted, out)
    summary = {
        "file": None if out is None else str(out),
        "side": "public",
        "fitter": fitter,
        "status": result.status.name,
        "certificate": result.certificate.worst,
        "holds": result.is_converged,
        "seconds": result.seconds,
    }
    text = f"{result.status.value} Certificate {result.certificate.worst:.1e}."
    if not result.is_converged:
        text += f" It does not hold: {result.certificate}."
    if "bound" in result.notes:
        summary |= {name: result.notes[name] for name in ("loss", "bound")}
        text += " Loss {loss:.6g}; no table has less than {bound:.6g}.".format(**summary)
    answer(summary, json, f"{fitted}\n{text}" if out is None else f"{out}: {text}")


def _rounding(method: str | None, seed: int | None) -> tuple[str, int] | None:
    """How to round and with which seed; what is missing is said before the fit begins."""
    if method is None:
        return None
    if seed is None:
        raise ParameterError("rounding draws at random: give it a --seed.")
    return choice(Rounding, method, "--round"), seed


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
    table: Annotated[
        str | None, typer.Option(help="One table of the release by its name; all if absent.")
    ] = None,
    format: Annotated[
        list[str] | None,
        typer.Option(help="A format (may be repeated); --out is then a folder, a file per table."),
    ] = None,
    json: Json = False,
) -> None:
    """Write a release for other programs; statement and notes are part of every format.

    Example: discreet export release.parquet --out table.xlsx --columns sex --title "People"

    Example: discreet export release.parquet --table "Age by region" --out table.px

    Example: discreet export release.parquet --format px --format xlsx --out folder
    """
    whole = read_release(release)
    written = (whole if table is None else whole[table]).write(
        out,
        format=tuple(format or ()),
        layout=layout,
        labels=labels,
        columns=tuple(columns or ()),
        title=title,
        source=source,
        footnotes=tuple(footnote or ()),
        dataflow=dataflow,
    )
    files = [p for p in written.iterdir() if p.is_file()] if written.is_dir() else [written]
    size = sum(p.stat().st_size for p in files)
    summary = {"file": str(written), "side": "public", "files": len(files), "bytes": size}
    answer(summary, json, f"{written}: {summary['bytes']:,} bytes.")
