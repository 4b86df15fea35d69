"""Commands for what the custodian keeps: keys, codes, ledger, log, token."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from discreet.cli.options import (
    FILE_OPTIONS,
    Json,
    Out,
    RecordOptions,
    answer,
    choice,
    progress_bar,
    say,
    with_options,
)
from discreet.errors import ParameterError
from discreet.facade.microdata import Editions
from discreet.files import OWNER_ONLY, written_whole
from discreet.ledger import Ledger
from discreet.records.secret import Secret
from discreet.serve.office.config import Role

if TYPE_CHECKING:
    from discreet.serve.office.database import OfficeDatabase


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
    records: Annotated[RecordOptions, (*FILE_OPTIONS, "edition", "editions")],
    json: Json = False,
) -> None:
    """Make a record key for every id and store them in a side table of their owner's.

    Example: discreet keys people.parquet --id person_id --secret keys.secret --out keys.parquet

    Example: discreet keys postgresql://host/census::people --id person_id --secret keys.secret
    --into people_keys
    """
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


@with_options
def codes(
    *,
    source: Annotated[str, typer.Argument(help="Records: a file or a database.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The code lists, a new .toml file.")],
    max_codes: Annotated[
        int, typer.Option(min=1, help="Columns with more codes get no code list.")
    ] = 200,
    records: Annotated[RecordOptions, ("weight", "key", "id", *FILE_OPTIONS)],
    json: Json = False,
) -> None:
    """Draft code lists from the records. Every code that is listed becomes public: review them.

    Example: discreet codes people.csv --id person_id --out codes.toml
    """
    from discreet.records.draft_codes import draft_code_lists  # start-up time

    if out.exists():
        raise ParameterError(f"{out} exists, and may have been reviewed; choose another name.")
    data = records.open(source)
    with progress_bar():
        draft = draft_code_lists(data, max_codes)
    with written_whole(out, OWNER_ONLY) as temporary:
        temporary.write_text(draft.text, encoding="utf-8")
    summary = {
        "file": str(out),
        "side": "confidential",
        "listed": draft.listed,
        "skipped": draft.skipped,
    }
    skipped = "".join(f"\n  no code list: {name} {why}" for name, why in draft.skipped.items())
    text = f"{out}: draft code lists of {', '.join(draft.listed)}; review every code before use"
    answer(summary, json, text + skipped)


def ledger(
    action: Annotated[Literal["show"], typer.Argument(help="Show what the ledger holds.")],
    path: Annotated[Path, typer.Argument(help="The ledger's file.")],
    json: Json = False,
) -> None:
    """Show the custodian's ledger: what each data set has spent of its budget, and every entry.

    Example: discreet ledger show discreet.db
    """
    if not path.exists():
        raise ParameterError(
            f"there is no ledger {path}. The first release with --ledger {path} makes it."
        )
    found = Ledger(path)
    summary = {"side": "confidential", "data_sets": found.summary(), "entries": found.rows()}
    answer(summary, json, found.text())


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
    from discreet.serve.office.audit import forget_entries  # start-up time
    from discreet.serve.office.office import open_database  # start-up time

    with closing(open_database(site)) as store:
        if action == "usage":
            _usage(store, days or 30, json)
        elif action == "export":
            _export(store, since, out)
        elif days is None:
            raise ParameterError("say how many days to keep: discreet log forget --days 400.")
        else:
            gone = forget_entries(store, days)
            answer({"forgotten": gone}, json, f"{gone:,} entries are forgotten.")


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
    from discreet.serve.office.audit import export_log  # start-up time

    if out is None:
        for line in export_log(store, since):
            typer.echo(line, nl=False)
        return
    with written_whole(out, OWNER_ONLY) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(export_log(store, since))
    say(f"The log is in {out}.")


def token(
    action: Annotated[
        Literal["add", "revoke", "list"],
        typer.Argument(help="Add or revoke a token, or list them."),
    ],
    name: Annotated[str | None, typer.Argument(help="Whom the token stands for.")] = None,
    site: Annotated[Path, typer.Option(help="The site's file.")] = Path("site.toml"),
    role: Annotated[Role, typer.Option(help="What its holder may do.")] = Role.viewer,
    json: Json = False,
) -> None:
    """Give visitors of a table builder accounts, and take them back.

    A token is shown once, when it is made; the site keeps its hash alone.

    Example: discreet token add ann --role custodian --site site.toml
    """
    from discreet.serve.office.credentials import (  # start-up time
        add_token,
        all_tokens,
        revoke_token,
    )
    from discreet.serve.office.office import open_database  # start-up time

    with closing(open_database(site)) as store:
        if action == "list":
            found = [
                {"name": t.name, "role": str(t.role), "since": t.time.isoformat(timespec="seconds")}
                for t in all_tokens(store).values()
            ]
            lines = [f"{t['name']}  {t['role']}  since {t['since']} UTC" for t in found]
            answer({"tokens": found}, json, "\n".join(lines) or "There are no tokens.")
        elif name is None:
            raise ParameterError(f"name the token: discreet token {action} NAME.")
        elif action == "add":
            made = add_token(store, name, role)
            text = f"The token of {name} ({role}); it is not shown again:\n{made}"
            answer({"name": name, "role": str(role), "token": made}, json, text)
        else:
            revoke_token(store, name)
            answer({"name": name, "revoked": True}, json, f"The token of {name} is revoked.")
