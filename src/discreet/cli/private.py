"""The command from records to private synthetic records within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.options import (
    UNWEIGHTED,
    Json,
    LedgerOptions,
    RecordOptions,
    answer,
    progress_bar,
    save_or_write,
    with_options,
)
from discreet.files import ending_of, written_whole


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
    with progress_bar():
        made = data.private(by, epsilon=epsilon, delta=delta, ledger=ledger, seed=seed)
        rows = made.to_microdata()
    if release is not None:
        save_or_write(made, release)
    _write(rows, out)
    told = out.with_suffix(".statement.txt")
    with written_whole(told) as temporary:
        temporary.write_text(f"{made.statement.text}\n", encoding="utf-8")
    summary = {
        "file": str(out),
        "side": "public",
        "records": rows.num_rows,
        "statement_file": str(told),
        "statement": made.statement.text,
    }
    answer(summary, json, f"{out}: {rows.num_rows:,} synthetic records. {made.statement.text}")


def _write(rows: Any, out: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    with written_whole(out) as temporary:
        if out.suffix == ".csv":
            pyarrow.csv.write_csv(rows, temporary)
        else:
            pyarrow.parquet.write_table(rows, temporary)
