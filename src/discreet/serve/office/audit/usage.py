"""What the audit log says about the use of a site."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Select, case, distinct, func, select

from discreet.release.formats.columns import inert_text
from discreet.serve.office.audit.entry import COLUMNS, OK, now
from discreet.serve.office.store.schema import AUDIT
from discreet.serve.office.store.store import Store

_AT_ONCE = 1_000
_C = AUDIT.c
_IS_QUESTION = _C.kind != "admin"
_IS_OK = case((_C.outcome == OK, 1), else_=0)


@dataclass(frozen=True)
class Day:
    """The use of one day."""

    day: date
    questions: int
    refused: int
    visitors: int
    milliseconds: float


@dataclass(frozen=True)
class Usage:
    """The use of a site since a day.

    Attributes:
      since: The first moment that is counted.
      days: Questions, refusals, visitors and mean time of each day.
      refusals: How often each reason was given, by data set: (data set, reason, number).
      slowest: The slowest questions: (data set, address, milliseconds).
      tables: What was asked most: (data set, address, number).
    """

    since: datetime
    days: tuple[Day, ...]
    refusals: tuple[tuple[str, str, int], ...]
    slowest: tuple[tuple[str, str, float], ...]
    tables: tuple[tuple[str, str, int], ...]


def usage(store: Store, days: int = 30, most: int = 10) -> Usage:
    """The use of the last days.

    Args:
      store: The office's database.
      days: How far back.
      most: How many slow and frequent questions are listed.
    """
    since = (now() - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    number, slowest = func.count(), func.max(_C.milliseconds)
    table, is_ok = (_C.dataset, _C.address), _C.outcome == OK
    ranked = (
        _ranked(number, (_C.dataset, _C.outcome), since, ~is_ok),
        _ranked(slowest, table, since).limit(most),
        _ranked(number, table, since, is_ok).limit(most),
    )
    with store.reading() as connection:
        return Usage(
            since,
            tuple(_day(row) for row in connection.execute(_by_day(since))),
            *(tuple(map(tuple, connection.execute(asked).all())) for asked in ranked),
        )


def _by_day(since: datetime) -> Select[Any]:
    day = func.date(_C.time)
    refused = func.count() - func.sum(_IS_OK)
    figures = (func.count(), refused, func.count(distinct(_C.visitor)), func.avg(_C.milliseconds))
    return select(day, *figures).where(_C.time >= since, _IS_QUESTION).group_by(day).order_by(day)


def _day(row: Any) -> Day:
    day, questions, refused, visitors, milliseconds = row
    found = date.fromisoformat(day) if isinstance(day, str) else day
    return Day(found, int(questions), int(refused), int(visitors), float(milliseconds))


def _ranked(figure: Any, by: Sequence[Any], since: datetime, *only: Any) -> Select[Any]:
    """Questions since a day in groups, those with the largest figure first."""
    asked = select(*by, figure).where(_C.time >= since, _IS_QUESTION, *only)
    return asked.group_by(*by).order_by(figure.desc(), *by)


def exported(store: Store, since: datetime | None = None) -> Iterator[str]:
    """The log as lines of a CSV file, oldest entry first."""
    yield _line(COLUMNS)
    asked = select(*(_C[name] for name in COLUMNS)).order_by(_C.time, _C.id)
    if since is not None:
        asked = asked.where(_C.time >= since, _IS_QUESTION)
    with store.reading() as connection:
        for row in connection.execution_options(yield_per=_AT_ONCE).execute(asked):
            yield _line([row[0].isoformat(timespec="milliseconds") + "Z", *row[1:]])


def _line(values: Any) -> str:
    """One line; a text that a spreadsheet would run as a formula is disarmed."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        [inert_text(v) if isinstance(v, str) else v for v in values]
    )
    return text.getvalue()
