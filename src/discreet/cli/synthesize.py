"""Commands that make records: synthesize, swap, private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import (
    FILE_OPTIONS,
    UNWEIGHTED,
    Again,
    Json,
    LedgerFile,
    LedgerOptions,
    Out,
    Parameters,
    RecordOptions,
    SecretFile,
    answer,
    check_out,
    plain_values,
    save_or_write,
    with_options,
    write_rows,
)
from discreet.display.bars import show_progress
from discreet.errors import ParameterError
from discreet.facade.microdata import Microdata
from discreet.files import ending_of, write_text

MIXED = "mixed"

if TYPE_CHECKING:
    from discreet.synthesis.result import Synthetic
Geography = Annotated[
    list[str], typer.Option(help="A column of areas, from coarse to fine (repeat it).")
]
Risk = Annotated[
    list[str], typer.Option(help="A column that with the others must not be rare (repeat it).")
]
Similar = Annotated[
    list[str] | None,
    typer.Option(help="A column in which exchanged households agree (may be repeated)."),
]


@dataclass(frozen=True)
class ModelOptions:
    """What else is asked of a model: clusters, records that are difficult, columns that stay."""

    clusters: Annotated[
        str | None,
        typer.Option(help="Clusters of hybrid records: a column, or a size for similar records."),
    ] = None
    gain: Annotated[
        float | None, typer.Option(help="Makes the size of such clusters variable.")
    ] = None
    outliers: Annotated[
        float | None,
        typer.Option(
            help="Split off records farther out than this share of a normal law, e.g. 0.999."
        ),
    ] = None
    outlying: Annotated[
        str, typer.Option(help="Such records: synthetic by themselves, or public as they are.")
    ] = "synthetic"
    groups: Annotated[
        str | None, typer.Option(help="Column of groups of clusters, for terms in groups(…).")
    ] = None
    pieces: Annotated[
        str | None, typer.Option(help="Column of pieces of clusters, for terms in pieces(…).")
    ] = None
    missing: Annotated[str, typer.Option(help="Missing values: refuse, or category.")] = "refuse"
    merge: Annotated[
        str | None, typer.Option(help="pool merges cells and clusters that are too small.")
    ] = None
    large: Annotated[
        str, typer.Option(help="Large units: refuse, or top-code to cut their values back first.")
    ] = "refuse"
    rule: Annotated[
        list[str] | None,
        typer.Option(help='A rule for all that is preserved, e.g. "p%(10)" (may be repeated).'),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Another column that is published (may be repeated); all if absent."),
    ] = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The options as arguments of `discreet.synthesize`."""
        given = dict(vars(self))
        rules = given.pop("rule")
        if self.clusters is not None and self.clusters.isdecimal():
            given["clusters"] = int(self.clusters)
        return {**given, "rules": rules} if rules else given


@dataclass(frozen=True)
class ReportOptions:
    """A report for the custodian, and what it is to tell."""

    report: Annotated[
        Path | None, typer.Option(help="Write what is preserved, for the custodian: .html.")
    ] = None
    control: Annotated[
        str | None,
        typer.Option(
            help="Records that were set aside; the report then tells the membership risk."
        ),
    ] = None
    target: Annotated[
        str | None, typer.Option(help="A column that must not be guessed, for the report.")
    ] = None

    def write(self, data: Microdata, made: Synthetic, records: RecordOptions) -> None:
        """Write the report, if one is asked for; records that were set aside are of one form."""
        from discreet.assessment.assess import assess  # start-up time
        from discreet.assessment.report.page import write_preserved  # start-up time
        from discreet.synthesis import Preserved  # start-up time

        if self.report is None:
            return
        others = RecordOptions(**{name: getattr(records, name) for name in FILE_OPTIONS})
        apart = None if self.control is None else others.open(self.control)
        assessment = assess(data, made, control=apart, target=self.target)
        text = made.statement.text
        write_preserved(Preserved.of(data, made), self.report, text, assessment)


