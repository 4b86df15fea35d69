"""The draws of a comparison, made here or on several cores; finished ones are kept on disk.

The scores are the same either way. A directory that only its owner can enter holds
`comparison.json`, which says what the scores depend on, and one Parquet file for each finished
batch of draws. Another table, seed, fitter or measure is refused; more draws and more methods may
be added.
"""

from __future__ import annotations

import json
import math
import pickle
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.assessment.compare.contestants import Contestant
from discreet.assessment.compare.job import Job, short_digest
from discreet.columns import Column
from discreet.errors import DataError, DiscreetError, ParameterError, whole
from discreet.files import OWNER_ONLY, write_text, written_whole
from discreet.frames import Frame, concat
from discreet.parquet import read_parquet, write_parquet
from discreet.progress import Spawn, available_cores
from discreet.progress import report as report_progress

_HEADER = "comparison.json"
_OWNER_ONLY_FOLDER = 0o700

# Starting a process and loading numerical packages in it takes seconds on every core, so processes
# are started without being asked for only when they have this much work. Batches are short beside
# it, because an interruption loses the batches that are under way.
WORTH_STARTING_SECONDS = 20.0
BATCH_SECONDS = 5.0
_LARGEST_BATCH = 100


@dataclass(frozen=True)
class Execution:
    """Number of draws, number of processes, and a directory to go on from."""

    replicates: int  # draws of every method
    workers: int | None = None  # processes; all cores when the work is worth it when absent
    resume: Path | None = None  # directory of finished draws

    def __post_init__(self) -> None:
        whole("replicates", self.replicates, 1)
        if self.workers is not None:
            whole("workers", self.workers, 1)

    def scores(self, job: Job, task: str = "comparing methods") -> Frame:
        """Scores of every draw: finished ones are read, the others are made."""
        store = None if self.resume is None else DrawStore.open(self.resume, job)
        found: list[list[Frame]] = [[] for _ in job.contestants]
        missing = [self._missing_draws(store, k, found[k]) for k in range(len(found))]
        total = len(found) * self.replicates
        done = total - sum(map(len, missing))
        for batch, content in run_draws(job, missing, self.workers):
            if store is not None:
                store.write(batch, content)
            found[batch.contestant].append(content)
            done += len(batch.draws)
            report_progress(task, done / total)
        return _gather_scores(job.contestants, found)

    def _missing_draws(self, store: DrawStore | None, k: int, found: list[Frame]) -> list[int]:
        """The draws still to be made; finished ones are put with those found."""
        kept = None if store is None else store.read(k)
        if kept is None:
            return list(range(self.replicates))
        found.append(kept.filter(kept["replicate"].to_numpy() < self.replicates))
        finished = set(kept["replicate"].to_pylist())
        return [i for i in range(self.replicates) if i not in finished]


def _gather_scores(names: Sequence[Contestant], found: Sequence[Sequence[Frame]]) -> Frame:
    """All scores, by contestant and draw, with columns that say whose they are."""
    parts = []
    for contestant, tables in zip(names, found, strict=True):
        scores = concat(tables)
        scores = scores.take(np.argsort(scores["replicate"].to_numpy(), kind="stable"))
        parameters = json.dumps(contestant.parameters, ensure_ascii=False)
        owner = (contestant.label, contestant.method.name, parameters)
        for place, name in enumerate(("label", "method", "parameters")):
            column = Column([owner[place]] * len(scores), "string")
            scores = scores.with_column(name, column, place)
        parts.append(scores)
    return concat(parts)


class Batch(NamedTuple):
    """Some draws of one contestant."""

    contestant: int
    draws: tuple[int, ...]


FinishedBatch = tuple[Batch, Frame]


def run_draws(
    job: Job, missing: Sequence[Sequence[int]], workers: int | None
) -> Iterator[FinishedBatch]:
    """Run the missing draws of every contestant, batch by batch, in the order they finish.

    A first draw of everybody is made here, and a second where that was quick: mistakes show at
    once, and the time of the last one tells whether other processes are worth starting.
    """
    seconds, rest = [], []
    for k, draws in enumerate(missing):
        took, made = 0.0, 0
        while made < min(2, len(draws)) and took < BATCH_SECONDS:
            started = time.perf_counter()
            try:
                found = job.run(k, [draws[made]])
            except DiscreetError as error:
                error.add_note(f"This happened to {job.contestants[k].label!r}.")
                raise
            took = time.perf_counter() - started
            yield Batch(k, (draws[made],)), found
            made += 1
        seconds.append(took)
        rest.append(draws[made:])
    left = sum(s * len(draws) for s, draws in zip(seconds, rest, strict=True))
    processes = _processes(job, workers, left)
    batches = _batches(rest, seconds, processes)
    if processes == 1 or len(batches) < 2:
        yield from ((batch, job.run(*batch)) for batch in batches)
    else:
        yield from _run_in_processes(job, batches, processes)


