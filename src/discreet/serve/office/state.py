"""What the office has decided, as the database says now: closed data sets, tokens, reloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import delete, func, insert, select

from discreet.serve.office.accounts.tokens import Token, all_tokens
from discreet.serve.office.audit.entry import now
from discreet.serve.office.store.schema import RELOADS, SWITCHES
from discreet.serve.office.store.store import Store


@dataclass(frozen=True)
class State:
    """The office's decisions.

    Attributes:
      closed: Data sets that are closed.
      reloads: How often the site was to be read again.
      tokens: The tokens in force, by their ids.
    """

    closed: frozenset[str] = frozenset()
    reloads: int = 0
    tokens: Mapping[str, Token] = field(default_factory=dict)


def read_state(store: Store) -> State:
    """The decisions of this moment."""
    with store.reading() as connection:
        is_closed = SWITCHES.c.is_closed.is_(True)
        closed = connection.execute(select(SWITCHES.c.dataset).where(is_closed)).scalars()
        reloads = connection.execute(select(func.count()).select_from(RELOADS)).scalar_one()
        found = frozenset(closed), int(reloads)
    return State(*found, all_tokens(store))


def set_closed(store: Store, dataset: str, is_closed: bool, visitor: str) -> None:
    """Close or open a data set, in all processes that share the database."""
    row = {"dataset": dataset, "is_closed": is_closed, "time": now(), "visitor": visitor}
    with store.writing() as connection:
        connection.execute(delete(SWITCHES).where(SWITCHES.c.dataset == dataset))
        connection.execute(insert(SWITCHES).values(row))


def ask_for_reload(store: Store, visitor: str) -> None:
    """Have all processes read the site's file again."""
    with store.writing() as connection:
        connection.execute(insert(RELOADS).values(time=now(), visitor=visitor))
