"""The queue of expensive tables: jobs in the office's database, each made by a process of its own.

Every process that answers for a site looks after one job at a time. The table is made by a child,
which can be ended, has memory of its own and keeps nobody's thread; it leaves the protected cube on
the disk, where all processes find it. The database says which jobs there are, so they outlive the
process that took them in.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa

from discreet.digests import digest
from discreet.serve.office.audit import now
from discreet.serve.office.database import JOBS, DatabaseError, OfficeDatabase
from discreet.serve.refusals import Queued, Refusal

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
UNDER_WAY: tuple[JobState, ...] = ("waiting", "running")
MOST_JOBS = 200
"""Jobs under way, of all visitors."""
_LOST = timedelta(seconds=20)  # without a sign of life: the process that made it is gone
_MOST_ATTEMPTS = 2
_FAILED = timedelta(minutes=10)  # that a table which could not be made is not tried again
_KEPT = timedelta(days=7)  # that the end of a job can be read
_EVERY = 0.25  # seconds between two looks at a child
_BEAT = 2.0  # seconds between two signs of life
_IDLE = 1.0  # seconds between two looks at an empty queue
_C = JOBS.c
_log = logging.getLogger("discreet.serve")


@dataclass(frozen=True)
class QueueJob:
    """A table in the queue.

    Attributes:
      id: Of the crossing and its edition; all who ask for the crossing share the job.
      dataset: The data set.
      unit: What is counted.
      details: The crossing.
      visitor: Who asked first.
      seconds: What it costs, by its price.
      state: Where it stands.
      asked: When it was asked for.
      started: When it was begun.
      ended: When it ended.
      attempts: How often it was begun.
    """

    id: str
    dataset: str
    unit: str
    details: tuple[str, ...]
    visitor: str
    seconds: float
    state: JobState
    asked: datetime
    started: datetime | None
    ended: datetime | None
    attempts: int

    @property
    def running_seconds(self) -> float:
        """How long it has been made."""
        return 0.0 if self.started is None else max(0.0, (now() - self.started).total_seconds())

    @property
    def progress(self) -> float:
        """The share of its price that has passed; never all of it before the end."""
        if self.state == "done":
            return 1.0
        return 0.0 if self.state == "waiting" else min(0.95, self.running_seconds / self.seconds)

    @property
    def has_just_failed(self) -> bool:
        """Whether it failed so short a time ago that it would again."""
        is_failed = self.state == "failed" and self.ended is not None
        return is_failed and now() - (self.ended or now()) < _FAILED


_COLUMNS = [_C[f.name] for f in fields(QueueJob)]


def job_id(asked: Queued) -> str:
    """The name of the job that makes a table."""
    return digest(asked.dataset, asked.edition, asked.unit, json.dumps(asked.details)).hex()[:32]


class JobQueue:
    """Jobs in the office's database, for all processes that use it.

    Promise: a job is made by one process at a time; one whose process dies is begun again, once. A
    seat goes to the visitor whose last job began the longest time ago, so that many jobs of one
    visitor leave others where they would be without them.

    Args:
      store: The office's database.
    """

    def __init__(self, store: OfficeDatabase) -> None:
        self._store = store

    def submit(self, asked: Queued, visitor: str, most: int) -> QueueJob:
        """The job that makes a table; it is shared where it is under way.

        Args:
          asked: The table.
          visitor: Who asks.
          most: Jobs that the visitor may have under way.

        Raises:
          Refusal: There are too many jobs, of the visitor or of all.
        """
        name = job_id(asked)
        with self._store.writing() as connection:
            found = _find(connection, name)
            if found is not None and found.state in UNDER_WAY:
                return found
            if found is not None and found.has_just_failed:
                message = "This table could not be made a short time ago."
                raise Refusal("not_made", message, "A smaller table, or this one later.", 503)
            under_way = sa.select(_C.visitor).where(_C.state.in_(UNDER_WAY))
            others = list(connection.execute(under_way).scalars())
            if others.count(visitor) >= most:
                message = "You have as many tables in the queue as one visitor may have."
                allowed = f"{most} tables at a time; the next one when one of them is done."
                raise Refusal("too_many_jobs", message, allowed, 429, wait=asked.wait)
            if len(others) >= MOST_JOBS:
                message = "The queue of large tables is full."
                raise Refusal("queue_full", message, "The same table later.", 503, wait=60)
            old = (_C.ended < now() - _KEPT) | (_C.id == name)
            connection.execute(sa.delete(JOBS).where(old))
            row = {
                "id": name, "dataset": asked.dataset, "unit": asked.unit, "visitor": visitor,
                "details": json.dumps(asked.details), "seconds": asked.seconds,
                "state": "waiting", "asked": now(), "worker": "", "attempts": 0,
            }  # fmt: skip
            connection.execute(sa.insert(JOBS).values(row))
            return _job_of(connection.execute(sa.select(*_COLUMNS).where(_C.id == name)).one())

    def find(self, name: str) -> QueueJob | None:
        """The job of this name, if there is one."""
        with self._store.reading() as connection:
            return _find(connection, name)

    def before(self, job: QueueJob) -> int:
        """Jobs that wait and were asked for earlier."""
        earlier = (_C.state == "waiting") & (_C.asked < job.asked)
        with self._store.reading() as connection:
            counted = sa.select(sa.func.count()).select_from(JOBS).where(earlier)
            return int(connection.execute(counted).scalar_one())

    def load(self) -> dict[str, int]:
        """How many jobs wait and are made."""
        counted = sa.select(_C.state, sa.func.count()).group_by(_C.state)
        with self._store.reading() as connection:
            found = {str(state): int(n) for state, n in connection.execute(counted)}
        return {state: found.get(state, 0) for state in UNDER_WAY}

    def claim(self, worker: str, datasets: Sequence[str]) -> QueueJob | None:
        """The job that is made next, now this worker's."""
        with self._store.reading() as connection:  # an empty queue costs no write
            some = sa.select(_C.id).where(_C.state.in_(UNDER_WAY)).limit(1)
            if connection.execute(some).first() is None:
                return None
        with self._store.writing() as connection:
            _give_back_lost(connection)
            begun = sa.select(_C.visitor, sa.func.max(_C.started)).group_by(_C.visitor)
            last = {visitor: time for visitor, time in connection.execute(begun) if time}
            waiting = (_C.state == "waiting") & _C.dataset.in_(datasets)
            rows = connection.execute(sa.select(*_COLUMNS).where(waiting).order_by(_C.asked, _C.id))
            jobs = [_job_of(row) for row in rows]
            if not jobs:
                return None
            chosen = min(jobs, key=lambda job: last.get(job.visitor, datetime.min))
            begin = sa.update(JOBS).where(_C.id == chosen.id).values(
                state="running", started=now(), beat=now(), worker=worker,
                attempts=chosen.attempts + 1,
            )  # fmt: skip
            connection.execute(begin)
            return _find(connection, chosen.id)

    def beat(self, job: QueueJob, worker: str) -> bool:
        """Give a sign of life; whether the job is still this worker's to make."""
        mine = (_C.id == job.id) & (_C.worker == worker) & (_C.state == "running")
        with self._store.writing() as connection:
            found = connection.execute(sa.update(JOBS).where(mine).values(beat=now())).rowcount
        return bool(found)

    def end(self, job: QueueJob, worker: str, state: JobState) -> None:
        """Write down how a job ended; `"waiting"` gives it back."""
        mine = (_C.id == job.id) & (_C.worker == worker) & (_C.state == "running")
        ended = None if state == "waiting" else now()
        said: dict[str, Any] = {"state": state, "ended": ended, "worker": ""}
        if state == "waiting":  # a process that stops in good order has not failed
            said["attempts"] = job.attempts - 1
        with self._store.writing() as connection:
            connection.execute(sa.update(JOBS).where(mine).values(said))

    def cancel(self, name: str, visitor: str) -> bool:
        """End a visitor's own job; whether there was one under way."""
        own = (_C.id == name) & (_C.visitor == visitor) & _C.state.in_(UNDER_WAY)
        said = {"state": "cancelled", "ended": now()}
        with self._store.writing() as connection:
            return bool(connection.execute(sa.update(JOBS).where(own).values(said)).rowcount)


