"""Tokens: long random texts that stand for an account; the database holds their hashes alone."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from discreet.errors import ParameterError, UnknownNameError
from discreet.serve.office.accounts.visitor import Role, Visitor
from discreet.serve.office.audit.entry import now
from discreet.serve.office.store.schema import TOKENS
from discreet.serve.office.store.store import Store, StoreError

_PREFIX = "discreet"
_ID_BYTES = 6
_SECRET_BYTES = 32
_LONGEST_NAME = 60


@dataclass(frozen=True)
class Token:
    """What is known of a token; never the token itself."""

    id: str
    name: str
    role: Role
    digest: bytes
    time: datetime
    revoked: datetime | None

    @property
    def visitor(self) -> Visitor:
        """Whom the token stands for."""
        return Visitor(self.name, self.role, is_known=True)


def add_token(store: Store, name: str, role: Role) -> str:
    """Make a token; it is shown this once."""
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ParameterError(
            f"a token's name must have 1 to {_LONGEST_NAME} printable characters, got {name!r}."
        )
    id, secret = secrets.token_hex(_ID_BYTES), secrets.token_hex(_SECRET_BYTES)
    row = {"id": id, "name": name.strip(), "role": str(role), "digest": _digest(secret)}
    try:
        with store.writing() as connection:
            connection.execute(insert(TOKENS).values(**row, time=now()))
    except StoreError as error:
        if isinstance(error.__cause__, IntegrityError):
            raise ParameterError(f"there is a token named {name!r}; revoke it first.") from None
        raise
    return "_".join((_PREFIX, id, secret))


def revoke_token(store: Store, name: str) -> None:
    """Make a token worthless; its name can be used again."""
    active = (TOKENS.c.name == name) & TOKENS.c.revoked.is_(None)
    with store.writing() as connection:
        found = connection.execute(select(TOKENS.c.id).where(active)).scalar()
        gone = {"revoked": now(), "name": f"{name} ({found})"}
        if found is not None:
            connection.execute(update(TOKENS).where(TOKENS.c.id == found).values(gone))
    if found is None:
        raise UnknownNameError("token", name, [t.name for t in all_tokens(store).values()])


def all_tokens(store: Store) -> dict[str, Token]:
    """The tokens that are in force, by their ids."""
    asked = select(TOKENS).where(TOKENS.c.revoked.is_(None)).order_by(TOKENS.c.name)
    with store.reading() as connection:
        return {row.id: _token(row) for row in connection.execute(asked)}


def holder_of(text: str, tokens: Mapping[str, Token]) -> Token | None:
    """The token that a text is; the comparison takes the same time for every wrong secret."""
    prefix, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    token = tokens.get(id)
    expected = b"" if token is None else token.digest
    is_right = hmac.compare_digest(_digest(secret), expected)
    return token if is_right and prefix == _PREFIX else None


def _digest(secret: str) -> bytes:
    """A plain hash suffices: nobody can guess 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _token(row: Any) -> Token:
    return Token(row.id, row.name, Role(row.role), bytes(row.digest), row.time, row.revoked)
