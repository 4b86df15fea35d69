"""`discreet replay`: a saved query made into a table again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.common import Json, answer
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.release.formats.write import Writer


def replay(
    query: Annotated[Path, typer.Argument(help="A saved query, query.toml.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write, e.g. table.xlsx; CSV is printed if none."),
    ] = None,
    site: Annotated[
        Path | None, typer.Option(help="A site.toml to make the table from, without a server.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Address of a site; the one in the saved query if absent.")
    ] = None,
    token: Annotated[
        str, typer.Option(envvar="DISCREET_TOKEN", help="Token, for sites with accounts.")
    ] = "",
    json: Json = False,
) -> None:
    """Make the table of a saved query again; figures are those of the edition of today.

    Example: discreet replay query.toml --out table.xlsx

    Example: discreet replay query.toml --url https://tables.office.example --out table.csv

    Example: discreet replay query.toml --site site.toml --out table.px
    """
    from discreet.files import written_whole  # start-up time
    from discreet.release.formats.write import files_of, writer_named  # start-up time
    from discreet.serve.api.saved import (  # start-up time
        SavedQuery,  # start-up time
        replay_by_site,
        replay_by_url,
    )
    from discreet.serve.site.start import load_site  # start-up time

    if site is not None and url is not None:
        raise ParameterError("give --site or --url, not both: a table comes from one place.")
    saved = SavedQuery.read(query)
    made = None if site is None else load_site(site).current

    def content(writer: Writer) -> bytes:
        if made is None:
            return replay_by_url(saved, url or saved.url, writer, token)
        return replay_by_site(saved, made, writer, "" if out is None else out.name)

    if out is None:
        sys.stdout.write(content(writer_named("csv")).decode("utf-8"))
        return
    contents = {target: content(writer) for target, writer in files_of(out)}
    for target, made_of_it in contents.items():
        with written_whole(target) as temporary:
            temporary.write_bytes(made_of_it)
    size = len(contents[out])
    summary = {"file": str(out), "side": "public", "dataset": saved.dataset, "bytes": size}
    answer(summary, json, f"{out}: {saved.title or saved.dataset}, {size:,} bytes.")
