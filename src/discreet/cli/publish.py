"""Commands of publications: publish an edition, make an old one again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options import Accept, Again, Json, answer
from discreet.display.bars import show_progress
from discreet.errors import ParameterError
from discreet.publication import Publication

if TYPE_CHECKING:
    from discreet.publication.editions import PublishedEdition

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
        Path | None,
        typer.Option(help="With --draft, a recipe of version 0.2 that says what is published."),
    ] = None,
    codes: Annotated[Path | None, typer.Option(help="Code lists, for --draft.")] = None,
    again: Again = False,
    accept: Accept = "",
    json: Json = False,
) -> None:
    """Publish an edition: tables, notes and a confidential log, all or nothing.

    Attacks run first and stop what breaks the rules in [gate] of the publication.

    Example: discreet publish --draft people.csv --codes codes.toml publication.toml

    Example: discreet publish publication.toml --edition 2026-1

    Example: discreet publish publication.toml --edition 2026-1-r1 --corrects 2026-1
    --reason "Two municipalities were exchanged."

    Example: discreet publish publication.toml --withdraw 2026-1 --reason "Wrong records."

    Example: discreet publish --convert recipe.toml --draft people.csv publication.toml
    """
    from discreet.publication import withdraw as withdraw_edition  # start-up time

    own = {"--edition": edition, "--corrects": corrects, "--again": again, "--accept": accept}
    if draft is not None or convert is not None:
        _refuse("--draft", {**own, "--withdraw": withdraw, "--reason": reason})
        _write_draft(publication, draft, codes, convert, json)
        return
    base = publication.parent
    plan = _read(publication)
    if withdraw is not None:
        _refuse("--withdraw", {**own, "--codes": codes})
        folder = withdraw_edition(plan, base, withdraw, reason)
        answer({"folder": str(folder), "withdrawn": withdraw}, json, f"{folder}: withdrawn.")
        return
    _refuse("a publication", {"--codes": codes})
    _refuse("an edition that corrects none", {} if corrects else {"--reason": reason})
    of = {"edition": edition, "corrects": corrects, "reason": reason}
    with show_progress():
        made = _publish(plan, base, {**of, "again": again, "accept": accept})
    summaries, texts = zip(*map(_summary, made), strict=True)
    summary = summaries[0] if len(made) == 1 else {"editions": list(summaries)}
    answer(summary, json, "\n".join(texts))


def _read(publication: Path) -> Publication:
    if not publication.exists():
        raise ParameterError(
            f"there is no file {publication}. Draft one: `discreet publish --draft people.csv "
            f"{publication}`."
        )
    return Publication.read(publication)


def _publish(plan: Publication, base: Path, given: dict[str, Any]) -> list[PublishedEdition]:
    """One edition, or every period of records that say by a column which period they are of."""
    from discreet import publication as room  # start-up time

    is_named = given["edition"] or given["corrects"] or plan.data.get("edition")
    if isinstance(plan.data.get("time"), str) and not is_named:
        again, accept = given["again"], given["accept"]
        made: list[PublishedEdition]
        made = room.publish_periods(plan, base, again=again, accept=accept)
        return made
    return [room.publish(plan, base, **given)]


def _refuse(what: str, options: Mapping[str, object]) -> None:
    """Refuse options that say nothing here, rather than pass them over."""
    if given := [name for name, value in options.items() if value]:
        raise ParameterError(
            f"{what} does not go with {', '.join(given)}; see the examples of --help."
        )


def _write_draft(
    target: Path, source: Path | None, codes: Path | None, recipe: Path | None, json: bool
) -> None:
    from discreet.publication import draft_publication, write_draft  # start-up time

    if target.exists():
        raise ParameterError(f"{target} is there already; name another file.")
    if source is None:
        raise ParameterError("a publication names its records as well: --draft people.csv.")
    like = None if recipe is None else Publication.read(recipe)
    write_draft(draft_publication(source, target.parent, codes, like), target)
    answer({"file": str(target)}, json, f"{target}: a publication to review.")


def _summary(done: PublishedEdition) -> tuple[dict[str, Any], str]:
    files = sorted(str(p.relative_to(done.folder)) for p in done.folder.rglob("*") if p.is_file())
    told = {
        "folder": str(done.folder),
        "edition": done.edition,
        "side": "public",
        "tables": [*done.release.tables],
        "files": files,
        "log": str(done.log),
    }
    n = len(done.release.tables)
    text = f"{done.folder}: {n} {'table' if n == 1 else 'tables'} in {len(files)} files."
    gate = done.log.with_name(f"{done.log.stem}.gate.md")
    if gate.is_file():
        told["gate"] = str(gate)
        text += f" What attacks found: {gate}."
    return told, f"{text} Confidential log: {done.log}."


def republish(
    folder: Annotated[Path, typer.Argument(help="A published edition.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")],
    json: Json = False,
) -> None:
    """Make the files of a published edition again, with the figures it had.

    Example: discreet republish published/2026-1 --out again
    """
    from discreet.publication import republish as make_again  # start-up time

    made = make_again(folder, out)
    answer({"folder": str(made)}, json, f"{made}: the files of {folder}, byte by byte.")
