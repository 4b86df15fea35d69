"""The audit log: who asked for what and how it ended, never a figure."""

from __future__ import annotations

import asyncio
import csv
import io
import logging
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, fields
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Select, case, delete, distinct, func, insert, select

from discreet.release.formats.columns import inert_text
from discreet.serve.office.database import AUDIT, TURN_SECONDS, DatabaseError, OfficeDatabase

Kind = Literal["table", "download", "api", "admin"]
OK = "ok"
_LONGEST = {
    "visitor": 80,
    "dataset": 80,
    "edition": 80,
    "address": 2_000,
    "kind": 20,
    "outcome": 40,
}
_MOST_AT_ONCE = 1_000  # entries that one transaction writes, or that one page of an export reads
_FORGET_EVERY = timedelta(hours=1)
# A clock is believed as far back as entries follow each other without a longer gap: one that was
# 500 days ahead erased all entries but one, or did so after a restart.
_LONGEST_REST = timedelta(days=31)
_log = logging.getLogger("discreet.serve")
_STOP_SECONDS = 30.0
_Waiting = tuple["AuditEntry", "Future[None]"]
_C = AUDIT.c
_IS_QUESTION = _C.kind != "admin"


@dataclass(frozen=True)
class AuditEntry:
    """What is kept of one question.

    Attributes:
      time: When it was answered, in UTC.
      visitor: An account, or a pseudonym that lasts for one day.
      dataset: The data set.
      edition: Its edition.
      address: The question as an address.
      kind: What was asked for.
      outcome: `"ok"`, or the code of the refusal.
      cells: How many cells the answer shows; public, since it follows from the question.
      milliseconds: How long it took.
    """

    time: datetime
    visitor: str
    dataset: str
    edition: str
    address: str
    kind: Kind
    outcome: str
    cells: int
    milliseconds: float

    @property
    def row(self) -> dict[str, Any]:
        """The entry as it is stored: UTC, and no text that a column or a reader would choke on."""
        found = asdict(self)
        found["time"] = utc(self.time)
        found.update({name: _printable(found[name])[:size] for name, size in _LONGEST.items()})
        return found


AUDIT_COLUMNS = tuple(f.name for f in fields(AuditEntry))


def now() -> datetime:
    """The present moment as it is stored: UTC, without a zone."""
    return utc(datetime.now(UTC))


def utc(time: datetime) -> datetime:
    """A moment as it is stored; one without a zone is taken to be in UTC."""
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def _printable(text: str) -> str:
    """Printable text: no line ends, no halves of surrogate pairs, no zero bytes."""
    made = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in made)


