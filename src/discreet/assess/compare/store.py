"""Finished draws on disk, so that an interrupted comparison goes on where it stopped.

A directory that only its owner can enter holds `comparison.json`, which says what the scores
depend on, and one Parquet file for each finished batch of draws. Another table, seed, fitter or
measure is refused; more draws and more methods may be added.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.assess.compare.fingerprint import digest
from discreet.assess.compare.job import Job
from discreet.errors import DataError, ParameterError
from discreet.files import OWNER_ONLY, written_whole

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = "comparison.json"
_OWNER_ONLY_FOLDER = 0o700


@dataclass(frozen=True)
class Store:
    """Batches of one comparison in a directory."""

    folder: Path
    keys: tuple[str, ...]

    @classmethod
    def open(cls, folder: str | Path, job: Job) -> Store:
        """The store of a job; a directory of another one is refused."""
        folder = Path(folder)
        try:
            folder.mkdir(mode=_OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot keep results in {folder}: {error.strerror}.") from error
        _agree(folder, json.loads(json.dumps(job.description())))
        return cls(folder, tuple(digest(c.method) for c in job.contestants))

    def read(self, k: int) -> pa.Table | None:
        """All finished draws of contestant `k`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        files = sorted(self.folder.glob(f"{self.keys[k]}-*.parquet"))
        return pa.concat_tables(pq.read_table(f) for f in files) if files else None

    def write(self, k: int, draws: Iterable[int], content: pa.Table) -> None:
        """Keep a finished batch."""
        import pyarrow.parquet as pq

        numbers = list(draws)
        path = self.folder / f"{self.keys[k]}-{numbers[0]:06d}-{numbers[-1]:06d}.parquet"
        with written_whole(path, OWNER_ONLY) as temporary:
            pq.write_table(content, temporary)


def _agree(folder: Path, wanted: dict[str, Any]) -> None:
    """Check the header, or write it in a directory that has none."""
    header = folder / _HEADER
    if not header.exists():
        if any(folder.iterdir()):
            raise ParameterError(
                f"{folder} is not empty and holds no comparison. Name a new directory for resume=."
            )
        with written_whole(header, OWNER_ONLY) as temporary:
            temporary.write_text(json.dumps(wanted, indent=1), encoding="utf-8")
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
