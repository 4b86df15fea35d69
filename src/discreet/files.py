"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import DataError

OWNER_ONLY = 0o600
EVERYONE = 0o644


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
