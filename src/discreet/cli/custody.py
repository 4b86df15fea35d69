"""Commands for what the custodian keeps: keys, codes, ledger, secret, log, token."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from discreet.cli.options import (
    FILE_OPTIONS,
    Json,
    LedgerFile,
    Out,
    RecordOptions,
    answer,
    say,
    with_options,
)
from discreet.display.bars import show_progress
from discreet.errors import ParameterError
from discreet.files import OWNER_ONLY, ending_of, write_text, written_whole
from discreet.ledger import Ledger
from discreet.records.secret import secret_of
from discreet.serve.office.config import Role
from discreet.tables.truth import DataSet

if TYPE_CHECKING:
    from discreet.ledger import Ledger
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
    from discreet.facade.microdata import DEFAULT_EDITIONS  # start-up time

    if (out is None) == (into is None):
        raise ParameterError("say where the keys go: a file with --out, or a table with --into.")
    data = records.open(source, id=id, editions=None)
    policy = records.editions or DEFAULT_EDITIONS
    found = secret_of(secret, data.data_set.name)
    with show_progress():
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
    from discreet.records.code_list import draft_code_lists  # start-up time

    ending_of(out, (".toml",))
    if out.exists():
        raise ParameterError(f"{out} exists, and may have been reviewed; choose another name.")
    data = records.open(source)
    with show_progress():
        draft = draft_code_lists(data, max_codes)
    write_text(out, draft.text, OWNER_ONLY)
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
    action: Annotated[
        Literal["show", "enter", "accept", "withdraw", "correct", "backup", "upgrade"],
        typer.Argument(help="Show it, make an entry, copy it, or convert an old one."),
    ],
    path: Annotated[Path, typer.Argument(help="The ledger's file.")],
    table: Annotated[
        list[str] | None,
        typer.Option(help="enter: a table's file; accept: its variables, e.g. 'age*region'."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the data set.")] = None,
    edition: Annotated[str | None, typer.Option(help="Its edition.")] = None,
    by: Annotated[
        str | None, typer.Option(help="correct: the edition that takes its place.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; it is entered.")] = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Show and keep the custodian's ledger: totals and entries, decisions, copies.

    Example: discreet ledger show discreet.db

    Example: discreet ledger enter discreet.db --table table-2024.parquet

    Example: discreet ledger accept discreet.db --name census --edition 2025 --table "age*region"
    --reason "The records of 2024 are gone."

    Example: discreet ledger withdraw discreet.db --name census --edition 2024
    --reason "One region was counted twice."

    Example: discreet ledger correct discreet.db --name census --edition 2024 --by 2024-r1
    --reason "One region was counted twice."

    Example: discreet ledger backup discreet.db --out discreet-2026-11-18.db

    Example: discreet ledger upgrade discreet.db
    """
    if not path.exists():
        raise ParameterError(
            f"there is no ledger {path}. The first release with --ledger {path} makes it."
        )
    if action == "upgrade":
        _upgrade(path, json)
        return
    found = Ledger(path)
    if action == "show":
        summary = {"side": "confidential", "data_sets": found.summary(), "entries": found.rows()}
        answer(summary, json, found.text())
    elif action == "backup":
        from discreet.ledger.file import back_up  # start-up time

        copy = back_up(path, _require(out, "--out"))
        answer({"side": "confidential", "file": str(copy)}, json, f"{copy}: a copy (owner only)")
    elif action == "enter":
        _enter(found, _require(table, "--table"), json)
    else:
        data_set = DataSet(_require(name, "--name"), _require(edition, "--edition"))
        _decide(found, action, data_set, _require(reason, "--reason"), table=table, by=by)
        _say_entered(data_set, f"{action} is", json, decision=action)


def _decide(
    found: Ledger,
    action: str,
    data_set: DataSet,
    why: str,
    *,
    table: list[str] | None,
    by: str | None,
) -> None:
    """Enter what the custodian decided of an edition."""
    if action == "accept":
        for one in _require(table, "--table"):
            found.accept(data_set, [part.strip() for part in one.split("*")], why)
    elif action == "withdraw":
        found.withdraw(data_set, why)
    else:
        found.correct(data_set, _require(by, "--by"), why)


def _say_entered(data_set: DataSet, what: str, json: bool, **more: str) -> None:
    entered = {"name": data_set.name, "edition": data_set.edition, **more}
    answer(entered, json, f"{data_set.name}, edition {data_set.edition}: {what} entered.")


def _upgrade(path: Path, json: bool) -> None:
    from discreet.ledger.file import upgrade  # start-up time

    old = upgrade(path)
    text = (
        f"{path}: converted. The old file is {old}; delete it once all is well, since its "
        "sketches recognise people. Enter the tables of earlier editions from their records: "
        "discreet tabulate, then discreet ledger enter."
    )
    answer({"side": "confidential", "old": str(old)}, json, text)


def _enter(found: Ledger, files: list[str], json: bool) -> None:
    from discreet.facade.table import read_table  # start-up time

    path, *others = files
    if others:
        raise ParameterError("a table is entered by a command of its own: give one --table.")
    table = read_table(path)
    found.enter(table)
    _say_entered(table.data_set, f"the tables of {path} are", json)


def _require(value: Any, option: str) -> Any:
    if value is None or value == []:
        raise ParameterError(f"this needs {option}; see the examples of --help.")
    return value


def secret(
    action: Annotated[
        Literal["make", "backup", "rotate"],
        typer.Argument(help="Make a secret on purpose, copy it, or exchange it."),
    ],
    path: Annotated[Path, typer.Argument(help="The secret's file.")],
    out: Out = None,
    ledger: LedgerFile = None,
    reason: Annotated[str | None, typer.Option(help="rotate: why; it is entered.")] = None,
    json: Json = False,
) -> None:
    """Keep the custodian's secret: make one, copy it, or exchange it for a new one.

    Example: discreet secret make survey.secret

    Example: discreet secret backup keys.secret --out /safe/keys.secret

    Example: discreet secret rotate keys.secret --out old.secret --ledger discreet.db
    --reason "A laptop with the file was lost."
    """
    from discreet.ledger import Ledger  # start-up time
    from discreet.records.secret import Secret, copy_secret, put_new_secret  # start-up time

    if action == "make":
        if path.exists():
            raise ParameterError(f"{path} exists, and a secret is never overwritten.")
        Secret.from_file(path, create=True)
        answer({"file": str(path), "side": "confidential"}, json, f"{path}: a secret (owner only)")
        return
    kept = _require(out, "--out")
    old = Secret.from_file(path)
    if action == "backup":
        copy_secret(path, kept)
        answer({"file": str(kept), "side": "confidential"}, json, f"{kept}: a copy (owner only)")
        return
    book = Ledger(_require(ledger, "--ledger"), create=False)
    why = _require(reason, "--reason")
    copy_secret(path, kept)
    with put_new_secret(path) as new:  # entered before anybody can use it
        names = book.rotate(old.mark, new.mark, why)
    text = (
        f"{path}: a new secret for {', '.join(names) or 'no data set yet'}; the old one is {kept}."
    )
    answer({"file": str(path), "old": str(kept), "data_sets": names}, json, text)


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
    with (
        written_whole(out, OWNER_ONLY) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
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