@with_options
def synthesize(
    *,
    source: Annotated[str, typer.Argument(help="A file or database of records.")],
    model: Annotated[
        str,
        typer.Option(
            help='Confidential columns ~ what is preserved, e.g. "income ~ age + region".'
        ),
    ],
    method: Annotated[str, typer.Option(help="ipso, score-correlation, romm, hybrid, …")] = "ipso",
    out: Out = None,
    set: Parameters = None,
    options: ModelOptions,
    about: ReportOptions,
    secret: SecretFile = None,
    ledger: LedgerFile = None,
    again: Again = False,
    records: Annotated[RecordOptions, ("name", "edition", "id", "key", *FILE_OPTIONS)],
    json: Json = False,
    seed: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Make confidential columns synthetic; regressions and covariances stay as they are.

    Codes in a CSV file are text: write number(age) for a column of numbers.

    Example: discreet synthesize people.parquet --model "income ~ age + region" --method ipso
    --secret keys.secret --out synthetic.parquet

    Example: discreet synthesize people.parquet --model "income + tax ~ local(1) + shared(region)"
    --method hybrid --clusters 8 --secret keys.secret --out synthetic.parquet
    """
    from discreet import synthesize as make  # start-up time

    _check_options(method, out, about.report, seed)
    data = replace(records, secret=secret).open(source)
    with show_progress():
        made: Any = make(
            data,
            model,
            method,
            ledger=LedgerOptions(ledger).open(),
            again=again,
            **options.arguments,
            **plain_values(set),
        )
    if out is not None:
        made.save(out)
    about.write(data, made, records)
    summary = {
        "file": None if out is None else str(out),
        "side": "public",
        "method": method,
        "synthetic_columns": list(made.confidential),
        "statement": made.statement.text,
        "confidential_report": None if about.report is None else str(about.report),
    }
    answer(summary, json, f"{made}" if out is None else f"{out}\n\n{made.statement}")


def _check_options(method: str, out: Path | None, report: Path | None, seed: int | None) -> None:
    """Refuse what cannot be done before any record is read."""
    if seed is not None:
        raise ParameterError(
            "--seed makes experiments, which cannot be published: whoever knows it solves for the "
            "original. Give --secret keys.secret instead; experiments are made in Python."
        )
    check_out(out)
    if report is not None and method == MIXED:
        raise ParameterError(
            "--report compares records one by one, and method mixed makes new ones; measure them "
            "in Python with `dc.assess(records, synthetic)`."
        )
    if report is not None:
        ending_of(report, (".html", ".htm"))


@with_options
def swap(
    *,
    source: Annotated[str, typer.Argument(help="A file or database of records.")],
    geography: Geography,
    risk: Risk,
    similar: Similar = None,
    household: Annotated[str | None, typer.Option(help="Column of households.")] = None,
    within: Annotated[str | None, typer.Option(help="Areas that nobody leaves.")] = None,
    k: Annotated[int, typer.Option(help="Combinations of fewer people are at risk.")] = 3,
    rate: Annotated[float, typer.Option(help="Share of households exchanged at least.")] = 0.05,
    out: Annotated[Path, typer.Option("--out", "-o", help="File of records to write: .parquet.")],
    secret: SecretFile = None,
    records: Annotated[RecordOptions, ("name", "edition", "id", *FILE_OPTIONS)],
    json: Json = False,
) -> None:
    """Exchange rare households with similar ones of other areas; the records stay confidential.

    Example: discreet swap people.parquet --geography region --geography municipality --risk age
    --risk occupation --similar sex --household household --secret keys.secret --out swapped.parquet
    """
    from discreet.synthesis import swap_records  # start-up time

    ending_of(out, (".parquet",))
    data = replace(records, secret=secret).open(source)
    options: dict[str, Any] = {"geography": geography, "risk": risk, "similar": similar or ()}
    options |= {"household": household, "within": within, "k": k, "rate": rate}
    made = swap_records(data, **options)
    made.save(out)
    summary = {
        "file": str(out),
        "side": "confidential",
        "exchanged": made.measures.share,
        "unmatched": made.measures.unmatched,
        "statement": made.statement.text,
    }
    said = f"{out} (confidential): {made.measures.share:.1%} exchanged, {made.measures.unmatched} "
    answer(summary, json, f"{said}without a similar one.\n\n{made.statement}")


@with_options
def private(
    *,
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    epsilon: Annotated[float, typer.Option(help="What the tables cost, for one unit.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The synthetic records, a .csv or .parquet.")
    ],
    delta: Annotated[
        float | None, typer.Option(help="With it the noise is Gaussian; without it Laplace.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="What is measured, 'a*b + c*d'; all pairs if absent.")
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="Also the tables with noise, their fit and statement.")
    ] = None,
    records: Annotated[RecordOptions, UNWEIGHTED],
    book: LedgerOptions,
    seed: Annotated[int, typer.Option(help="Seed of the search for records; public.")] = 1,
    json: Json = False,
) -> None:
    """Make private synthetic records: margins with noise within a budget, and records of them.

    Codes must be declared (--codes). The records are public; what was done to them is written
    beside them.

    Example: discreet private people.csv --codes codes.toml --id person_id --epsilon 1
    --delta 1e-9 --ledger discreet.db --budget 2 --budget-delta 1e-8 --out synthetic.csv
    """
    ending_of(out, (".csv", ".parquet"))
    data = records.open(source)
    ledger = book.open()
    with show_progress():
        made = data.private(by, epsilon=epsilon, delta=delta, ledger=ledger, seed=seed)
        rows = made.to_microdata()
    if release is not None:
        save_or_write(made, release)
    write_rows(rows, out)
    told = out.with_suffix(".statement.txt")
    write_text(told, f"{made.statement.text}\n")
    summary = {
        "file": str(out),
        "side": "public",
        "records": rows.num_rows,
        "statement_file": str(told),
        "statement": made.statement.text,
    }
    answer(summary, json, f"{out}: {rows.num_rows:,} synthetic records.\n\n{made.statement}")
