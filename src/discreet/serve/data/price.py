"""What a table will cost, before anything is counted for it.

A price follows from what the public knows: how many categories the variables have, and how many
records the office says there are. Two data sets that differ in their records alone have the same
prices, so neither a price nor what follows from it (a refusal, a place in the queue) tells of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from discreet.serve.data.source import DetailedVariable

UNDECLARED_RECORDS = 1_000_000
"""Records that a price is made for where the office does not say how many there are."""
# Processor seconds, measured on one core: `python -m benchmarks.serve_price` prints how far prices
# lie from what tables cost.
_START = {"protected": 1e-3, "counted": 0.015, "records": 0.025}  # whatever a table's size
_PER_ROW = {"protected": 6e-9, "counted": 6e-9, "records": 7e-8}  # and variable
_PER_CELL = 8e-7
_PER_INNER = 6e-7  # inner cells that are held, for methods that need them
_START_BYTES = 1_000_000
_BYTES_PER_CELL = 300
_BYTES_PER_INNER = 120
_BYTES_PER_ROW = 24  # of cells in memory
Rows = Literal["protected", "counted", "records"]
"""What is grouped: protected cells that are added up, cells in memory, or records in an engine."""


@dataclass(frozen=True)
class Price:
    """What a table will cost.

    Attributes:
      cells: Cells that are published, totals included.
      inner: Combinations of the finest categories.
      bytes: Memory while it is made, above what the process holds anyway.
      seconds: Processor seconds.
    """

    cells: int
    inner: int
    bytes: int
    seconds: float

    def __add__(self, other: Price) -> Price:
        """What two crossings of the same cells cost together."""
        size, seconds = self.bytes + other.bytes, self.seconds + other.seconds
        return Price(self.cells, max(self.inner, other.inner), size, seconds)


def price_of(
    asked: Sequence[DetailedVariable], kind: Rows, rows: int, *, holds_inner: bool = False
) -> Price:
    """The price of a crossing.

    Args:
      asked: Its variables in the detail asked for.
      kind: What is grouped for it.
      rows: How many of those there are, as far as the public knows.
      holds_inner: Whether every inner cell is held while the table is made.
    """
    cells = math.prod(one.detail.cells for one in asked)
    inner = math.prod(len(one.variable.axis) for one in asked)
    held = min(rows, inner) + (inner if holds_inner else 0)
    seconds = _START[kind] + _PER_ROW[kind] * rows * len(asked) + _PER_CELL * cells
    size = _START_BYTES + _BYTES_PER_CELL * cells + _BYTES_PER_INNER * held
    size += 0 if kind == "records" else _BYTES_PER_ROW * rows
    return Price(cells, inner, size, seconds + _PER_INNER * held)
