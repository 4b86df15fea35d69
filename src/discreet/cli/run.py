"""`discreet run`: a whole recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import Json, check_out, progress_bar, published
from discreet.cli.records import Book, Records, with_options


@with_options
def run(
    recipe: Annotated[Path, typer.Argument(help="A recipe.toml.")],
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The release: .parquet, .csv, .xlsx, …")],
    records: Records,
    book: Book,
    json: Json = False,
) -> None:
    """Tabulate, protect and fit as a recipe says.

    Example: discreet run recipe.toml people.csv --codes codes.toml --id person_id
    --secret keys.secret --ledger discreet.db --out release.csv
    """
    from discreet.recipe import Recipe  # start-up time

    check_out(out)
    plan = Recipe.read(recipe)
    data = records.open(source, ledger=book.open())
    with progress_bar():
        release = plan.run(data, again=book.again)
    published(release, out, json)
