"""What a `site.toml` says in `[accounts]` and `[audit]`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from discreet.errors import ParameterError
from discreet.serve.office.accounts.proxies import Proxies
from discreet.serve.office.accounts.visitor import Role
from discreet.serve.site.sections import setting

Who = Literal["open", "tokens", "proxy"]


@dataclass(frozen=True)
class AccountsConfig:
    """Who may ask, and how often."""

    who: Who = setting("open", "Who may ask: open (anybody), tokens, or proxy (its header).")
    header: str = setting("X-Remote-User", "Header in which a proxy names its user.")
    trusted_proxies: tuple[str, ...] = setting((), "Addresses or networks of proxies.")
    analysts: tuple[str, ...] = setting((), "Users of the proxy who are analysts.")
    custodians: tuple[str, ...] = setting((), "Users of the proxy who are custodians.")
    analysts_only: tuple[str, ...] = setting((), "Data sets of which viewers get no tables.")
    rate: float = setting(10.0, "Requests a second of one visitor; 0 sets no limit.")
    burst: int = setting(100, "Requests at once of one visitor.")
    session_hours: float = setting(8.0, "How long a visitor stays signed in.")

    def __post_init__(self) -> None:
        if self.who == "proxy" and not self.trusted_proxies:
            raise ParameterError(
                "[accounts] who = 'proxy' needs trusted_proxies: the addresses whose header is "
                "believed. Anybody else could write the header too."
            )
        if self.rate < 0 or self.burst < 1 or self.session_hours <= 0:
            raise ParameterError(
                "[accounts] needs rate >= 0, burst >= 1 and session_hours > 0; got "
                f"{self.rate:g}, {self.burst} and {self.session_hours:g}."
            )
        Proxies(self.trusted_proxies)

    def role_of(self, user: str) -> Role:
        """The role of a user that the proxy names."""
        if user in self.custodians:
            return Role.custodian
        return Role.analyst if user in self.analysts else Role.viewer


@dataclass(frozen=True)
class AuditConfig:
    """Where questions are written down, and for how long."""

    store: str = setting("office.db", "An SQLite file, or postgresql://user@host/database.")
    keep_days: int = setting(400, "Days after which entries are forgotten; 0 keeps them.")

    def __post_init__(self) -> None:
        if not self.store.strip():
            raise ParameterError("store of [audit] must name a file or a PostgreSQL address.")
        if self.keep_days < 0:
            raise ParameterError(f"keep_days of [audit] must not be negative: {self.keep_days}.")

    def address(self, folder: Path) -> str:
        """The database; a file is relative to the folder of the site."""
        return self.store if "://" in self.store else str(folder / self.store)
