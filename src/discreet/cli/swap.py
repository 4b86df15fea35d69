"""`discreet swap`: rare households change places with similar ones of another area."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.options import (
    FILE_OPTIONS,
    Json,
    RecordOptions,
    SecretFile,
    answer,
    with_options,
)
from discreet.files import ending_of

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
    from discreet.synthesis.swap import swap_records  # start-up time

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
    answer(summary, json, f"{said}without a similar one. {made.statement.text}")
