"""What analyses lose: tests of association, ranks, distances of distributions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kendalltau, rankdata

from discreet.arrays import Array, Real
from discreet.assessment.cells import (
    PairMeasure,
    Pairs,
    columns,
    hellinger,
    released_values,
    require_structured,
    true_values,
)
from discreet.assessment.measure import (
    NO_MECHANISM,
    POSITIVE,
    BaseMeasure,
    NotApplicableError,
    Score,
)
from discreet.errors import DesignError
from discreet.facade.table import Table
from discreet.noise.matrix import TransitionMatrix
from discreet.release.inference import ChiSquareTest, chi_square_test
from discreet.release.inference.law import block_array, step_size
from discreet.tables.protected import Protected

Tested = tuple[str, ChiSquareTest, Array]


@dataclass(frozen=True)
class _Association(BaseMeasure):
    """A measure of the two-way tables; the breakdown has a row for each."""

    kind = "utility"

    def tests(self, table: Table, release: Protected) -> list[Tested]:
        """Name and test of every true two-way table that varies, with its released form."""
        tables = two_way_tables(table, release)
        found = [(name, chi_square_test(f), g) for name, f, g in tables]
        varying = [row for row in found if row[1].freedom]
        if not varying:
            raise NotApplicableError("no published two-way table has two filled rows and columns.")
        return varying

    @abstractmethod
    def shift(self, f: ChiSquareTest, g: ChiSquareTest) -> float:
        """How far the test of a released table is from that of the true one."""

    def __call__(self, table: Table, release: Protected) -> Score:
        rows = [(name, f, chi_square_test(g)) for name, f, g in self.tests(table, release)]
        shift = np.mean([self.shift(f, g) for _, f, g in rows])
        return self.score(shift, f"two-way {release.unit}s", _parts(rows))


class ChiSquareShift(_Association):
    r"""Change of the chi-square statistic per degree of freedom, mean over two-way tables.

    .. math:: |X^2(g) - X^2(f)| / ((r - 1)(c - 1)), \qquad X^2 = \sum(o - e)^2 / e

    Rows and columns without counts are left out; nothing is corrected for a survey design, so
    weighted counts inflate the statistic by about their average weight. Range: 0 upwards. Lower
    is better. The breakdown gives statistic, degrees of freedom, p-value and Cramér's V of both.

    >>> from discreet.assessment.cells import toy
    >>> round(ChiSquareShift()(*toy([[20, 10], [10, 20]], [[15, 15], [15, 15]])).value, 4)
    6.6667

    See Shlomo, Krenzke & Li (2019), Figures 2 and 3.
    """

    name = "chi-square-shift"
    range = POSITIVE

    def shift(self, f: ChiSquareTest, g: ChiSquareTest) -> float:
        """Change of the statistic per degree of freedom."""
        return abs(g.statistic - f.statistic) / f.freedom


class CramersVShift(_Association):
    r"""Change of Cramér's V, :math:`|V(g) - V(f)|`, mean over two-way tables.

    .. math:: V = \sqrt{X^2 / (N \min(r - 1, c - 1))}

    Range: 0 to 1. Lower is better. The breakdown is that of the chi-square shift.

    >>> from discreet.assessment.cells import toy
    >>> round(CramersVShift()(*toy([[20, 10], [10, 20]], [[15, 15], [15, 15]])).value, 4)
    0.3333
    """

    name = "cramers-v-shift"

    def shift(self, f: ChiSquareTest, g: ChiSquareTest) -> float:
        """Change of Cramér's V."""
        return abs(g.cramers_v - f.cramers_v)


@dataclass(frozen=True)
class ChangedDecisions(_Association):
    r"""Share of two-way tables whose test of independence ends otherwise after protection.

    .. math:: \#\{[p(f) < \alpha] \ne [p(g) < \alpha]\} / \#\text{tables}

    Range: 0 to 1. Lower is better. The breakdown is that of the chi-square shift.

    >>> from discreet.assessment.cells import toy
    >>> ChangedDecisions()(*toy([[20, 10], [10, 20]], [[15, 15], [15, 15]])).value
    1.0

    Args:
      level: The level of the test, α.
    """

    name = "changed-decisions"

    level: float = 0.05

    def shift(self, f: ChiSquareTest, g: ChiSquareTest) -> float:
        """Whether the decisions differ."""
        return float((f.p_value < self.level) != (g.p_value < self.level))


