r"""What it costs to hide a cell, drawn from the secret.

Which cells are hidden is published too. Where costs follow from the true values alone, whoever runs
the program on every table with the same shown cells can rule out those that would have been hidden
in another way. So each cost has a factor :math:`e^{\sigma g}`, with `g` a normal number made from
the secret, the data set and the cell's codes, and from nothing else: other editions, rules, tables
and efforts have the same factors, and no two of them tell more about the factors than one.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Real
from discreet.design.base import Cell, Design
from discreet.tables.truth import TrueTable

SPREAD = 0.3
"""The factors' standard deviation, in logarithms (`docs/methods/suppress.md` has the figures)."""
_PURPOSE = "cost of hiding a cell"
_WORDS = 2.0**32  # keyed hashes lie below this


def draw_factors(table: TrueTable) -> Real | None:
    """A factor on the cost of each published cell; `None` where the table has no secret."""
    if table.secret is None:
        return None
    from scipy.special import ndtri  # start-up time

    marks = table.secret.cell_marks(_definitions(table.design))
    words = table.secret.mixed(marks, f"{_PURPOSE}: {table.data_set.name}")
    return np.asarray(np.exp(SPREAD * ndtri((words + 0.5) / _WORDS)), dtype=np.float64)


def _definitions(design: Design) -> list[Cell]:
    """What identifies each published cell in every table that has it."""
    if not design.axes:
        return [{"cell": str(k)} for k in range(design.n_published)]
    return [design.cell(k) for k in range(design.n_published)]
