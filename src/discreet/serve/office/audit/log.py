"""Writing the audit log: many questions share one write to the disk."""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import Future
from datetime import timedelta

from sqlalchemy import delete, insert

from discreet.serve.office.audit.entry import Audit, Entry, now
from discreet.serve.office.store.schema import AUDIT
from discreet.serve.office.store.store import Store, StoreError

_MOST_AT_ONCE = 1_000
_FORGET_EVERY = timedelta(hours=1)
_STOP_SECONDS = 30.0
_Waiting = tuple[Entry, "Future[None]"]


class AuditLog(Audit):
    """Entries in the office's database.

    Promise: `record` returns when the entry is on the disk, and raises when it cannot be written;
    an answer that was sent after it has its entry, also when the process is killed.
    Cost: one write to the disk for all entries that arrive while the one before is under way.

    Args:
      store: The office's database.
      keep_days: Entries are forgotten after so many days; without it, never.
    """

    def __init__(self, store: Store, keep_days: int | None = None) -> None:
        self.store, self.keep_days = store, keep_days
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._next_cleaning = now()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def record(self, entry: Entry) -> None:
        """Return when the entry is on the disk."""
        self._put(entry).result()

    async def recorded(self, entry: Entry) -> None:
        """Return when the entry is on the disk; others are served meanwhile."""
        await asyncio.wrap_future(self._put(entry))

    def close(self) -> None:
        """Write what waits, and stop the thread that writes."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(_STOP_SECONDS)
            self._thread = None

    def _put(self, entry: Entry) -> Future[None]:
        done: Future[None] = Future()
        self._waiting.put((entry, done))
        self._start()
        return done

    def _start(self) -> None:
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._write, daemon=True, name="audit")
                    self._thread.start()

    def _write(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, is_last = self._batch(first)
            self._store(batch)
            if is_last:
                return
            self._clean()

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
            failed = error if isinstance(error, StoreError) else _lost(error)
            for done in waiting:
                done.set_exception(failed)
            return
        for done in waiting:
            done.set_result(None)

    def _clean(self) -> None:
        """Forget old entries now and then; a failure is tried again the next time."""
        if self.keep_days is None or now() < self._next_cleaning:
            return
        self._next_cleaning = now() + _FORGET_EVERY
        try:
            forget(self.store, self.keep_days)
        except StoreError:
            return


def forget(store: Store, keep_days: int) -> int:
    """Remove entries that are older than so many days; returns how many there were."""
    oldest = now() - timedelta(days=keep_days)
    with store.writing() as connection:
        return connection.execute(delete(AUDIT).where(AUDIT.c.time < oldest)).rowcount


def _lost(error: Exception) -> StoreError:
    return StoreError(f"an entry of the audit log could not be written: {type(error).__name__}.")
