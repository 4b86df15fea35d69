"""What the table builder says no to, and how it says so.

A refusal depends on public or already protected things alone: names, the number of variables and
cells of the public design, and protected values. It always says what would be allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError, ParameterError

if TYPE_CHECKING:
    from discreet.serve.query import Query

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
            "offers": [
                {"label": label, "address": query.address} for label, query in refusal.offers
            ],
        }
    }
