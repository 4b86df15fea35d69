"""`discreet tabulate`: from records to a confidential table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import Json, answer, choice, progress_bar
from discreet.cli.records import Hierarchies, Records, with_options


@with_options
def tabulate(
    *,
    source: Annotated[str, typer.Argument(help="Records: a Parquet or CSV file, or a database.")],
    by: Annotated[str, typer.Option(help="What to publish, e.g. 'region*age + region*sex'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table, a confidential .parquet.")],
    hierarchy: Hierarchies = None,
    records: Records,
    support: Annotated[str, typer.Option(help="Inner cells: 'all' or 'occurring'.")] = "all",
    value: Annotated[str | None, typer.Option(help="Column to sum, for magnitudes.")] = None,
    contributor: Annotated[str | None, typer.Option(help="Column of whose a value is.")] = None,
    holding: Annotated[
        str | None, typer.Option(help="Column of groups of contributors that count as one.")
    ] = None,
    negative: Annotated[
        str, typer.Option(help="Negative values: 'refuse', or judge by 'absolute' value.")
    ] = "refuse",
    largest: Annotated[int, typer.Option(help="Largest contributions kept for each cell.")] = 3,
    json: Json = False,
) -> None:
    """Count records into a table. The result holds true counts: only its owner can read it.

    Example: discreet tabulate people.csv --by "region*age + region*sex" --codes codes.toml
    --id person_id --secret keys.secret --name census --edition 2024 --out table.parquet

    Example: discreet tabulate firms.csv --by "activity*region" --value turnover
    --contributor enterprise --out table.parquet
    """
    from discreet.design.support import Support  # start-up time
    from discreet.tables.magnitude import Negative  # start-up time
    from discreet.tables.storage import check_table_name  # start-up time

    check_table_name(out)
    data = records.open(source, hierarchies=hierarchy)
    with progress_bar():
        table = data.tabulate(
            by,
            support=choice(Support, support, "--support"),
            value=value,
            contributor=contributor,
            holding=holding,
            negative=choice(Negative, negative, "--negative"),
            largest=largest,
        )
        table.save(out)
    summary = {
        "file": str(out),
        "side": "confidential",
        "published_cells": table.design.n_published,
        "inner_cells": table.design.n_inner,
        "keys": table.published.key is not None,
        "weights": table.published.weight is not None,
        "value": value,
    }
    text = f"{out}: {table.design.n_published:,} published cells (confidential, owner only)"
    answer(summary, json, text)
