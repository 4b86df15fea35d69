"""Tables and releases from files, as users hold them."""

from __future__ import annotations

from pathlib import Path

from discreet.facade.release import Release
from discreet.facade.table import Table
from discreet.release.files import CSV, read_csv
from discreet.tables import storage
from discreet.tables.public import PublicTable


def read(path: str | Path) -> Table | Release:
    """A table or a release, as the file is marked."""
    if _is_csv(path):
        return read_release(path)
    found = storage.load(path)
    return Release.wrap(found) if isinstance(found, PublicTable) else Table.wrap(found)


def read_table(path: str | Path) -> Table:
    """A confidential table."""
    return Table.wrap(storage.load_table(path))


def read_release(path: str | Path) -> Release:
    """A public release; a confidential file is refused.

    Args:
      path: A Parquet file, or a CSV file with its statement beside it.
    """
    return Release.wrap(read_csv(path) if _is_csv(path) else storage.load_release(path))


def _is_csv(path: str | Path) -> bool:
    return str(path).lower().endswith(CSV)
