"""Batches of draws, one after another or on several cores; the scores are the same either way."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import TYPE_CHECKING, NamedTuple

from discreet.assess.compare.job import Job
from discreet.errors import DiscreetError, ParameterError
from discreet.processes import Spawn, available_cores

if TYPE_CHECKING:
    import pyarrow as pa

WORTH_STARTING = 20.0
"""Seconds of work from which on processes are started without being asked for."""
BATCH_SECONDS = 5.0
_LARGEST_BATCH = 100


class Batch(NamedTuple):
    """Some draws of one contestant."""

    contestant: int
    draws: tuple[int, ...]


Done = tuple[Batch, "pa.Table"]


def run(job: Job, missing: Sequence[Sequence[int]], workers: int | None) -> Iterator[Done]:
    """Run the missing draws of every contestant, batch by batch, in the order they finish.

    A first draw of everybody is made here, and a second where that was quick: mistakes show at
    once, and the time of the last one tells whether other processes are worth starting.
    """
    seconds, rest = [], []
    for k, draws in enumerate(missing):
        took, made = 0.0, 0
        while made < min(2, len(draws)) and took < BATCH_SECONDS:
            started = time.perf_counter()
            found = _first(job, k, draws[made])
            took = time.perf_counter() - started
            yield Batch(k, (draws[made],)), found
            made += 1
        seconds.append(took)
        rest.append(draws[made:])
    left = sum(s * len(draws) for s, draws in zip(seconds, rest, strict=True))
    processes = _processes(job, workers, left)
    batches = _batches(rest, seconds, processes)
    alone = processes == 1 or len(batches) < 2
    yield from _here(job, batches) if alone else _elsewhere(job, batches, processes)


def _first(job: Job, k: int, i: int) -> pa.Table:
    try:
        return job.run(k, [i])
    except DiscreetError as error:
        error.add_note(f"This happened to {job.contestants[k].label!r}.")
        raise


def _processes(job: Job, workers: int | None, seconds: float) -> int:
    wanted = available_cores() if workers is None else workers
    if wanted == 1 or (workers is None and seconds < WORTH_STARTING):
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


def _here(job: Job, batches: Sequence[Batch]) -> Iterator[Done]:
    for batch in batches:
        yield batch, job.run(*batch)


def _elsewhere(job: Job, batches: Sequence[Batch], processes: int) -> Iterator[Done]:
    pool = ProcessPoolExecutor(
        min(processes, len(batches)), Spawn(), _receive, (pickle.dumps(job),)
    )
    try:
        pending: dict[Future[pa.Table], Batch] = {pool.submit(_work, *b): b for b in batches}
        while pending:
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                yield pending.pop(future), future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_job: Job | None = None


def _receive(payload: bytes) -> None:
    global _job
    _job = pickle.loads(payload)


def _work(contestant: int, draws: tuple[int, ...]) -> pa.Table:
    if _job is None:
        raise RuntimeError("a worker was asked for draws before it received the job.")
    return _job.run(contestant, draws)