@dataclass(frozen=True)
class AdjustedChiSquare(_Association):
    r"""Change of the p-value of independence when the user allows for the known noise.

    The mean over two-way tables of :math:`|p^*(g) - p(f)|`, with :math:`p^*` from the chi-square
    test that adds the mechanism's variance to that of the counts. The naive test of noisy values
    rejects independence too often; the breakdown shows both p-values side by side.
    Range: 0 to 1. Lower is better.

    >>> from discreet.assessment.cells import toy
    >>> from discreet.noise import drop_add
    >>> score = AdjustedChiSquare(mechanism=drop_add())(*toy([[4, 4], [4, 4]], [[5, 3], [3, 5]]))
    >>> [round(p, 4) for p in score.breakdown.to_pylist()[0].values() if isinstance(p, float)]
    [1.0, 0.3173, 0.3539, 1.1636]

    Args:
      mechanism: The transition matrix that was applied to each cell of the two-way tables.

    See `discreet.release.inference.chi_square`; Shlomo, Krenzke & Li (2019), Figure 4.
    """

    name = "adjusted-chi-square"

    mechanism: TransitionMatrix | None = None

    def shift(self, f: ChiSquareTest, g: ChiSquareTest) -> float:
        """Change of the p-value."""
        return abs(g.p_value - f.p_value)

    def __call__(self, table: Table, release: Protected) -> Score:
        if self.mechanism is None:
            raise NotApplicableError(NO_MECHANISM)
        try:
            step = step_size(release)
        except DesignError as error:  # the statement does not tell what a unit of noise adds
            raise NotApplicableError(str(error)) from None
        rows = [
            (name, f, chi_square_test(g), chi_square_test(g, self.mechanism, step))
            for name, f, g in self.tests(table, release)
        ]
        parts: dict[str, Any] = {
            "table": [name for name, *_ in rows],
            "true_p": [f.p_value for _, f, _, _ in rows],
            "naive_p": [naive.p_value for _, _, naive, _ in rows],
            "adjusted_p": [adjusted.p_value for *_, adjusted in rows],
            "inflation": [adjusted.inflation for *_, adjusted in rows],
        }
        shift = np.mean([self.shift(f, adjusted) for _, f, _, adjusted in rows])
        return self.score(shift, f"two-way {release.unit}s", parts)


def two_way_tables(table: Table, release: Protected) -> Iterator[tuple[str, Array, Array]]:
    """Name, true and released matrix of every published two-way table that is fully shown."""
    design = require_structured(release.design)
    f = true_values(table, design, "published", release.unit)
    g = released_values(release, "published")
    for k, block in enumerate(design.blocks):
        if block.order == 2 and not np.isnan(g[design.slice_of(k)]).any():
            yield block.name, block_array(design, k, f), block_array(design, k, g)


def _parts(rows: list[tuple[str, ChiSquareTest, ChiSquareTest]]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"table": [name for name, _, _ in rows]}
    for side, place in (("true", 1), ("released", 2)):
        for name in ("statistic", "freedom", "p_value", "cramers_v"):
            columns[f"{side}_{name}"] = [getattr(row[place], name) for row in rows]
    return columns


CORRELATION = (-1.0, 1.0)


@dataclass(frozen=True)
class RankCorrelation(PairMeasure):
    r"""Correlation of the ranks within a table, mean over tables weighted by cells.

    Spearman's :math:`\rho = \mathrm{corr}(\mathrm{rank} f, \mathrm{rank} g)`, where equal values
    share their mean rank, or Kendall's :math:`\tau_b = (C - D) / \sqrt{(n_0 - n_f)(n_0 - n_g)}`
    with C concordant and D discordant pairs among :math:`n_0` and :math:`n_f`, :math:`n_g` pairs
    tied in truth and release. Tables in which all values are equal are left out.
    Range: -1 to 1. Higher is better.

    >>> from discreet.assessment.cells import toy
    >>> pair = toy([1, 2, 3, 4], [1, 3, 2, 4])
    >>> [round(RankCorrelation(concordance=c)(*pair).value, 4) for c in (False, True)]
    [0.8, 0.6667]

    Args:
      concordance: Whether pairs in the same order are counted, after Kendall.
    """

    kind = "utility"
    range = CORRELATION
    direction = "higher"

    concordance: bool = False

    @property
    def name(self) -> str:
        """Spearman's or Kendall's."""
        return "rank-concordance" if self.concordance else "rank-correlation"

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        rows = [
            (name, len(f), self._correlation(f, g))
            for name, f, g in pair.blocks()
            if len(f) > 1 and np.ptp(f) > 0 and np.ptp(g) > 0
        ]
        if not rows:
            raise NotApplicableError("no published table has two different values to rank.")
        value = np.average([r for _, _, r in rows], weights=[n for _, n, _ in rows])
        return self.score(
            np.clip(value, *CORRELATION), pair.on, columns(("table", "cells", "correlation"), rows)
        )

    def _correlation(self, f: Array, g: Array) -> float:
        if self.concordance:
            return float(kendalltau(f, g).statistic)
        return float(np.corrcoef(_ranks(f), _ranks(g))[0, 1])


