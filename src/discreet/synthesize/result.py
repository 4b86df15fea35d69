"""Synthetic records: public ones in `Synthetic`, those of an experiment in `SyntheticTrial`."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.design import show
from discreet.design.frames import to_arrow
from discreet.design.statement import Statement

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
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
class Synthetic(Synthesized):
    """**Public.** Synthetic records that may be shown and handed out, with their statement.

    Made by `discreet.synthesize`.
    """

    def to_arrow(self) -> pa.Table:
        """The records as an Arrow table."""
        return to_arrow(self.frame)

    def to_pandas(self) -> pd.DataFrame:
        """The records as a pandas frame."""
        return show.to_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The records as a polars frame."""
        return show.to_polars(self.to_arrow())

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
        head = self.to_arrow().slice(0, _HEAD)
        columns = (map(_shown, column.to_pylist()) for column in head.columns)
        rows = [head.column_names, *zip(*columns, strict=True)]
        widths = [max(len(row[j]) for row in rows) for j in range(head.num_columns)]
        lines = [
            "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
            for row in rows
        ]
        return "\n".join([self._title(), *lines, said])

    def _repr_html_(self) -> str:
        head = self.to_arrow().slice(0, _HEAD)
        names = "".join(f"<th>{html.escape(name)}</th>" for name in head.column_names)
        rows = zip(*(map(_shown, c.to_pylist()) for c in head.columns), strict=True)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(t)}</td>' for t in r)}</tr>" for r in rows)
        caption = f"<caption>{html.escape(self._title())}</caption>"
        table = f"<table>{caption}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"
        return f"{table}<p>{html.escape(self.statement.text)}</p>"

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