def _processes(job: Job, workers: int | None, seconds: float) -> int:
    wanted = available_cores() if workers is None else workers
    if wanted == 1 or (workers is None and seconds < WORTH_STARTING_SECONDS):
        return 1
    if not _can_travel(job):
        if workers is None:
            return 1
        raise ParameterError(
            "this comparison holds something that other processes cannot load, such as a class or "
            "function defined in the main script. Move it to a module, or use workers=1."
        )
    return wanted


def _can_travel(job: Job) -> bool:
    """Whether another process can load the job; it does not see the main script."""
    try:
        return b"__main__" not in pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


def _batches(
    missing: Sequence[Sequence[int]], seconds: Sequence[float], processes: int
) -> list[Batch]:
    """Batches of a few seconds, small enough to keep all processes busy to the end."""
    found = []
    for k, (draws, each) in enumerate(zip(missing, seconds, strict=True)):
        even = math.ceil(len(draws) / (2 * processes))
        size = max(1, min(even, int(BATCH_SECONDS / max(each, 1e-6)), _LARGEST_BATCH))
        found += [Batch(k, tuple(draws[i : i + size])) for i in range(0, len(draws), size)]
    return found


# Each process receives the job once and keeps what it has prepared for the design. joblib would
# spare these lines, and would send the table and prepare every fit again with each batch.
def _run_in_processes(
    job: Job, batches: Sequence[Batch], processes: int
) -> Iterator[FinishedBatch]:
    pool = ProcessPoolExecutor(
        min(processes, len(batches)), Spawn(), _receive_job, (pickle.dumps(job),)
    )
    try:
        pending = {pool.submit(_run_received, *batch): batch for batch in batches}
        for future in as_completed(pending):
            yield pending[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_job: Job | None = None


def _receive_job(payload: bytes) -> None:
    global _job
    _job = pickle.loads(payload)


def _run_received(contestant: int, draws: tuple[int, ...]) -> Frame:
    if _job is None:
        raise RuntimeError("a worker was asked for draws before it received the job.")
    return _job.run(contestant, draws)


@dataclass(frozen=True)
class DrawStore:
    """Batches of one comparison in a directory."""

    folder: Path
    keys: tuple[str, ...]

    @classmethod
    def open(cls, folder: str | Path, job: Job) -> DrawStore:
        """The store of a job; a directory of another one is refused."""
        folder = Path(folder)
        try:
            folder.mkdir(mode=_OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot keep results in {folder}: {error.strerror}.") from error
        _check_header(folder, json.loads(json.dumps(job.description())))
        return cls(folder, tuple(short_digest(c.method) for c in job.contestants))

    def read(self, k: int) -> Frame | None:
        """All finished draws of contestant `k`."""
        files = sorted(self.folder.glob(f"{self.keys[k]}-*.parquet"))
        return concat(map(read_parquet, files)) if files else None

    def write(self, batch: Batch, content: Frame) -> None:
        """Keep a finished batch."""
        first, last = batch.draws[0], batch.draws[-1]
        path = self.folder / f"{self.keys[batch.contestant]}-{first:06d}-{last:06d}.parquet"
        with written_whole(path, OWNER_ONLY) as temporary:
            write_parquet(temporary, content)


def _check_header(folder: Path, wanted: dict[str, Any]) -> None:
    """Check the header, or write it in a directory that has none."""
    header = folder / _HEADER
    if not header.exists():
        if any(folder.iterdir()):
            raise ParameterError(
                f"{folder} is not empty and holds no comparison. Name a new directory for resume=."
            )
        write_text(header, json.dumps(wanted, indent=1), OWNER_ONLY)
        return
    try:
        found = json.loads(header.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise DataError(f"{header} cannot be read: {error}.") from error
    changed = [name for name in wanted if found.get(name) != wanted[name]]
    if changed:
        raise ParameterError(
            f"{folder} holds a comparison with another {' and '.join(changed)}. "
            "Name a new directory for resume=, or repeat the call that made this one."
        )
