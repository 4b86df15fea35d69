"""Cookies as visitors send them: a request keeps the two that are ours.

Reading a header of many cookies or of quoted ones can take seconds, so everything else is dropped
before anybody reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SESSION = "discreet_session"
LANGUAGE = "lang"
_OWN = re.compile(rf"({SESSION}|{LANGUAGE})=([A-Za-z0-9_.-]{{1,400}})".encode())
_NAME = b"cookie"
Header = tuple[bytes, bytes]


def with_own_cookies(headers: Iterable[Header]) -> list[Header]:
    """The headers with our own cookies alone; of one that comes twice the first is kept."""
    given = list(headers)
    found: dict[bytes, bytes] = {}
    for name, value in given:
        for part in value.split(b";") if name == _NAME else ():
            own = _OWN.fullmatch(part.strip())
            if own is not None:
                found.setdefault(own[1], own[0])
    others = [header for header in given if header[0] != _NAME]
    return [*others, (_NAME, b"; ".join(found.values()))] if found else others
