"""`discreet token`: accounts of a table builder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.common import Json, answer
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.serve.office.store.store import Store


class Action(StrEnum):
    """What to do with tokens."""

    add = "add"
    revoke = "revoke"
    list = "list"


class Role(StrEnum):
    """What the holder of a token may do."""

    viewer = "viewer"
    analyst = "analyst"
    custodian = "custodian"


def token(
    action: Annotated[Action, typer.Argument(help="Add or revoke a token, or list them.")],
    name: Annotated[str | None, typer.Argument(help="Whom the token stands for.")] = None,
    site: Annotated[Path, typer.Option(help="The site's file.")] = Path("site.toml"),
    role: Annotated[Role, typer.Option(help="What its holder may do.")] = Role.viewer,
    json: Json = False,
) -> None:
    """Give visitors of a table builder accounts, and take them back.

    A token is shown once, when it is made; the site keeps its hash alone.

    Example: discreet token add ann --role custodian --site site.toml
    """
    from discreet.serve.office.office import store_of

    store = store_of(site)
    try:
        if action is Action.list:
            _list(store, json)
        elif name is None:
            raise ParameterError(f"name the token: discreet token {action} NAME.")
        elif action is Action.add:
            _add(store, name, role, json)
        else:
            _revoke(store, name, json)
    finally:
        store.close()


def _add(store: Store, name: str, role: Role, json: bool) -> None:
    from discreet.serve.office.accounts.tokens import add_token
    from discreet.serve.office.accounts.visitor import Role as Known

    made = add_token(store, name, Known(role))
    text = f"The token of {name} ({role}); it is not shown again:\n{made}"
    answer({"name": name, "role": str(role), "token": made}, json, text)


def _revoke(store: Store, name: str, json: bool) -> None:
    from discreet.serve.office.accounts.tokens import revoke_token

    revoke_token(store, name)
    answer({"name": name, "revoked": True}, json, f"The token of {name} is revoked.")


def _list(store: Store, json: bool) -> None:
    from discreet.serve.office.accounts.tokens import all_tokens

    found = [
        {"name": t.name, "role": str(t.role), "since": t.time.isoformat(timespec="seconds")}
        for t in all_tokens(store).values()
    ]
    lines = [f"{t['name']}  {t['role']}  since {t['since']} UTC" for t in found]
    answer({"tokens": found}, json, "\n".join(lines) or "There are no tokens.")
