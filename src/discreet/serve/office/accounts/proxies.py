"""Where a request comes from, and whom a trusted proxy vouches for."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

from discreet.errors import ParameterError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
UNKNOWN = "unknown"


class Proxies:
    """The proxies in front of a site.

    Args:
      trusted: Addresses or networks, such as `127.0.0.1` or `10.0.0.0/8`. What any other machine
        says about itself in headers is not believed.
    """

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._networks = tuple(_network(text) for text in trusted)

    def trust(self, address: str) -> bool:
        """Whether an address is that of a trusted proxy."""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)

    def client(self, peer: str, headers: Mapping[str, str]) -> str:
        """The address a request comes from: the last one that no trusted proxy has."""
        if not self.trust(peer):
            return peer
        chain = [part.strip() for part in headers.get("x-forwarded-for", "").split(",")]
        for address in reversed([part for part in chain if part]):
            if not self.trust(address):
                return _plain(address)
        return peer


def household(address: str) -> str:
    """What limits are set on: one address, or the network that a subscriber has in IPv6."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ParameterError(
            f"trusted_proxies must be addresses or networks such as 127.0.0.1 or 10.0.0.0/8, "
            f"got {text!r}."
        ) from None


def _plain(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return UNKNOWN
