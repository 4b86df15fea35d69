"""The one way to fail, and what is noted of a request on its way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import DiscreetError, ParameterError, suggest

if TYPE_CHECKING:
    from discreet.serve.query import Query


T = TypeVar("T", bound=str)
GENERIC = "Something went wrong on our side. Nothing was published. Please try again later."


class Refusal(ParameterError):
    """A request that is not answered with a table.

    Args:
      code: A short name for machines.
      message: What was asked and why it is refused.
      allowed: What would be allowed.
      status: The HTTP status.
      offers: Tables near to the one asked for that would be answered, with a label each.
      wait: Seconds after which the same request may be answered; 0 where waiting does not help.
    """

    is_public = True

    def __init__(
        self,
        code: str,
        message: str,
        allowed: str,
        status: int = 400,
        offers: Sequence[tuple[str, Query]] = (),
        wait: float = 0,
    ) -> None:
        self.code, self.allowed, self.status = code, allowed, status
        self.offers, self.wait = tuple(offers), wait
        super().__init__(message)

    @property
    def is_too_large(self) -> bool:
        """Whether a smaller table would be answered, which PxWeb calls forbidden."""
        return self.code in ("too_many_cells", "too_many_variables")

    @property
    def offers_json(self) -> list[dict[str, str]]:
        """The offers as plain data."""
        return [{"label": label, "address": query.address} for label, query in self.offers]


class Queued(Refusal):
    """A table that is made in the queue, since it would keep its visitor waiting.

    Args:
      dataset: The data set.
      edition: Its edition.
      details: The crossing that is made.
      unit: What is counted.
      query: What was asked.
      seconds: What it costs, by its price.
    """

    def __init__(
        self,
        dataset: str,
        edition: str,
        details: tuple[str, ...],
        unit: str,
        query: Query,
        seconds: float,
    ) -> None:
        self.dataset, self.edition, self.details, self.unit = dataset, edition, details, unit
        self.query, self.seconds = query, seconds
        message = (
            f"This table takes about {max(1, round(seconds)):,} seconds, so it waits its turn."
        )
        allowed = "The same address in a while, or a smaller table."
        # Programs that do not know the code take a success for the table, hence a status of error.
        super().__init__("queued", message, allowed, 503, wait=min(max(seconds, 2.0), 60.0))


def one_of(name: str, value: str, allowed: Sequence[T]) -> T:
    """The value as one of those that are allowed.

    Raises:
      Refusal: It is none of them.
    """
    for known in allowed:
        if known == value:
            return known
    shown = ", ".join(v for v in allowed if v)
    raise Refusal("unknown_value", f"{name} cannot be {value!r}.", f"One of {shown}.")


def no_such(
    what: str,
    name: str,
    known: Iterable[str],
    of: str = "",
    *,
    code: str = "unknown_name",
    allowed: str = "",
    status: int = 400,
) -> Refusal:
    """A name that there is not, with the one that was perhaps meant.

    Args:
      what: What it would name, `"variable"`.
      name: The name.
      known: Those there are.
      of: What these are called, `"Variables"`.
      code: A short name for machines.
      allowed: What would be allowed; the names there are if empty.
      status: The HTTP status.
    """
    listed = list(known)
    message = f"There is no {what} {name!r}. {suggest(name, listed)}"
    return Refusal(code, message, allowed or f"{of}: {', '.join(listed)}.", status)


def malformed_request(errors: Iterable[Any], status: int) -> Refusal:
    """A request of the wrong form, as pydantic describes it."""
    names = sorted({str(e["loc"][-1]) for e in errors if e.get("loc")})
    message = f"The request cannot be read: {', '.join(names)}."
    return Refusal("unreadable", message, "See /api/ for what can be asked.", status)


def refusal_of(error: Exception) -> Refusal:
    """Any error as a refusal that may be shown to the public."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, DiscreetError):
        status = getattr(error, "status", 500)  # an error may know better
        if status == 503:
            return Refusal("unavailable", error.public(), "The same request, a little later.", 503)
        return Refusal("not_possible", error.public(), "Choose other variables.", status)
    return Refusal("internal", GENERIC, "Every table that the pages offer.", 500)


def as_json(refusal: Refusal) -> dict[str, Any]:
    """The one shape of an error."""
    return {
        "error": {
            "code": refusal.code,
            "message": refusal.public(),
            "what_is_allowed": refusal.allowed,
            "offers": refusal.offers_json,
        }
    }


PROBLEM = "application/problem+json"


def as_problem(refusal: Refusal, address: str) -> dict[str, Any]:
    """An error as problem details, as PxWebApi 2 has them."""
    status = 403 if refusal.is_too_large else refusal.status
    return {
        "type": f"urn:discreet:{refusal.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": f"{refusal.public()} {refusal.allowed}",
        "instance": address,
        "offers": refusal.offers_json,
    }


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
      visitor: Who asks.
      seat: What the request occupies until its answer is written.
    """

    role: str = "viewer"
    dataset: str = ""
    edition: str = ""
    address: str = ""
    cells: int = 0
    outcome: str = ""
    visitor: str = ""
    seat: ExitStack = field(default_factory=ExitStack, compare=False, repr=False)


_UNDER_WAY: ContextVar[RequestNote | None] = ContextVar("note", default=None)
SESSION = "discreet_session"
LANGUAGE = "lang"
_OWN = re.compile(rf"({SESSION}|{LANGUAGE})=([A-Za-z0-9_.-]{{1,400}})".encode())
_NAME = b"cookie"
Header = tuple[bytes, bytes]


@contextmanager
def note_request(role: str, visitor: str) -> Iterator[RequestNote]:
    """A note for one request; work that other threads do for the request writes to it, too."""
    note = RequestNote(role, visitor=visitor)
    token = _UNDER_WAY.set(note)
    try:
        yield note
    finally:
        note.seat.close()
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


def asking_visitor() -> str:
    """Who asks; outside of requests nobody."""
    note = _UNDER_WAY.get()
    return "" if note is None else note.visitor


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
