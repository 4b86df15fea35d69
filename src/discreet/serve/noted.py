"""What is noted of a question while it is answered: for the audit log, and who asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from discreet.serve.refusals import refusal_of


@dataclass
class Note:
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


@contextmanager
def answering(dataset: str, edition: str, address: str) -> Iterator[Note]:
    """Note what is asked and how it ends; of several questions in one request the first counts."""
    under_way = _UNDER_WAY.get()
    is_first = under_way is not None and not under_way.dataset
    note = under_way if under_way is not None and is_first else Note()
    note.dataset, note.edition, note.address = dataset, edition, address
    try:
        yield note
    except Exception as error:
        note.outcome = refusal_of(error).code
        raise


def under_way() -> Note | None:
    """The note of the request under way."""
    return _UNDER_WAY.get()


def role_of_visitor() -> str:
    """The role of who asks; outside of requests it is the office itself."""
    note = _UNDER_WAY.get()
    return "custodian" if note is None else note.role
