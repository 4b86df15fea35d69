"""`discreet keys`: record keys, made once and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import Json, answer, choice, progress_bar
from discreet.cli.records import Records, with_options
from discreet.errors import ParameterError


@with_options
def keys(
    *,
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    id: Annotated[str, typer.Option(help="Column of stable, unique ids.")],
    secret: Annotated[Path, typer.Option(help="Secret file; made when it does not exist.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Side table of ids and keys, a file.")
    ] = None,
    into: Annotated[
        str | None, typer.Option(help="Side table of ids and keys, new in the records' database.")
    ] = None,
    records: Annotated[Records, ("encoding", "edition", "editions")],
    json: Json = False,
) -> None:
    """Make a record key for every id and store them in a side table of their owner's.

    Example: discreet keys people.parquet --id person_id --secret keys.secret --out keys.parquet

    Example: discreet keys postgresql://host/census::people --id person_id --secret keys.secret
    --into people_keys
    """
    from discreet.facade.microdata import Editions  # start-up time
    from discreet.records.secret import Secret  # start-up time

    if (out is None) == (into is None):
        raise ParameterError("say where the keys go: a file with --out, or a table with --into.")
    data = records.open(source, id=id, editions=None)
    policy = choice(Editions, records.editions or "kept", "--editions")
    found = Secret.from_file(secret, create=True)
    with progress_bar():
        if into is not None:
            data.store_keys(into, found, editions=policy)
        elif out is not None:
            data.with_keys(found, editions=policy).write_keys(out)
    place = {"file": str(out)} if into is None else {"table": into}
    text = f"{out}: record keys (owner only)" if into is None else f"{into}: record keys (a table)"
    answer({**place, "side": "confidential"}, json, text)