class AuditLog:
    """Entries in the office's database.

    Promise: `record` returns when the entry is on the disk, and raises when it cannot be written;
    an answer that was sent after it has its entry, also when the process is killed.
    Cost: one write to the disk for all entries that arrive while the one before is under way.

    Args:
      store: The office's database.
      keep_days: Entries are forgotten after so many days; without it, never.
      keep_entries: So many are kept at most; without it, all of them.
    """

    def __init__(self, store: OfficeDatabase, keep_days: int = 0, keep_entries: int = 0) -> None:
        self.store, self.keep_days, self.keep_entries = store, keep_days, keep_entries
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._next_cleaning = now()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def record(self, entry: AuditEntry) -> None:
        """Return when the entry is on the disk."""
        self._enqueue(entry).result()

    async def record_async(self, entry: AuditEntry) -> None:
        """Return when the entry is on the disk; others are served meanwhile."""
        await asyncio.wrap_future(self._enqueue(entry))

    def close(self) -> None:
        """Write what waits, and stop the thread that writes."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(_STOP_SECONDS)
            self._thread = None

    def _enqueue(self, entry: AuditEntry) -> Future[None]:
        done: Future[None] = Future()
        self._waiting.put((entry, done))
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, daemon=True, name="audit")
                self._thread.start()
        return done

    def _write(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, is_last = self._batch(first)
            self._store(batch)
            if is_last:
                return
            self._clean()
            time.sleep(2 * TURN_SECONDS)  # for another process that waits for its turn

    def _batch(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        """What has arrived by now, and whether the end is among it."""
        batch = [first]
        while len(batch) < _MOST_AT_ONCE:
            try:
                following = self._waiting.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return batch, True
            batch.append(following)
        return batch, False

    def _store(self, batch: list[_Waiting]) -> None:
        """Write entries, also of visitors who went away, and tell those who wait."""
        waiting = [done for _, done in batch if done.set_running_or_notify_cancel()]
        try:
            with self.store.writing() as connection:
                connection.execute(insert(AUDIT), [entry.row for entry, _ in batch])
        except Exception as error:  # whoever waits must learn of it, whatever it is
            text = f"an entry of the audit log could not be written: {type(error).__name__}."
            for done in waiting:
                is_told = isinstance(error, DatabaseError)
                done.set_exception(error if is_told else DatabaseError(text))
            return
        for done in waiting:
            done.set_result(None)

    def _clean(self) -> None:
        """Forget old entries now and then; a failure is tried again the next time."""
        if now() < self._next_cleaning <= now() + _FORGET_EVERY:  # further away: a clock went back
            return
        self._next_cleaning = now() + _FORGET_EVERY
        try:
            if self.keep_days:
                self._forget_old(now() - timedelta(days=self.keep_days))
            if self.keep_entries:
                forget_beyond(self.store, self.keep_entries)
        except DatabaseError:
            return
        except Exception as error:  # without this thread nobody would be answered
            _log.error("%s while old entries were forgotten.", type(error).__name__)

    def _forget_old(self, oldest: datetime) -> None:
        if not has_entries_before(self.store, oldest):
            return
        if is_continuous(self.store, oldest):
            forget_entries(self.store, self.keep_days)
        else:
            _log.error("the clock, or the site, leapt over a month: no old entry is forgotten.")


def has_entries_before(store: OfficeDatabase, moment: datetime) -> bool:
    """Whether there are older entries."""
    with store.reading() as connection:
        found: datetime | None = connection.execute(select(func.min(_C.time))).scalar()
    return found is not None and found < moment


def is_continuous(store: OfficeDatabase, since: datetime) -> bool:
    """Whether entries follow each other from a moment until now, never a month apart.

    Then so much time has passed, whatever the clock says. A clock that leapt left a gap.
    """
    at = now()
    with store.reading() as connection:
        while at > since:
            within = (at - _LONGEST_REST <= _C.time) & (at >= _C.time)
            earliest = connection.execute(select(func.min(_C.time)).where(within)).scalar()
            if earliest is None or earliest >= at:
                return False
            at = earliest
    return True


def forget_entries(store: OfficeDatabase, keep_days: int) -> int:
    """Remove entries that are older than so many days, and leave a mark; returns how many."""
    oldest = now() - timedelta(days=keep_days)
    return _remove(store, oldest > _C.time, f"before {oldest:%Y-%m-%d %H:%M}")


def forget_beyond(store: OfficeDatabase, keep_entries: int) -> int:
    """Remove the entries that were written first, beyond so many; returns how many."""
    with store.reading() as connection:
        newest_first = select(_C.id).order_by(_C.id.desc())
        last = connection.execute(newest_first.offset(keep_entries).limit(1)).scalar()
    return 0 if last is None else _remove(store, _C.id <= last, f"beyond {keep_entries:,}")


def _remove(store: OfficeDatabase, which: Any, said: str) -> int:
    with store.writing() as connection:
        removed = connection.execute(delete(AUDIT).where(which)).rowcount
        if removed:
            told = f"{removed} entries {said}"
            mark = AuditEntry(now(), "discreet", "", "", told, "admin", "forgotten", 0, 0.0)
            connection.execute(insert(AUDIT), [mark.row])
        return removed


@dataclass(frozen=True)
class DayUsage:
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
    days: tuple[DayUsage, ...]
    refusals: tuple[tuple[str, str, int], ...]
    slowest: tuple[tuple[str, str, float], ...]
    tables: tuple[tuple[str, str, int], ...]


def usage(store: OfficeDatabase, days: int = 30, most: int = 10) -> Usage:
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
        _rank(number, (_C.dataset, _C.outcome), since, ~is_ok),
        _rank(slowest, table, since).limit(most),
        _rank(number, table, since, is_ok).limit(most),
    )
    with store.reading() as connection:
        return Usage(
            since,
            tuple(_day_of_row(row) for row in connection.execute(_by_day(since))),
            *(tuple(map(tuple, connection.execute(asked).all())) for asked in ranked),
        )


def _by_day(since: datetime) -> Select[Any]:
    day, n = func.date(_C.time), func.count()
    refused = n - func.sum(case((_C.outcome == OK, 1), else_=0))
    figures = (n, refused, func.count(distinct(_C.visitor)), func.avg(_C.milliseconds))
    return select(day, *figures).where(_C.time >= since, _IS_QUESTION).group_by(day).order_by(day)


def _day_of_row(row: Any) -> DayUsage:
    day, questions, refused, visitors, milliseconds = row
    found = date.fromisoformat(day) if isinstance(day, str) else day  # SQLite has dates as texts
    return DayUsage(found, int(questions), int(refused), int(visitors), float(milliseconds))


def _rank(figure: Any, by: Sequence[Any], since: datetime, *only: Any) -> Select[Any]:
    """Questions since a day in groups, those with the largest figure first."""
    asked = select(*by, figure).where(_C.time >= since, _IS_QUESTION, *only)
    return asked.group_by(*by).order_by(figure.desc(), *by)


def export_log(store: OfficeDatabase, since: datetime | None = None) -> Iterator[str]:
    """The log as lines of a CSV file, oldest entry first."""
    yield _line(AUDIT_COLUMNS)
    asked = select(*(_C[name] for name in AUDIT_COLUMNS)).order_by(_C.time, _C.id)
    if since is not None:
        asked = asked.where(_C.time >= since, _IS_QUESTION)
    with store.reading() as connection:
        for row in connection.execution_options(yield_per=_MOST_AT_ONCE).execute(asked):
            yield _line([row[0].isoformat(timespec="milliseconds") + "Z", *row[1:]])


def _line(values: Any) -> str:
    """One line; a text that a spreadsheet would run as a formula is disarmed."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        [inert_text(v) if isinstance(v, str) else v for v in values]
    )
    return text.getvalue()
