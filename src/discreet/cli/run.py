"""`discreet run`: a whole recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import (
    Again,
    Codes,
    Edition,
    Json,
    Keys,
    LedgerFile,
    Name,
    SecretFile,
    answer,
    open_source,
    progress_bar,
    write_release,
)


def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe.toml.")],
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The release, .parquet or .csv.")],
    weight: Annotated[str | None, typer.Option(help="Column of survey weights.")] = None,
    key: Annotated[str | None, typer.Option(help="Column of record keys.")] = None,
    id: Annotated[str | None, typer.Option(help="Column of stable ids, for keys.")] = None,
    keys: Keys = None,
    secret: SecretFile = None,
    codes: Codes = None,
    name: Name = None,
    edition: Edition = None,
    ledger: LedgerFile = None,
    again: Again = False,
    json: Json = False,
) -> None:
    """Tabulate, protect and fit as a recipe says.

    Example: discreet run recipe.toml people.parquet --id person_id --secret keys.secret
    --out release.csv
    """
    from discreet.recipe import Recipe

    plan = Recipe.read(recipe)
    data = open_source(
        source,
        weight=weight,
        key=key,
        id=id,
        keys=keys,
        secret=secret,
        codes=codes,
        name=name,
        edition=edition,
        ledger=ledger,
    )
    with progress_bar():
        release = plan.run(data, again=again)
        write_release(release, out)
    summary = {
        "file": str(out),
        "side": "public",
        "published_cells": release.design.n_published,
        "statement": release.statement.text,
    }
    answer(summary, json, f"{out}: {release.statement.text}")
