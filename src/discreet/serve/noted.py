"""What is noted of a question while it is answered: for the audit log, and who asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Note:
    """What is known of the question under way.

    Attributes:
      role: The role of who asks.
      dataset: The data set that was asked.
      edition: Its edition.
      address: The question as an address.
      cells: How many cells the answer shows.
    """

    role: str = "viewer"
    dataset: str = ""
    edition: str = ""
    address: str = ""
    cells: int = 0


_UNDER_WAY: ContextVar[Note | None] = ContextVar("note", default=None)


@contextmanager
def noting(role: str) -> Iterator[Note]:
    """A note for one request; work that other threads do for the request writes to it, too."""
    note = Note(role)
    token = _UNDER_WAY.set(note)
    try:
        yield note
    finally:
        _UNDER_WAY.reset(token)


def noted(dataset: str, edition: str, address: str, cells: int = 0) -> None:
    """Note what is asked, where somebody takes notes."""
    note = _UNDER_WAY.get()
    if note is not None:
        note.dataset, note.edition, note.address, note.cells = dataset, edition, address, cells


def role_of_visitor() -> str:
    """The role of who asks; outside of requests it is the office itself."""
    note = _UNDER_WAY.get()
    return "custodian" if note is None else note.role