@dataclass(frozen=True)
class LargestRankMove(PairMeasure):
    r"""Most places that a cell moves in the ranking of its table.

    .. math:: \max|r_f - r_g|

    Equal values share their mean rank. Range: 0 upwards. Lower is better.

    >>> from discreet.assessment.cells import toy
    >>> LargestRankMove()(*toy([1, 2, 3, 4], [5, 2, 3, 4])).value
    3.0
    """

    name = "largest-rank-move"
    kind = "utility"
    range = POSITIVE

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        rows = [
            (name, len(f), float(np.abs(_ranks(f) - _ranks(g)).max()))
            for name, f, g in pair.blocks()
            if len(f)
        ]
        value = max(move for _, _, move in rows)
        return self.score(value, pair.on, columns(("table", "cells", "largest_move"), rows))


def _ranks(values: Array) -> Real:
    return rankdata(values)


@dataclass(frozen=True)
class HellingerDistance(PairMeasure):
    r"""Hellinger distance between the true cells and the released ones.

    .. math:: \mathrm{HD} = \sqrt{\tfrac12\sum(\sqrt f - \sqrt g)^2}

    Range: 0 upwards. Lower is better. Not scaled: it grows with the table.
    The breakdown gives distance and utility by number of crossed variables.

    >>> from discreet.assessment.cells import toy
    >>> HellingerDistance()(*toy([4, 9, 0], [9, 4, 0])).value
    1.0

    Args:
      signed: Whether a released value may be negative; its root then keeps the sign.

    See Shlomo, Krenzke & Li (2019); signed: Langsrud (2019b), equation 4.
    """

    name = "hellinger-distance"
    kind = "utility"
    range = POSITIVE

    signed: bool = True

    def value(self, pair: Pairs) -> float:
        """The distance."""
        return hellinger(pair.f, pair.g)

    def __call__(self, table: Table, release: Protected) -> Score:
        pair = self.pairs(table, release)
        if not self.signed and (pair.g < 0).any():
            raise NotApplicableError("released values are negative; use signed=True.")
        return self.score(self.value(pair), pair.on, _by_order(pair))


@dataclass(frozen=True)
class HellingerUtility(HellingerDistance):
    r"""Hellinger utility: one minus the Hellinger distance in units of the root of the total.

    .. math:: 1 - \mathrm{HD}(f, g) / \sqrt{\sum f}

    Range: up to 1 (nothing changed); at least 0 for counts with the right total, below 0 for
    wild ones. Higher is better. Options and breakdown are those of the Hellinger distance.

    >>> from discreet.assessment.cells import toy
    >>> round(HellingerUtility()(*toy([4, 9, 3], [9, 4, 3])).value, 4)
    0.75

    See Shlomo, Antal & Elliot (2015), Langsrud & Lupp (2021), equation 3.
    """

    name = "hellinger-utility"
    range = (-math.inf, 1.0)
    direction = "higher"

    def value(self, pair: Pairs) -> float:
        """One minus the distance relative to its largest size."""
        total = float(pair.f.sum())
        if not total > 0:
            raise NotApplicableError("the true total is zero, so nothing can be related to it.")
        return 1 - hellinger(pair.f, pair.g) / math.sqrt(total)


def _by_order(pair: Pairs) -> dict[str, list[Any]]:
    """Distance and utility of the one-way, two-way, … cells."""
    orders = pair.orders()
    rows = []
    for order in np.unique(orders):
        f, g = pair.f[orders == order], pair.g[orders == order]
        distance, total = hellinger(f, g), float(f.sum())
        utility = 1 - distance / math.sqrt(total) if total > 0 else None
        rows.append((int(order), len(f), distance, utility))
    return columns(("variables", "cells", "distance", "utility"), rows)
