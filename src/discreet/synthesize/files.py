"""Synthetic records in files: Parquet, or CSV with the statement beside it."""

from __future__ import annotations

import json
from pathlib import Path

from discreet.errors import ConfidentialError
from discreet.files import written_whole
from discreet.release.files import CSV, release_ending
from discreet.release.formats.csv import csv_bytes
from discreet.synthesize.result import Synthetic

HEADER = b"discreet_synthetic"
FORMAT = 1


def save(synthetic: Synthetic, path: str | Path) -> Path:
    """Write synthetic records; see `Synthetic.save`."""
    if not isinstance(synthetic, Synthetic):
        raise ConfidentialError("a trial cannot be written; synthesize without simulate=True.")
    target = Path(path)
    if release_ending(target) == CSV:
        _write_csv(synthetic, target)
    else:
        _write_parquet(synthetic, target)
    return target


def _write_parquet(synthetic: Synthetic, target: Path) -> None:
    import pyarrow.parquet as pq

    table = synthetic.to_arrow()
    metadata = {**(table.schema.metadata or {}), HEADER: _header(synthetic).encode()}
    with written_whole(target) as temporary:
        pq.write_table(table.replace_schema_metadata(metadata), temporary, compression="zstd")


def _write_csv(synthetic: Synthetic, target: Path) -> None:
    beside = {"txt": synthetic.statement.text, "json": _header(synthetic)}
    for ending, text in beside.items():
        with written_whole(target.with_suffix(f".statement.{ending}")) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
    with written_whole(target) as temporary:
        temporary.write_bytes(csv_bytes(synthetic.to_arrow()))


def _header(synthetic: Synthetic) -> str:
    """All but the records, as JSON."""
    header = {
        "format": FORMAT,
        "side": "public",
        "confidential": synthetic.confidential,
        "model": synthetic.model,
        "method": synthetic.method,
        "statement": synthetic.statement.to_json(),
    }
    return json.dumps(header, ensure_ascii=False)
