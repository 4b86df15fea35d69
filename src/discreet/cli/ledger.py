"""`discreet ledger`: what was released of which data, and what it cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from discreet.cli.common import Json, answer
from discreet.errors import ParameterError


def ledger(
    action: Annotated[Literal["show"], typer.Argument(help="Show what the ledger holds.")],
    path: Annotated[Path, typer.Argument(help="The ledger's file.")],
    json: Json = False,
) -> None:
    """Show the custodian's ledger: what each data set has spent of its budget, and every entry.

    Example: discreet ledger show discreet.db
    """
    from discreet.ledger import Ledger  # start-up time

    if not path.exists():
        raise ParameterError(
            f"there is no ledger {path}. The first release with --ledger {path} makes it."
        )
    found = Ledger(path)
    summary = {"side": "confidential", "data_sets": found.summary(), "entries": found.rows()}
    answer(summary, json, found.text())
