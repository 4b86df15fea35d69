"""Periods: records of several times in one place, each period an edition of its own.

Nobody is counted twice: records of several periods are never counted together, so no table has a
total over periods, and what series tell is decided by the mode of editions.
"""

from __future__ import annotations

from typing import Any

from discreet.design.codes import natural_order
from discreet.errors import DataError, check_known
from discreet.records.backend import fetch
from discreet.records.recode import text_of

_LISTED = 5  # periods that a message names


def list_periods(backend: Any, table: Any, time: str, origin: str) -> list[str]:
    """The periods of records in their order; a record without one is an error.

    Args:
      backend: The back end that holds the records.
      table: The records.
      time: The column that says which period a record is of.
      origin: What the records came from, for people.
    """
    check_known("column", [time], table.columns)
    found = table.group_by(period=text_of(table[time])).aggregate(n=table.count())
    periods = fetch(backend, found, origin).column("period").to_pylist()
    if None in periods:
        raise DataError(f"some records of {origin} have no {time!r}, so their period is unknown.")
    return [*natural_order(periods)]


def at_period(backend: Any, table: Any, time: str, period: str, origin: str) -> Any:
    """The records of one period."""
    known = list_periods(backend, table, time, origin)
    check_known(f"period of {time!r}", [period], known)
    return table.filter(text_of(table[time]) == period)


def require_one_period(backend: Any, table: Any, time: str, origin: str) -> None:
    """Refuse records of several periods, which would be counted together."""
    periods = list_periods(backend, table, time, origin)
    if len(periods) > 1:
        listed = ", ".join(periods[:_LISTED]) + (", …" if len(periods) > _LISTED else "")
        raise DataError(
            f"{origin} has records of {len(periods)} periods of {time!r} ({listed}), which are "
            f"never counted together. Open one of them, `period={periods[-1]!r}` or --period "
            f"{periods[-1]}, or publish all of them, each as an edition, with `discreet publish`."
        )
