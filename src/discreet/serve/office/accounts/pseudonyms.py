"""Names for visitors without an account: the same all day, unrelated on the next."""

from __future__ import annotations

import hashlib
import os
from datetime import date

from discreet.serve.office.accounts.secrets import salt_of
from discreet.serve.office.audit.entry import now
from discreet.serve.office.store.store import Store

_BYTES = 6


class Pseudonyms:
    """Pseudonyms of network addresses.

    Promise: within a day the same address has the same name in all processes that share a database.
    The salt is replaced every day, and then no name can be traced to an address, by the office
    neither.

    Args:
      store: Where the salt of the day is kept; without it each process has a salt of its own.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._day: date | None = None
        self._salt = b""

    def of(self, address: str) -> str:
        """The name of an address."""
        today = now().date()
        if today != self._day:
            self._salt = os.urandom(32) if self._store is None else salt_of(self._store, today)
            self._day = today
        keyed = hashlib.blake2b(address.encode(), key=self._salt, digest_size=_BYTES)
        return f"visitor-{keyed.hexdigest()}"
