"""`discreet run`: a whole recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import (
    Again,
    Bounds,
    Budget,
    BudgetDelta,
    Codes,
    Convention,
    Decimal,
    Edition,
    Editions,
    Encoding,
    Id,
    Json,
    Key,
    Keys,
    LedgerFile,
    MaxRecords,
    Name,
    Person,
    RandomKeys,
    SecretFile,
    Weight,
    WeightBound,
    answer,
    check_out,
    open_ledger,
    open_source,
    progress_bar,
    put,
)


def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe.toml.")],
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The release: .parquet, .csv, .xlsx, …")],
    weight: Weight = None,
    weight_bound: WeightBound = None,
    person: Person = None,
    max_records: MaxRecords = None,
    key: Key = None,
    id: Id = None,
    keys: Keys = None,
    random_keys: RandomKeys = None,
    convention: Convention = None,
    secret: SecretFile = None,
    codes: Codes = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    name: Name = None,
    edition: Edition = None,
    editions: Editions = None,
    ledger: LedgerFile = None,
    budget: Budget = None,
    budget_delta: BudgetDelta = None,
    again: Again = False,
    json: Json = False,
) -> None:
    """Tabulate, protect and fit as a recipe says.

    Example: discreet run recipe.toml people.csv --codes codes.toml --id person_id
    --secret keys.secret --ledger discreet.db --out release.csv
    """
    from discreet.recipe import Recipe

    check_out(out)
    plan = Recipe.read(recipe)
    data = open_source(
        source,
        weight=weight,
        key=key,
        id=id,
        keys=keys,
        random_keys=random_keys,
        encoding=encoding,
        decimal=decimal,
        convention=convention,
        secret=secret,
        codes=codes,
        name=name,
        edition=edition,
        editions=editions,
        ledger=open_ledger(ledger, budget, budget_delta),
        bounds=Bounds(weight_bound, person, max_records),
    )
    with progress_bar():
        release = plan.run(data, again=again)
        put(release, out)
    summary = {
        "file": str(out),
        "side": "public",
        "published_cells": release.design.n_published,
        "statement": release.statement.text,
    }
    answer(summary, json, f"{out}: {release.statement.text}")
