"""`discreet token`: accounts of a table builder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from discreet.cli.common import Json, answer
from discreet.errors import ParameterError
from discreet.serve.office.config import Role

if TYPE_CHECKING:
    from discreet.serve.office.database import OfficeDatabase


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
    from discreet.serve.office.credentials import add_token, revoke_token  # start-up time
    from discreet.serve.office.office import open_database  # start-up time

    with closing(open_database(site)) as store:
        if action == "list":
            _list(store, json)
        elif name is None:
            raise ParameterError(f"name the token: discreet token {action} NAME.")
        elif action == "add":
            made = add_token(store, name, role)
            text = f"The token of {name} ({role}); it is not shown again:\n{made}"
            answer({"name": name, "role": str(role), "token": made}, json, text)
        else:
            revoke_token(store, name)
            answer({"name": name, "revoked": True}, json, f"The token of {name} is revoked.")


def _list(store: OfficeDatabase, json: bool) -> None:
    from discreet.serve.office.credentials import all_tokens  # start-up time

    found = [
        {"name": t.name, "role": str(t.role), "since": t.time.isoformat(timespec="seconds")}
        for t in all_tokens(store).values()
    ]
    lines = [f"{t['name']}  {t['role']}  since {t['since']} UTC" for t in found]
    answer({"tokens": found}, json, "\n".join(lines) or "There are no tokens.")
