"""Files that must stay what they were while tables are made of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from discreet.serve.refusals import Refusal

Stamp = dict[str, tuple[int, int, int, int]]


class Files:
    """Files as they were before they were opened.

    Two tables of different records in one edition differ by whoever came or left, so nothing new is
    made once a file is another one.

    Args:
      names: Files, folders, and patterns of files.
      made: Files that the first opening makes where they are not there.
    """

    def __init__(self, names: Sequence[str] = (), made: Sequence[str] = ()) -> None:
        self._names, self._made = tuple(names), tuple(made)
        self._seen = stamp(self._names)

    @property
    def now(self) -> Stamp:
        """All files as they are at the moment."""
        return stamp((*self._names, *self._made))

    def settle(self) -> None:
        """Take note of what the first opening has made."""
        came = stamp(self._made)
        self.check()
        self._names, self._made = (*self._names, *self._made), ()
        self._seen |= came

    def check(self) -> None:
        """Refuse to go on with other files.

        Raises:
          Refusal: A file was changed, exchanged, added or removed.
        """
        if stamp(self._names) != self._seen:
            message = "The records of this data set are being exchanged, so no new table is made."
            raise Refusal(
                "records_changed", message, "Tables that were made before; others later.", 503
            )


def stamp(names: Iterable[str]) -> Stamp:
    """Device, inode, size and time of every file that the names mean."""
    found: Stamp = {}
    for path in (path for name in names for path in _meant(name)):
        try:
            status = os.stat(path)
        except OSError:  # it goes at this moment, or is a link to nothing
            continue
        found[path] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return found


def _meant(name: str) -> Iterator[str]:
    """A file by its name, what lies in a folder, or what fits a pattern."""
    if Path(name).is_dir():
        name = f"{glob.escape(name)}/**"
    elif Path(name).exists():
        name = glob.escape(name)
    return glob.iglob(name, recursive=True)
