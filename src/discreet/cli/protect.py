"""`discreet protect`: from a confidential table to a public release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import (
    Json,
    Out,
    Parameters,
    Unit,
    check_out,
    plain_values,
    progress_bar,
    published,
)
from discreet.cli.records import Book, SecretFile, with_options
from discreet.errors import ParameterError


@with_options
def protect(
    *,
    table: Annotated[Path, typer.Argument(help="A table made by `discreet tabulate`.")],
    method: Annotated[str, typer.Option(help="The method's name, e.g. cell-key.")],
    out: Out = None,
    set: Parameters = None,
    unit: Unit = None,
    secret: SecretFile = None,
    book: Book,
    json: Json = False,
    seed: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Protect a table; the release may be published.

    Example: discreet protect table.parquet --method cell-key -s D=5 -s V=3 -s js=2
    --out release.csv

    Example: discreet protect table.parquet --method safe --secret keys.secret
    --ledger discreet.db --out release.parquet

    Example: discreet protect table.parquet --method discrete-laplace -s epsilon=0.5
    --ledger discreet.db --budget 1 --out release.csv

    Example: discreet protect table.parquet --method cell-key --out table.xlsx
    """
    from discreet import registry  # start-up time
    from discreet.facade.table import read_table  # start-up time
    from discreet.records.secret import Secret  # start-up time

    if seed is not None:
        raise ParameterError(
            "--seed no longer protects: publication draws from a secret, since whoever knows a "
            "seed can undo the noise. Give --secret keys.secret instead; experiments are made in "
            "Python, by `table.simulate`."
        )
    check_out(out)
    ledger = book.open()
    truth = read_table(table)
    if secret is not None:
        truth = truth.with_secret(Secret.from_file(secret))
    chosen = registry.build("method", method, plain_values(set))
    with progress_bar():
        release = truth.protect(chosen, unit=unit, ledger=ledger, again=book.again)
    published(release, out, json, method=method)
