"""Releases in files that other programs read."""

from __future__ import annotations

from pathlib import Path

from discreet.design.release import Release
from discreet.errors import ConfidentialError
from discreet.files import written_whole


def to_csv(release: Release) -> bytes:
    """The published cells as UTF-8 CSV, a row per cell."""
    import pyarrow as pa
    import pyarrow.csv

    if not isinstance(release, Release):
        raise ConfidentialError("only a release may be exported; protect the table first.")
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(release.to_arrow(), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def write_csv(release: Release, path: str | Path) -> Path:
    """Write the published cells as CSV, and the statement beside them as text."""
    target = Path(path)
    with written_whole(target.with_suffix(".statement.txt")) as temporary:
        temporary.write_text(release.statement.text + "\n", encoding="utf-8")
    with written_whole(target) as temporary:
        temporary.write_bytes(to_csv(release))
    return target
