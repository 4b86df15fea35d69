"""`discreet tabulate`: from records to a confidential table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import (
    Codes,
    Edition,
    Json,
    Keys,
    Name,
    SecretFile,
    answer,
    open_source,
    progress_bar,
)


def tabulate(
    source: Annotated[str, typer.Argument(help="Records: a Parquet or CSV file, or a database.")],
    by: Annotated[str, typer.Option(help="What to publish, e.g. 'region*age + region*sex'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table, a confidential .parquet.")],
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(help="VARIABLE=FILE with a hierarchy (.hrc, …); may be repeated."),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of survey weights.")] = None,
    key: Annotated[str | None, typer.Option(help="Column of record keys.")] = None,
    id: Annotated[str | None, typer.Option(help="Column of stable ids, for keys.")] = None,
    keys: Keys = None,
    secret: SecretFile = None,
    codes: Codes = None,
    name: Name = None,
    edition: Edition = None,
    support: Annotated[str, typer.Option(help="Inner cells: 'all' or 'occurring'.")] = "all",
    json: Json = False,
) -> None:
    """Count records into a table. The result holds true counts: only its owner can read it.

    Example: discreet tabulate people.parquet --by "region*age + region*sex"
    --hierarchy region=region.hrc --id person_id --secret keys.secret --out table.parquet
    """
    data = open_source(
        source,
        weight=weight,
        key=key,
        id=id,
        keys=keys,
        secret=secret,
        hierarchies=hierarchy,
        codes=codes,
        name=name,
        edition=edition,
    )
    with progress_bar():
        table = data.tabulate(by, support=support)  # type: ignore[arg-type]  # checked there
        table.save(out)
    summary = {
        "file": str(out),
        "side": "confidential",
        "published_cells": table.design.n_published,
        "inner_cells": table.design.n_inner,
        "keys": table.published.key is not None,
        "weights": table.published.weight is not None,
    }
    text = f"{out}: {table.design.n_published:,} published cells (confidential, owner only)"
    answer(summary, json, text)
