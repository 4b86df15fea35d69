"""`discreet log`: the audit log of a table builder."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from discreet.cli.common import Json, Out, answer, say
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.serve.office.database import OfficeDatabase


def log(
    action: Annotated[
        Literal["usage", "export", "forget"],
        typer.Argument(help="Show the use, export the log, or cut it."),
    ],
    site: Annotated[Path, typer.Option(help="The site's file.")] = Path("site.toml"),
    days: Annotated[
        int | None, typer.Option(help="Days back: shown by usage, kept by forget.", min=1)
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Export from here on, in UTC.", formats=["%Y-%m-%d"])
    ] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Read the audit log of a table builder: who asked for what and how it ended, never a figure.

    Example: discreet log export --site site.toml --since 2026-01-01 --out log.csv
    """
    from discreet.serve.office.office import open_database  # start-up time

    with closing(open_database(site)) as store:
        if action == "usage":
            _usage(store, days or 30, json)
        elif action == "export":
            _export(store, since, out)
        else:
            _forget(store, days, json)


def _usage(store: OfficeDatabase, days: int, json: bool) -> None:
    from discreet.serve.office.audit import usage  # start-up time

    found = usage(store, days)
    plain = {**asdict(found), "since": found.since.isoformat()}
    plain["days"] = [{**asdict(d), "day": d.day.isoformat()} for d in found.days]
    lines = [
        f"{d.day}  {d.questions:,} questions, {d.refused:,} refused, {d.visitors:,} visitors, "
        f"{d.milliseconds:.0f} ms on average"
        for d in found.days
    ]
    lines += [
        f"refused in {name or '–'}: {reason}, {n:,} times" for name, reason, n in found.refusals
    ]
    answer(plain, json, "\n".join(lines) or "Nothing was asked.")


def _export(store: OfficeDatabase, since: datetime | None, out: Path | None) -> None:
    from discreet.files import OWNER_ONLY, written_whole  # start-up time
    from discreet.serve.office.audit import export_log  # start-up time

    if out is None:
        for line in export_log(store, since):
            typer.echo(line, nl=False)
        return
    with written_whole(out, OWNER_ONLY) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(export_log(store, since))
    say(f"The log is in {out}.")


def _forget(store: OfficeDatabase, days: int | None, json: bool) -> None:
    from discreet.serve.office.audit import forget_entries  # start-up time

    if days is None:
        raise ParameterError("say how many days to keep: discreet log forget --days 400.")
    gone = forget_entries(store, days)
    answer({"forgotten": gone}, json, f"{gone:,} entries are forgotten.")