def _find(connection: sa.Connection, name: str) -> QueueJob | None:
    row = connection.execute(sa.select(*_COLUMNS).where(_C.id == name)).first()
    return None if row is None else _job_of(row)


def _job_of(row: Any) -> QueueJob:
    found = dict(row._mapping)
    found["details"] = tuple(json.loads(found["details"]))
    return QueueJob(**found)


def _give_back_lost(connection: sa.Connection) -> None:
    """Let jobs of processes that are gone wait again, or fail where that was tried before."""
    lost = (_C.state == "running") & (_C.beat < now() - _LOST)
    tried = _C.attempts >= _MOST_ATTEMPTS
    ended = {"state": "failed", "ended": now(), "worker": ""}
    connection.execute(sa.update(JOBS).where(lost, tried).values(ended))
    connection.execute(sa.update(JOBS).where(lost).values(state="waiting", worker=""))


def _most_seconds(job: QueueJob) -> float:
    """Seconds after which a job is taken to hang: ten times its price, and a minute to start."""
    return 10 * job.seconds + 60


class JobRunner:
    """Looks after one job at a time, in a thread of its own.

    Args:
      queue: The queue.
      command: The command that makes a job's table.
      datasets: The data sets that can be asked for at the moment.
    """

    def __init__(
        self,
        queue: JobQueue,
        command: Callable[[QueueJob], list[str]],
        datasets: Callable[[], Sequence[str]],
    ) -> None:
        self._queue, self._command, self._datasets = queue, command, datasets
        self._worker = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="queue")

    @classmethod
    def of_site(
        cls, queue: JobQueue, path: str | Path, datasets: Callable[[], Sequence[str]]
    ) -> JobRunner:
        """The runner for the site of a file."""

        def command(job: QueueJob) -> list[str]:
            work = "import sys; from discreet.serve.site.start import make_queued_cube as make; "
            given = [str(Path(path).resolve()), job.dataset, job.unit, *job.details]
            return [sys.executable, "-c", work + "make(*sys.argv[1:])", *given]

        return cls(queue, command, datasets)

    def start(self) -> JobRunner:
        """Begin."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End; a job under way is given back, and begun again by the next process."""
        self._stop.set()
        self._thread.join(10.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                job = self._queue.claim(self._worker, self._datasets())
                if job is None:
                    self._stop.wait(_IDLE)
                else:
                    self._queue.end(job, self._worker, self._make(job))
            except DatabaseError:  # the office says so; jobs are given back when it is there again
                self._stop.wait(10 * _IDLE)
            except Exception as error:  # no memory for a process; without this thread none is made
                _log.error("%s in the queue; it is tried again.", type(error).__name__)
                self._stop.wait(10 * _IDLE)

    def _make(self, job: QueueJob) -> JobState:
        """Have a table made; how that ended."""
        # Its errors may show what is confidential, so nothing of them is kept.
        none = subprocess.DEVNULL
        child = subprocess.Popen(self._command(job), stdin=none, stdout=none, stderr=none)
        last, beaten = time.monotonic() + _most_seconds(job), time.monotonic()
        try:
            while child.poll() is None:
                if self._stop.wait(_EVERY):
                    return "waiting"
                if time.monotonic() > last:
                    _log.error("a table of %s in the queue took too long.", job.dataset)
                    return "failed"
                if time.monotonic() - beaten > _BEAT:
                    beaten = time.monotonic()
                    if not self._queue.beat(job, self._worker):
                        return "cancelled"
            if child.returncode:
                _log.error("a table of %s in the queue failed.", job.dataset)
            return "failed" if child.returncode else "done"
        finally:
            if child.poll() is None:
                child.kill()
            child.wait()
