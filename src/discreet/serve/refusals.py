"""What the table builder says no to, and how it says so.

A refusal depends on public or already protected things alone: names, the number of variables and
cells of the public design, and protected values. It always says what would be allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    def offers_json(self) -> list[dict[str, str]]:
        """The offers as plain data."""
        return [{"label": label, "address": query.address} for label, query in self.offers]


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
