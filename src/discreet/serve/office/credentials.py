"""Tokens, signed sessions and pseudonyms, and the secrets behind them that all processes share."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from discreet.errors import ParameterError, UnknownNameError
from discreet.serve.office.audit import now
from discreet.serve.office.config import Role, Visitor
from discreet.serve.office.database import (
    ENDED_SESSIONS,
    SECRETS,
    TOKENS,
    DatabaseError,
    OfficeDatabase,
)

_PREFIX = "discreet"
_ID_BYTES = 6
_SECRET_BYTES = 32
_LONGEST_NAME = 60
_SEPARATOR = "."
_OF_SESSION = ":"
_LONG_SESSION = timedelta(days=7)


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


def add_token(store: OfficeDatabase, name: str, role: Role) -> str:
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
    except DatabaseError as error:
        if isinstance(error.__cause__, IntegrityError):
            raise ParameterError(f"there is a token named {name!r}; revoke it first.") from None
        raise
    return "_".join((_PREFIX, id, secret))


def revoke_token(store: OfficeDatabase, name: str) -> None:
    """Make a token worthless; its name can be used again."""
    active = (TOKENS.c.name == name) & TOKENS.c.revoked.is_(None)
    with store.writing() as connection:
        found = connection.execute(select(TOKENS.c.id).where(active)).scalar()
        gone = {"revoked": now(), "name": f"{name} ({found})"}
        if found is not None:
            connection.execute(update(TOKENS).where(TOKENS.c.id == found).values(gone))
    if found is None:
        raise UnknownNameError("token", name, [t.name for t in all_tokens(store).values()])


def all_tokens(store: OfficeDatabase) -> dict[str, Token]:
    """The tokens that are in force, by their ids."""
    asked = select(TOKENS).where(TOKENS.c.revoked.is_(None)).order_by(TOKENS.c.name)
    with store.reading() as connection:
        return {
            row.id: Token(
                row.id, row.name, Role(row.role), bytes(row.digest), row.time, row.revoked
            )
            for row in connection.execute(asked)
        }


def find_token(text: str, tokens: Mapping[str, Token]) -> Token | None:
    """The token that a text is; the comparison takes the same time for every wrong secret."""
    prefix, _, rest = text.partition("_")
    id, _, secret = rest.partition("_")
    token = tokens.get(id)
    expected = b"" if token is None else token.digest
    is_right = hmac.compare_digest(_digest(secret), expected)
    return token if is_right and prefix == _PREFIX else None


def new_session(token: Token) -> str:
    """What a session's cookie says: whose token it is, and which session of many."""
    return f"{token.id}{_OF_SESSION}{secrets.token_hex(8)}"


def token_of(session: str) -> str:
    """The id of the token that a session was begun with."""
    return session.partition(_OF_SESSION)[0]


def end_session(store: OfficeDatabase, session: str) -> None:
    """Make a session worthless, whoever has a copy of its cookie."""
    name = hashlib.blake2b(session.encode(), digest_size=16).hexdigest()
    with store.writing() as connection:
        connection.execute(delete(ENDED_SESSIONS).where(ENDED_SESSIONS.c.id == name))
        connection.execute(insert(ENDED_SESSIONS).values(id=name, time=now()))


def is_ended(session: str, ended: Collection[str]) -> bool:
    """Whether a session is among those that were ended."""
    return hashlib.blake2b(session.encode(), digest_size=16).hexdigest() in ended


def ended_sessions(store: OfficeDatabase, hours: float) -> frozenset[str]:
    """Sessions that were ended and would still be in force; older ones are at their end anyway.

    Sessions may be older than the site's file allows now, so those of a week are known at least.
    """
    since = now() - max(timedelta(hours=hours), _LONG_SESSION)
    asked = select(ENDED_SESSIONS.c.id).where(ENDED_SESSIONS.c.time >= since)
    with store.reading() as connection:
        return frozenset(connection.execute(asked).scalars())


def _digest(secret: str) -> bytes:
    """A plain hash suffices: nobody can guess 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def signing_key(store: OfficeDatabase) -> bytes:
    """The key that signs sessions and forms; made once."""
    return _shared_secret(store, "signing", None)


def _shared_secret(store: OfficeDatabase, name: str, day: date | None) -> bytes:
    """The secret of this name, made anew where there is none, or only one of an earlier day."""
    with store.reading() as connection:
        found = connection.execute(select(SECRETS).where(SECRETS.c.name == name)).first()
    if found is not None and (day is None or found.day >= day):
        return bytes(found.value)
    # Another process may make it meanwhile, so it is looked up again behind the lock.
    with store.writing() as connection:
        present = connection.execute(
            select(SECRETS).where(SECRETS.c.name == name).with_for_update()
        ).first()
        if present is not None and (day is None or present.day >= day):
            return bytes(present.value)
        value = secrets.token_bytes(_SECRET_BYTES)
        connection.execute(delete(SECRETS).where(SECRETS.c.name == name))
        row = {"name": name, "day": day or now().date(), "value": value}
        connection.execute(insert(SECRETS).values(row))
        return value


class Signer:
    """Signs texts for a purpose; what was signed for one purpose is no good for another.

    Args:
      key: The key, which all processes of a site share.
      purpose: What the texts are for.
    """

    def __init__(self, key: bytes, purpose: str) -> None:
        self._key = hmac.new(key, purpose.encode(), hashlib.sha256).digest()

    def sign(self, text: str, seconds: float) -> str:
        """The text with its end and its signature, in letters that a cookie can hold."""
        body = _encode(f"{int(time.time() + seconds)}{_SEPARATOR}{text}".encode())
        return f"{body}{_SEPARATOR}{self._signature(body)}"

    def read(self, signed: str) -> str | None:
        """The text, where the signature is ours and the end has not come."""
        body, _, signature = signed.partition(_SEPARATOR)
        # The signature first: nothing that a stranger wrote is decoded.
        if not hmac.compare_digest(self._signature(body).encode(), signature.encode()):
            return None
        end, _, text = _decode(body).partition(_SEPARATOR)
        return text if end.isdigit() and int(end) > time.time() else None

    def _signature(self, body: str) -> str:
        return _encode(hmac.new(self._key, body.encode(), hashlib.sha256).digest())


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decode(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return ""


class Pseudonyms:
    """Pseudonyms of network addresses.

    Promise: within a day the same address has the same name in all processes that share a database.
    The salt is replaced every day, and then no name can be traced to an address, by the office
    neither.

    Args:
      store: Where the salt of the day is kept; without it each process has a salt of its own.
    """

    def __init__(self, store: OfficeDatabase | None = None) -> None:
        self._store = store
        self._day: date | None = None
        self._salt = b""

    def of(self, address: str) -> str:
        """The name of an address."""
        today = now().date()
        if today != self._day:
            self._salt = os.urandom(_SECRET_BYTES)
            if self._store is not None:
                self._salt = _shared_secret(self._store, "pseudonyms", today)
            self._day = today
        keyed = hashlib.blake2b(address.encode(), key=self._salt, digest_size=6)
        return f"visitor-{keyed.hexdigest()}"
