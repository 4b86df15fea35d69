"""What a `site.toml` says in `[accounts]` and `[audit]`: roles, trusted proxies, limits."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

from discreet.errors import ParameterError
from discreet.serve.site.sections import setting

Who = Literal["open", "tokens", "proxy"]
_MOST_HOURS = 8_760
UNKNOWN = "unknown"
"""The address of a client that cannot be told."""


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
    jobs: int = setting(3, "Expensive tables of one visitor that wait or are made at a time.")
    session_hours: float = setting(8.0, "How long a visitor stays signed in.")

    def __post_init__(self) -> None:
        if self.who == "proxy" and not self.trusted_proxies:
            raise ParameterError(
                "[accounts] who = 'proxy' needs trusted_proxies: the addresses whose header is "
                "believed. Anybody else could write the header too."
            )
        is_session = 0 < self.session_hours <= _MOST_HOURS
        if self.rate < 0 or self.burst < 1 or self.jobs < 1 or not is_session:
            raise ParameterError(
                "[accounts] needs rate >= 0, burst >= 1, jobs >= 1 and session_hours above 0, at "
                f"most {_MOST_HOURS:,} (a year); got {self.rate:g}, {self.burst}, {self.jobs} and "
                f"{self.session_hours:g}."
            )
        if Proxies(self.trusted_proxies).are_all:
            raise ParameterError(
                "trusted_proxies of [accounts] holds a network of all addresses, so everybody "
                "could write the headers of a proxy. Name the addresses of the proxies."
            )

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
    keep_entries: int = setting(0, "Most entries that are kept; 0 sets no limit.")

    def __post_init__(self) -> None:
        if not self.store.strip():
            raise ParameterError("store of [audit] must name a file or a PostgreSQL address.")
        if self.keep_days < 0:
            raise ParameterError(f"keep_days of [audit] must not be negative: {self.keep_days}.")
        if self.keep_entries < 0:
            raise ParameterError(
                f"keep_entries of [audit] must not be negative: {self.keep_entries}."
            )

    def address(self, folder: Path) -> str:
        """The database; a file is relative to the folder of the site."""
        return self.store if "://" in self.store else str(folder / self.store)


class Role(StrEnum):
    """What a visitor may do; each role may do what those before it may.

    A viewer asks for tables of open data sets, an analyst also for those that are meant for
    analysts, a custodian sees the admin page.
    """

    viewer = "viewer"
    analyst = "analyst"
    custodian = "custodian"

    def covers(self, needed: Role) -> bool:
        """Whether this role may do what the other may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(needed)


@dataclass(frozen=True)
class Visitor:
    """Who asks.

    Attributes:
      id: The name of the account, or a pseudonym for the day.
      role: What the visitor may do.
      is_known: Whether there is an account behind the id.
    """

    id: str
    role: Role = Role.viewer
    is_known: bool = False


ANYBODY = Visitor("anybody")


class Proxies:
    """The proxies in front of a site.

    Args:
      trusted: Addresses or networks, such as `127.0.0.1` or `10.0.0.0/8`. What any other machine
        says about itself in headers is not believed.
    """

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks = []
        for text in trusted:
            try:
                self._networks.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                raise ParameterError(
                    f"trusted_proxies must be addresses or networks such as 127.0.0.1 or "
                    f"10.0.0.0/8, got {text!r}."
                ) from None

    @property
    def are_all(self) -> bool:
        """Whether some network holds every address."""
        return any(network.prefixlen == 0 for network in self._networks)

    def trust(self, address: str) -> bool:
        """Whether an address is that of a trusted proxy."""
        try:
            found = _parse_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)

    def client(self, peer: str, headers: Mapping[str, str]) -> str:
        """The address a request comes from: the last one that no trusted proxy has."""
        if not self.trust(peer):
            return peer
        chain = [_without_port(part) for part in headers.get("x-forwarded-for", "").split(",")]
        for address in reversed([part for part in chain if part]):
            if not self.trust(address):
                try:
                    return str(_parse_address(address))
                except ValueError:  # a client may write whatever it likes into the header
                    return UNKNOWN
        return peer


def _without_port(text: str) -> str:
    """An address as proxies write it: `192.0.2.1`, `192.0.2.1:4711`, `[2001:db8::1]:4711`."""
    found = text.strip()
    if found.startswith("["):
        return found[1:].partition("]")[0]
    return found.partition(":")[0] if found.count(":") == 1 else found


def subscriber_network(address: str) -> str:
    """What limits are set on: one address, or the network that a subscriber has in IPv6."""
    try:
        found = _parse_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    return str(ipaddress.ip_network((found, 64), strict=False))


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address; one of IPv4 also where a socket of IPv6 writes it, `::ffff:192.0.2.1`."""
    found = ipaddress.ip_address(text)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
