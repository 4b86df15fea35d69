"""Synthetic records: public ones in `Synthetic`, those of an experiment in `SyntheticTrial`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.design import show
from discreet.design.frames import to_arrow
from discreet.design.statement import Statement

if TYPE_CHECKING:
    import pyarrow as pa

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
        from discreet.synthesize.files import save

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
