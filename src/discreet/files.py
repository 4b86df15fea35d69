"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import DataError, ParameterError

OWNER_ONLY = 0o600
EVERYONE = 0o644
PARQUET = (".parquet", ".pq")


def ending_of(path: str | Path, known: Sequence[str], why: str = "") -> str:
    """The ending of a file's name, which says in what format it is written.

    One that is not known is refused; `why` is said before the endings that are.
    """
    name = Path(path).name
    for ending in known:
        if name.lower().endswith(ending):
            return ending
    listed = ", ".join(known[:-1]) + " or " * (len(known) > 1) + known[-1]
    raise ParameterError(f"cannot write {name!r}: {why}the name must end in {listed}.")


@contextmanager
def written_whole(path: str | Path, mode: int = EVERYONE) -> Iterator[Path]:
    """A temporary path beside `path` that takes its name on success and vanishes on failure.

    The file has its final permissions before the first byte is written.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except OSError as error:
        raise DataError(f"cannot write to {target}: {error.strerror}.") from error
    try:
        yield temporary
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
