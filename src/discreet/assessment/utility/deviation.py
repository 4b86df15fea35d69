"""How far published cells are from the truth: deviations, totals, false zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from discreet.arrays import Array
from discreet.assessment.cells import (
    CLASS_STARTS,
    NEARLY_ZERO,
    PairMeasure,
    Pairs,
    by_class,
    check_choice,
    columns,
    without_withheld,
)
from discreet.assessment.measure import EVERYTHING, POSITIVE, BaseMeasure, NotApplicableError, Score
from discreet.facade.table import Table
from discreet.tables.protected import Protected

Summary = Literal["mean", "median", "max", "root-mean-square"]
SUMMARIES: dict[Summary, Callable[[Array], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "max": np.max,
    "root-mean-square": lambda d: math.sqrt(np.square(d, dtype=np.float64).mean()),
}


@dataclass(frozen=True)
class Deviation(PairMeasure):
    r"""A summary of the deviations of all cells, :math:`|f - g|` or :math:`|f - g|/f`.

    The mean is :math:`\sum|f - g|/n`, the root mean square :math:`\sqrt{\sum(f - g)^2/n}`. Relative
    deviations are those of the cells with :math:`f > 0`. Range: 0 upwards. Lower is better. The
    breakdown gives cells and all summaries by class of the true value.

    >>> from discreet.assessment.cells import toy
    >>> pair = toy([4, 8, 2], [5, 6, 4])
    >>> [round(float(Deviation(summary=s)(*pair).value), 4) for s in SUMMARIES]
    [1.6667, 2.0, 2.0, 1.7321]
    >>> [Deviation(summary=s, relative=True)(*pair).value for s in ("mean", "median", "max")]
    [0.5, 0.25, 1.0]

    Args:
      summary: ``"mean"``, ``"median"``, ``"max"`` or ``"root-mean-square"``.
      relative: Whether deviations are divided by the true value.
      classes: First value of each class of true values.

    See Langsrud (2019b), Tables 11 and 12.
    """

    kind = "utility"
    range = POSITIVE

    summary: Summary = "mean"
    relative: bool = False
    classes: tuple[int, ...] = CLASS_STARTS

    def __post_init__(self) -> None:
        check_choice("summary", self.summary, get_args(Summary))

    @property
    def name(self) -> str:
        """Such as ``"mean-absolute-deviation"``."""
        if self.summary == "root-mean-square" and not self.relative:
            return self.summary
        return f"{self.summary}-{'relative' if self.relative else 'absolute'}-deviation"

    @property
    def meaning(self) -> str:
        """What this one of the family says."""
        of = "|f − g|/f over the cells with f > 0" if self.relative else "|f − g|"
        return f"{self.name.replace('-', ' ').capitalize()}: the {self.summary} of {of}."

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        f, d = _relative(pair) if self.relative else (pair.f, pair.g - pair.f)
        moved = np.abs(d)
        parts = by_class(f, moved, self.classes, SUMMARIES)
        return self.score(SUMMARIES[self.summary](moved), pair.on, parts)


@dataclass(frozen=True)
class MeanPercentageError(PairMeasure):
    r"""Mean signed percentage error, the mean of :math:`100(g - f)/f` over cells with f > 0.

    Above zero, cells are published too large. Range: all numbers. Nearer zero is better. The
    breakdown gives cells and the mean by class of the true value: noise that is unbiased over the
    whole table may still raise small counts and lower large ones.

    >>> from discreet.assessment.cells import toy
    >>> score = MeanPercentageError()(*toy([1, 2, 200, 0], [2, 2, 190, 3]))
    >>> round(score.value, 4), score.breakdown.to_pydict()["mean"]
    (31.6667, [50.0, -5.0])

    Args:
      classes: First value of each class of true values.
    """

    name = "mean-percentage-error"
    kind = "utility"
    range = EVERYTHING
    direction = "zero"

    classes: tuple[int, ...] = CLASS_STARTS

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        f, d = _relative(pair)
        parts = by_class(f, 100 * d, self.classes, {"mean": np.mean})
        return self.score(100 * d.mean(), pair.on, parts)


@dataclass(frozen=True)
class InaccurateCells(PairMeasure):
    r"""Share of the filled cells that are off by more than 5 %, or another limit.

    .. math:: \#\{f > 0, |g - f| > \lambda f\} / \#\{f > 0\}

    Range: 0 to 1. Lower is better. The breakdown gives cells and share by class of the true value.

    >>> from discreet.assessment.cells import toy
    >>> InaccurateCells()(*toy([1, 100, 200, 0], [2, 105, 189, 3])).value
    0.6666666666666666

    Args:
      limit: The share of the true value, λ, that a cell may be off by.
      classes: First value of each class of true values.
    """

    name = "inaccurate-cells"
    kind = "utility"

    limit: float = 0.05
    classes: tuple[int, ...] = CLASS_STARTS

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        f, d = _relative(pair)
        off = np.abs(d) > self.limit * (1 + 1e-12)  # 105 is off by 5 % of 100, not by more
        return self.score(off.mean(), pair.on, by_class(f, off, self.classes, {"share": np.mean}))


def _relative(pair: Pairs) -> tuple[Array, Array]:
    """True values and relative deviations of the cells that are not empty."""
    filled = pair.f > 0
    if not filled.any():
        raise NotApplicableError("every true value is zero, so nothing is relative to it.")
    f = pair.f[filled]
    return f, (pair.g[filled] - f) / f


@dataclass(frozen=True)
class TotalBias(PairMeasure):
    r"""Change of the sum over a published table, mean over the tables.

    .. math:: \sum g - \sum f

    Range: all numbers. Nearer zero is better. The breakdown has a row for each published table.

    >>> from discreet.assessment.cells import toy
    >>> TotalBias()(*toy([4, 9, 0], [5, 9, 2])).value
    3.0
    """

    name = "total-bias"
    kind = "utility"
    range = (-np.inf, np.inf)
    direction = "zero"

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        parts = _totals(pair)
        return self.score(np.mean(parts["bias"]), pair.on, parts)


@dataclass(frozen=True)
class TotalDifference(PairMeasure):
    r"""Percent relative absolute difference of the sum over a table, mean over the tables.

    .. math:: 100\,|\textstyle\sum g - \sum f| / \sum f

    Range: 0 upwards. Lower is better. The breakdown has a row for each published table.

    >>> from discreet.assessment.cells import toy
    >>> TotalDifference()(*toy([40, 60], [42, 59])).value
    1.0

    See Shlomo, Krenzke & Li (2019), Table 5.
    """

    name = "total-difference"
    kind = "utility"
    range = POSITIVE

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        parts = _totals(pair)
        percent = [p for p in parts["percent"] if p is not None]
        if not percent:
            raise NotApplicableError("every true total is zero, so nothing is relative to it.")
        return self.score(np.mean(percent), pair.on, parts)


def _totals(pair: Pairs) -> dict[str, list[Any]]:
    rows = []
    for name, f, g in pair.blocks():
        true, released = float(f.sum()), float(g.sum())
        bias = released - true
        rows.append((name, true, released, bias, 100 * abs(bias) / true if true > 0 else None))
    return columns(("table", "true", "released", "bias", "percent"), rows)


@dataclass(frozen=True)
class FalseZeros(PairMeasure):
    r"""Share of the filled cells released as zero, or of the empty ones released as something.

    .. math:: \#\{f > 0, g = 0\} / \#\{f > 0\} \quad\text{or}\quad
              \#\{f = 0, g \ne 0\} / \#\{f = 0\}

    Range: 0 to 1. Lower is better.

    >>> from discreet.assessment.cells import NEARLY_ZERO, toy
    >>> FalseZeros()(*toy([1, 4, 2, 0], [0, 5, 3, 0])).breakdown.to_pylist()
    [{'cells': 3, 'false': 1}]
    >>> FalseZeros(positives=True)(*toy([1, 4, 0, 0], [0, 5, 3, 0])).value
    0.5

    Args:
      positives: Whether false positives are counted, not false zeros.
      tolerance: Released values up to this size are zeros, for fits with decimals.
    """

    kind = "utility"

    positives: bool = False
    tolerance: float = NEARLY_ZERO

    @property
    def name(self) -> str:
        """What is counted."""
        return "false-positives" if self.positives else "false-zeros"

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        chosen = (pair.f == 0) == self.positives
        if not chosen.any():
            every = "filled" if self.positives else "empty"
            raise NotApplicableError(f"every cell is truly {every}, so none can be false.")
        zero = np.abs(pair.g[chosen]) <= self.tolerance
        n, false = len(zero), int(np.count_nonzero(zero != self.positives))
        return self.score(false / n, pair.on, {"cells": [n], "false": [false]})


@dataclass(frozen=True)
class WithheldCells(BaseMeasure):
    r"""Share of the published cells whose value is suppressed or missing.

    .. math:: \#\{\text{withheld}\} / n

    Range: 0 to 1. Lower is better. Every other measure looks at the cells that are shown.

    >>> from discreet.assessment.cells import NEARLY_ZERO, toy
    >>> WithheldCells()(*toy([1, 4, 5, 6], [float("nan"), 4, 5, 6])).value
    0.25
    """

    name = "withheld-cells"
    kind = "utility"

    def __call__(self, table: Table, release: Protected) -> Score:
        z = without_withheld(release, release.z)
        withheld = np.isnan(z) if z.dtype.kind == "f" else np.zeros(len(z), dtype=bool)
        return self.score(float(withheld.mean()), "published values")
