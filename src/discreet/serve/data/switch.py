"""Whether a data set answers, and whom; the office can change it at any time."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.serve.noted import role_of_visitor
from discreet.serve.refusals import Refusal


@dataclass(eq=False)
class Switch:
    """The switch of one data set.

    Attributes:
      is_closed: Whether the office has closed it.
      for_analysts: Whether viewers get no tables of it.
    """

    is_closed: bool = False
    for_analysts: bool = False

    def is_open_to(self, role: str) -> bool:
        """Whether visitors with this role get tables."""
        return not self.is_closed and not (self.for_analysts and role == "viewer")

    def check(self, title: str) -> None:
        """Refuse a question that the switch does not allow."""
        if self.is_closed:
            message = f"{title} is closed at the moment."
            raise Refusal("closed", message, "Other data sets, or this one later.", 403)
        if not self.is_open_to(role_of_visitor()):
            message = f"{title} is for analysts."
            raise Refusal("not_allowed", message, "Other data sets, or sign in as an analyst.", 403)
