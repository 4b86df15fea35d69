"""Synthetic records: public ones in `Synthetic`, those of an experiment in `SyntheticTrial`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import ConfidentialError
from discreet.files import written_whole
from discreet.frames import to_arrow
from discreet.release.files import CSV, release_ending
from discreet.release.formats.csv import csv_bytes
from discreet.tables import show
from discreet.tables.statement import Statement

if TYPE_CHECKING:
    import pyarrow as pa

HEADER = b"discreet_synthetic"
FORMAT = 1
_HEAD = 6
_WIDTH = 100  # of a printed statement


@dataclass(frozen=True, eq=False, repr=False)
class Synthesized:
    """Records with synthetic values in some columns, and the statement that goes with them.

    `discreet.synthesize` makes a `Synthetic` for publication, or with `simulate=True` a
    `SyntheticTrial`. Both can be measured.

    Attributes:
      frame: The records in the frame library in which they were given, or in Arrow.
      statement: What was done and what it promises.
      confidential: The columns whose values are synthetic.
      model: The model in one spelling.
      method: The method's name in the registry.
    """

    frame: Any
    statement: Statement
    confidential: tuple[str, ...]
    model: str
    method: str


@dataclass(frozen=True, eq=False, repr=False)
class Synthetic(show.Frames, Synthesized):
    """**Public.** Synthetic records that may be shown and handed out, with their statement.

    Made by `discreet.synthesize`.
    """

    def to_arrow(self) -> pa.Table:
        """The records as an Arrow table."""
        return to_arrow(self.frame)

    def save(self, path: str | Path) -> Path:
        """Write the records and their statement.

        Args:
          path: A name that ends in `.parquet`, where the statement is part of the file, or in
            `.csv`, where it lies beside it for people and programs.
        """
        return save(self, path)

    def __repr__(self) -> str:
        said = textwrap.fill(self.statement.text, _WIDTH)
        rows = self._rows()
        return "\n".join([self._title(), *show.aligned(rows, right=range(len(rows[0]))), said])

    def _repr_html_(self) -> str:
        return show.html_table(self._title(), self._rows(), self.statement.text)

    def _rows(self) -> list[Sequence[str]]:
        """Names of the columns, and the first records."""
        head = self.to_arrow().slice(0, _HEAD)
        columns = (map(_shown, column.to_pylist()) for column in head.columns)
        return [head.column_names, *zip(*columns, strict=True)]

    def _title(self) -> str:
        n = len(self.to_arrow())
        return f"Synthetic: {n:,} records, {', '.join(self.confidential)} by {self.method}"


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticTrial(Synthesized):
    """**Confidential.** One draw of an experiment, to be measured and thrown away.

    What a seed draws can be drawn again, and whoever knows the noise solves for the original; so a
    trial is neither shown nor written. Made by `discreet.synthesize` with `simulate=True`.

    Attributes:
      details: What the method found out on the way, such as the rank of the residuals.
    """

    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"SyntheticTrial (confidential): {', '.join(self.confidential)} by {self.method}"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return "" if value is None else str(value)


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
