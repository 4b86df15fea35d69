"""`discreet protect`: from a confidential table to a public release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import (
    Again,
    Json,
    LedgerFile,
    Out,
    Parameters,
    SecretFile,
    Unit,
    answer,
    plain_values,
    progress_bar,
    write_release,
)


def protect(
    table: Annotated[Path, typer.Argument(help="A table made by `discreet tabulate`.")],
    method: Annotated[str, typer.Option(help="The method's name, e.g. cell-key.")],
    out: Out = None,
    set: Parameters = None,
    unit: Unit = None,
    secret: SecretFile = None,
    ledger: LedgerFile = None,
    again: Again = False,
    json: Json = False,
) -> None:
    """Protect a table; the release may be published.

    Example: discreet protect table.parquet --method cell-key -s D=5 -s V=3 -s js=2
    --out release.csv

    Example: discreet protect table.parquet --method safe --secret keys.secret
    --ledger discreet.db --out release.parquet
    """
    from discreet import registry
    from discreet.design.storage import read_table
    from discreet.microdata.secret import Secret

    truth = read_table(table)
    if secret is not None:
        truth = truth.with_secret(Secret.from_file(secret))
    chosen = registry.build("method", method, plain_values(set))
    with progress_bar():
        release = truth.protect(chosen, unit=unit, ledger=ledger, again=again)
    if out is not None:
        write_release(release, out)
    summary = {
        "file": None if out is None else str(out),
        "side": "public",
        "method": method,
        "published_cells": release.design.n_published,
        "statement": release.statement.text,
    }
    answer(summary, json, f"{release}" if out is None else f"{out}: {release.statement.text}")
