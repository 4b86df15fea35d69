"""Secrets that all processes of a site share, kept in the office's database."""

from __future__ import annotations

import secrets
from datetime import date

from sqlalchemy import delete, insert, select

from discreet.serve.office.audit.entry import now
from discreet.serve.office.store.schema import SECRETS
from discreet.serve.office.store.store import Store

_BYTES = 32
SIGNING, PSEUDONYMS = "signing", "pseudonyms"


def signing_key(store: Store) -> bytes:
    """The key that signs sessions and forms; made once."""
    return _kept(store, SIGNING, None)


def salt_of(store: Store, day: date) -> bytes:
    """The salt of one day's pseudonyms; it is lost with the day."""
    return _kept(store, PSEUDONYMS, day)


def _kept(store: Store, name: str, day: date | None) -> bytes:
    """The secret of this name, made anew where there is none, or only one of an earlier day."""
    with store.reading() as connection:
        found = connection.execute(select(SECRETS).where(SECRETS.c.name == name)).first()
    if found is not None and (day is None or found.day >= day):
        return bytes(found.value)
    with store.writing() as connection:
        present = connection.execute(
            select(SECRETS).where(SECRETS.c.name == name).with_for_update()
        ).first()
        if present is not None and (day is None or present.day >= day):
            return bytes(present.value)
        value = secrets.token_bytes(_BYTES)
        connection.execute(delete(SECRETS).where(SECRETS.c.name == name))
        row = {"name": name, "day": day or now().date(), "value": value}
        connection.execute(insert(SECRETS).values(row))
        return value
