"""`discreet keys`: record keys, made once and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import Json, answer, open_source, progress_bar


def keys(
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    id: Annotated[str, typer.Option(help="Column of stable, unique ids.")],
    secret: Annotated[Path, typer.Option(help="Secret file; made when it does not exist.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Side table of ids and keys.")],
    json: Json = False,
) -> None:
    """Make a record key for every id and store them in a side table only its owner can read.

    Example: discreet keys people.parquet --id person_id --secret keys.secret --out keys.parquet
    """
    from discreet.microdata.secret import Secret

    data = open_source(source, id=id).with_keys(Secret.from_file(secret, create=True))
    with progress_bar():
        data.write_keys(out)
    answer({"file": str(out), "side": "confidential"}, json, f"{out}: record keys (owner only)")
