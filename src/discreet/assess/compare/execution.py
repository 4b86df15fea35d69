"""How a job is run: how many draws, on how many cores, and where finished ones are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.assess.compare import workers as pool
from discreet.assess.compare.contestants import Contestant
from discreet.assess.compare.job import Job
from discreet.assess.compare.store import Store
from discreet.errors import ParameterError
from discreet.progress import report as report_progress

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Execution:
    """Number of draws, number of processes, and a directory to go on from.

    Attributes:
      replicates: Draws of every method.
      workers: Processes; all cores when the work is worth it when absent.
      resume: Directory of finished draws.
    """

    replicates: int
    workers: int | None = None
    resume: Path | None = None

    def __post_init__(self) -> None:
        _check_whole("replicates", self.replicates)
        if self.workers is not None:
            _check_whole("workers", self.workers)

    def scores(self, job: Job, task: str = "comparing methods") -> pa.Table:
        """Scores of every draw: finished ones are read, the others are made."""
        store = None if self.resume is None else Store.open(self.resume, job)
        found: list[list[pa.Table]] = [[] for _ in job.contestants]
        missing = [self._unfinished(store, k, found[k]) for k in range(len(found))]
        total = len(found) * self.replicates
        done = total - sum(map(len, missing))
        for batch, content in pool.run(job, missing, self.workers):
            if store is not None:
                store.write(batch.contestant, batch.draws, content)
            found[batch.contestant].append(content)
            done += len(batch.draws)
            report_progress(task, done / total)
        return _gathered(job.contestants, found)

    def _unfinished(self, store: Store | None, k: int, found: list[pa.Table]) -> list[int]:
        """The draws still to be made; finished ones are put with those found."""
        import pyarrow.compute as pc

        kept = None if store is None else store.read(k)
        if kept is None:
            return list(range(self.replicates))
        found.append(kept.filter(pc.less(kept["replicate"], self.replicates)))
        finished = set(kept["replicate"].to_pylist())
        return [i for i in range(self.replicates) if i not in finished]


def _gathered(names: Sequence[Contestant], found: Sequence[Sequence[pa.Table]]) -> pa.Table:
    """All scores, by contestant and draw, with columns that say whose they are."""
    import pyarrow as pa

    parts = []
    for contestant, tables in zip(names, found, strict=True):
        scores = pa.concat_tables(tables)
        scores = scores.take(np.argsort(scores["replicate"].to_numpy(), kind="stable"))
        parameters = json.dumps(contestant.parameters, ensure_ascii=False)
        owner = (contestant.label, contestant.method.name, parameters)
        for place, name in enumerate(("label", "method", "parameters")):
            column = pa.array([owner[place]] * len(scores), pa.string())
            scores = scores.add_column(place, name, column)
        parts.append(scores)
    return pa.concat_tables(parts)


def _check_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ParameterError(f"{name} must be a whole number of at least 1, got {value!r}.")
