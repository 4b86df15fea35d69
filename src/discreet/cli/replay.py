"""`discreet replay`: a saved query made into a table again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.common import Json, answer
from discreet.errors import ParameterError


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
    from discreet.files import written_whole
    from discreet.release.formats.write import writer_named, writer_of
    from discreet.serve.api.replay import from_file, from_url
    from discreet.serve.api.saved import SavedQuery

    if site is not None and url is not None:
        raise ParameterError("give --site or --url, not both: a table comes from one place.")
    saved = SavedQuery.read(query)
    writer = writer_named("csv") if out is None else writer_of(out)
    if site is not None:
        content = from_file(saved, site, writer)
    else:
        content = from_url(saved, url or saved.url, writer, token)
    if out is None:
        sys.stdout.write(content.decode("utf-8"))
        return
    with written_whole(out) as temporary:
        temporary.write_bytes(content)
    summary = {"file": str(out), "side": "public", "dataset": saved.dataset, "bytes": len(content)}
    answer(summary, json, f"{out}: {saved.title or saved.dataset}, {len(content):,} bytes.")
