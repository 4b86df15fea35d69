"""The paper's table, and its suppressed cells as decimals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.table import Table
from discreet.protect.suppress.decimals import Decimals, Replaced
from discreet.protect.suppress.pattern import Pattern
from discreet.randomness import stream
from discreet_studies.model import STAR, by_row
from discreet_studies.regression_decimals import printed

Real = NDArray[np.float64]

ROWS = ("row1", "row2", "row3", "row4")
COLUMNS = ("col1", "col2", "col3", "col4")
TOTAL = "Total"


class Example:
    """Table 1 with the paper's pattern.

    Args:
      seed: Root of the random residuals.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.texts = by_row(printed.TABLE_1)
        self.design = Design.product({"row": ROWS, "col": COLUMNS}, "row*col")
        inner = [int(text.rstrip(STAR)) for row in ROWS for text in self.texts[row][:-1]]
        self.table = Table.from_inner(self.design, np.array(inner))

    @cached_property
    def pattern(self) -> Pattern:
        """The paper's five sensitive cells, and the four that protect them."""
        labels = {
            (row, col): "p" if (row, col) in printed.PRIMARY else "s"
            for row in ROWS
            for col, text in zip(COLUMNS, self.texts[row], strict=False)
            if text.endswith(STAR)
        }
        return Pattern.from_labels(self.table, labels)

    def decimals(self, options: Decimals, name: str = "residual") -> Replaced:
        """The table with decimals, from a stream of its own name."""
        return options(self.pattern, rng=stream(self.seed, f"decimals:{name}"))

    @cached_property
    def fitted(self) -> Real:
        """Inner cells as fitted from the published cells alone."""
        return self.decimals(Decimals("none")).y

    @cached_property
    def fitted_modulo_10(self) -> Real:
        """Inner cells fitted modulo 10."""
        return self.decimals(Decimals("none", modulo=10)).y

    def cell(self, row: str, column: str) -> Mapping[str, str]:
        """A published cell by the names of its row and column."""
        pairs = (("row", row), ("col", column))
        return {name: code for name, code in pairs if code != TOTAL}

    def at(self, values: NDArray[np.generic], row: str, column: str) -> float:
        """A published value."""
        return float(values[self.design.position(self.cell(row, column))])

    def read(self, text: str) -> Real:
        """Inner cells of a table in the paper's layout."""
        rows: Mapping[str, Sequence[str]] = by_row(text)
        return np.array([float(value) for row in ROWS for value in rows[row][:-1]])

    def printed_residual(self) -> Real:
        """Table 2's random values on all inner cells, less the fit; zero where cells are shown."""
        found = np.zeros(self.design.n_inner)
        for name, texts in by_row(printed.TABLE_2).items():
            row, column = name.split(",")
            place = self.design.inner_position({"row": row, "col": column})
            found[place] = float(texts[1]) - self.fitted[place]
        return found
