"""Commands of publications: publish an edition, make an old one again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import Again, Json, answer, progress_bar
from discreet.design.formula import table_name
from discreet.errors import ParameterError
from discreet.facade.opening import open as open_records
from discreet.publication import Choice, Outlet, Publication

_MOST_CODES = 40  # categories of a variable that a first draft proposes
_TABLES = 5  # tables of a draft
Reason = Annotated[str, typer.Option(help="What readers are told of a correction or withdrawal.")]


def publish(
    publication: Annotated[
        Path, typer.Argument(help="A publication.toml; with --draft the file to write.")
    ] = Path("publication.toml"),
    edition: Annotated[str | None, typer.Option(help="The edition; else that of [data].")] = None,
    corrects: Annotated[
        str | None, typer.Option(help="The edition that this one takes the place of.")
    ] = None,
    withdraw: Annotated[str | None, typer.Option(help="An edition to be withdrawn.")] = None,
    reason: Reason = "",
    draft: Annotated[
        Path | None, typer.Option(help="Records for which a first publication.toml is written.")
    ] = None,
    convert: Annotated[
        Path | None, typer.Option(help="A recipe of version 0.2 that becomes a publication.")
    ] = None,
    codes: Annotated[Path | None, typer.Option(help="Code lists, for --draft.")] = None,
    again: Again = False,
    json: Json = False,
) -> None:
    """Publish an edition: tables, notes and a confidential log, all or nothing.

    Example: discreet publish --draft people.csv --codes codes.toml publication.toml

    Example: discreet publish publication.toml --edition 2026-1

    Example: discreet publish publication.toml --edition 2026-1-r1 --corrects 2026-1
    --reason "Two municipalities were exchanged."

    Example: discreet publish publication.toml --withdraw 2026-1 --reason "Wrong records."

    Example: discreet publish --convert recipe.toml publication.toml
    """
    from discreet.publishing import publish as publish_edition  # start-up time
    from discreet.publishing import withdraw as withdraw_edition  # start-up time

    if draft is not None or convert is not None:
        if publication.exists():
            raise ParameterError(f"{publication} is there already; name another file.")
        made = _draft(draft, codes) if draft is not None else Publication.read(convert or "")
        made.write(publication)
        answer({"file": str(publication)}, json, f"{publication}: a publication to review.")
        return
    plan, base = Publication.read(publication), publication.parent
    if withdraw is not None:
        folder = withdraw_edition(plan, base, withdraw, reason)
        answer({"folder": str(folder), "withdrawn": withdraw}, json, f"{folder}: withdrawn.")
        return
    with progress_bar():
        done = publish_edition(
            plan, base, edition=edition, corrects=corrects, reason=reason, again=again
        )
    files = sorted(str(p.relative_to(done.folder)) for p in done.folder.rglob("*") if p.is_file())
    summary = {
        "folder": str(done.folder),
        "edition": done.edition,
        "side": "public",
        "tables": [*done.release.tables],
        "files": files,
        "log": str(done.log),
    }
    text = f"{done.folder}: {len(done.release.tables)} tables in {len(files)} files."
    answer(summary, json, f"{text} Confidential log: {done.log}.")


def _draft(source: Path, codes: Path | None) -> Publication:
    """A publication of a few two-way tables to begin with, by cell keys."""
    data = open_records(source, codes=codes)
    sizes = {n: len(data.tabulate([(n,)]).design.axes[0]) for n in data.dimensions}
    chosen = [name for name, size in sizes.items() if 1 < size <= _MOST_CODES]
    if not chosen:
        raise ParameterError(
            f"no column of {source} has 2 to {_MOST_CODES} categories; give code lists (--codes)."
        )
    first, *others = chosen
    pairs = [[first, other] for other in others[:_TABLES]] or [[first]]
    tables = {table_name(tuple(pair)): "*".join(f"`{n}`" for n in pair) for pair in pairs}
    given = {
        "source": str(source),
        "secret": "keys.secret",
        "ledger": "discreet.db",
        "edition": "1",
    }
    if codes is not None:
        given["codes"] = str(codes)
    return Publication(
        tables,
        Choice("cell-key", {"D": 5, "V": 3, "js": 2}),
        Choice("non-negative"),
        rounding="margins",
        seed=1,
        data=given,
        outlet=Outlet(name=source.stem, title=source.stem.replace("_", " ").capitalize()),
        told={name: {"title": name, "footnotes": []} for name in tables},
    )


def republish(
    folder: Annotated[Path, typer.Argument(help="A published edition.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")],
    json: Json = False,
) -> None:
    """Make the files of a published edition again, with the figures it had.

    Example: discreet republish published/2026-1 --out again
    """
    from discreet.publishing import republish as make_again  # start-up time

    made = make_again(folder, out)
    answer({"folder": str(made)}, json, f"{made}: the files of {folder}, byte by byte.")
