"""A visitor and what the visitor may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
