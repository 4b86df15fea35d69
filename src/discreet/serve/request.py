"""What is known of a request: who asks, what the audit log is told, and our own cookies.

Reading a header of many cookies or of quoted ones can take seconds, so all but our own two are
dropped before anybody reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from discreet.serve.refusals import refusal_of

_UNDER_WAY: ContextVar[RequestNote | None] = ContextVar("note", default=None)
SESSION = "discreet_session"
LANGUAGE = "lang"
_OWN = re.compile(rf"({SESSION}|{LANGUAGE})=([A-Za-z0-9_.-]{{1,400}})".encode())
_NAME = b"cookie"
Header = tuple[bytes, bytes]


@dataclass
class RequestNote:
    """What is known of the question under way.

    Attributes:
      role: The role of who asks.
      dataset: The data set that was asked.
      edition: Its edition.
      address: The question as an address.
      cells: How many cells the answer shows.
      outcome: The code of the refusal, where there is no answer.
    """

    role: str = "viewer"
    dataset: str = ""
    edition: str = ""
    address: str = ""
    cells: int = 0
    outcome: str = ""


@contextmanager
def note_request(role: str) -> Iterator[RequestNote]:
    """A note for one request; work that other threads do for the request writes to it, too."""
    note = RequestNote(role)
    token = _UNDER_WAY.set(note)
    try:
        yield note
    finally:
        _UNDER_WAY.reset(token)


@contextmanager
def note_question(dataset: str, edition: str, address: str) -> Iterator[RequestNote]:
    """Note what is asked and how it ends; of several questions in one request the first counts."""
    under_way = _UNDER_WAY.get()
    is_first = under_way is not None and not under_way.dataset
    note = under_way if under_way is not None and is_first else RequestNote()
    note.dataset, note.edition, note.address = dataset, edition, address
    try:
        yield note
    except Exception as error:
        note.outcome = refusal_of(error).code
        raise


def current_note() -> RequestNote | None:
    """The note of the request under way."""
    return _UNDER_WAY.get()


def role_of_visitor() -> str:
    """The role of who asks; outside of requests it is the office itself."""
    note = _UNDER_WAY.get()
    return "custodian" if note is None else note.role


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
