"""Utility of synthetic records: overlap of intervals, agreement of margins, propensity scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from scipy.special import expit, stdtrit

from discreet.arrays import Array, Index, Real
from discreet.assessment.cells import hellinger
from discreet.assessment.measure import POSITIVE, NotApplicableError, Score
from discreet.assessment.microdata.record_sets import (
    ORIGINAL,
    SYNTHETIC,
    RecordMeasure,
    RecordSets,
    main_effects,
    row_classes,
    with_products,
)
from discreet.errors import ParameterError

_MOST = 1_000
_DEPENDENT = 1e-9
Intervals = tuple[Array, Array]


@dataclass(frozen=True)
class IntervalOverlap(RecordMeasure):
    r"""Overlap of confidence intervals of regression coefficients, mean over coefficients.

    For intervals :math:`(L_o, U_o)` of the original and :math:`(L_s, U_s)` of the synthetic
    records, with :math:`L = \max(L_o, L_s)`, :math:`U = \min(U_o, U_s)`,

    .. math:: J = \frac12\left(\frac{U - L}{U_o - L_o} + \frac{U - L}{U_s - L_s}\right)

    and 0 where they do not meet. Each column of numbers is regressed on all other columns, the
    constant left out of the mean. Coefficients that the synthetic records cannot estimate count
    as 0. Range: 0 to 1 (the same intervals). Higher is better. The breakdown has a row for each
    coefficient.

    >>> same = {"y": [1.0, 2.0, 4.0, 3.0, 7.0], "x": [1.0, 2.0, 3.0, 4.0, 5.0]}
    >>> IntervalOverlap()(same, same).value
    1.0

    Args:
      targets: The columns that are regressed on the others; by default all numbers.
      level: Level of the intervals.

    See Karr et al. (2006).
    """

    name = "interval-overlap"
    kind = "utility"
    direction = "higher"

    targets: tuple[str, ...] | None = None
    level: float = 0.95

    def __call__(self, original: Any, synthetic: Any) -> Score:
        if not 0 < self.level < 1:
            raise ParameterError(f"level must lie between 0 and 1, got {self.level}.")
        sets = self.sets(original, synthetic)
        rows = [row for target in self._targets(sets) for row in self._compare_target(sets, target)]
        if not rows:
            raise NotApplicableError("there are no coefficients to compare.")
        names = ("target", "coefficient", "low", "high", "synthetic_low", "synthetic_high")
        parts = dict(zip((*names, "overlap"), map(list, zip(*rows, strict=True)), strict=True))
        on = f"{', '.join(dict.fromkeys(parts['target']))} on the other columns"
        return self.score(np.mean(parts["overlap"]), on, parts)

    def _targets(self, sets: RecordSets) -> list[str]:
        for name in self.targets or ():
            if name not in sets.numbers:
                raise NotApplicableError(f"column {name!r} does not hold numbers in both.")
        found = list(sets.numbers) if self.targets is None else list(self.targets)
        if not found or len(sets.names) < 2:
            raise NotApplicableError("there is no column of numbers beside another column.")
        return found

    def _compare_target(self, sets: RecordSets, target: str) -> Iterator[tuple[Any, ...]]:
        blocks = main_effects(sets, _MOST)
        y = blocks.pop(target)[:, 0]
        names = ["constant"]
        for name, block in blocks.items():
            names += [name if block.shape[1] == 1 else f"{name} {j}" for j in range(block.shape[1])]
        X = np.column_stack([np.ones(len(y)), *blocks.values()])
        before, after = sets.rows(ORIGINAL), sets.rows(SYNTHETIC)
        kept = _independent(X[before])
        if len(y[before]) <= len(kept):
            raise NotApplicableError(f"there are too few records to regress {target!r}.")
        o = intervals(X[before][:, kept], y[before], self.level)
        s = intervals(X[after][:, kept], y[after], self.level)
        for place, column in enumerate(kept.tolist()):
            if column > 0:
                ends = o[0][place], o[1][place], s[0][place], s[1][place]
                yield (target, names[column], *map(float, ends), overlap(*map(float, ends)))


def overlap(low: float, high: float, other_low: float, other_high: float) -> float:
    """How much two intervals have in common, relative to each of them.

    >>> overlap(0, 2, 1, 3), overlap(0, 1, 2, 3), overlap(0, 4, 1, 2)
    (0.5, 0.0, 0.625)
    """
    if np.isnan(other_low) or np.isnan(other_high):
        return 0.0
    widths = high - low, other_high - other_low
    common = min(high, other_high) - max(low, other_low)
    if min(widths) <= 0:
        return float(common >= 0 and widths[0] == widths[1])
    return max(0.0, 0.5 * (common / widths[0] + common / widths[1]))


def intervals(X: Real, y: Array, level: float) -> Intervals:
    """Confidence intervals of the coefficients; NaN for those that cannot be estimated."""
    kept = _independent(X)
    freedom = len(y) - len(kept)
    low, high = np.full(X.shape[1], np.nan), np.full(X.shape[1], np.nan)
    if freedom < 1:
        return low, high
    Q, R = linalg.qr(X[:, kept], mode="economic")
    inverse = linalg.solve_triangular(R, np.eye(len(kept)))
    b = inverse @ (Q.T @ y)
    variance = float(((y - X[:, kept] @ b) ** 2).sum()) / freedom
    reach = stdtrit(freedom, (1 + level) / 2) * np.sqrt(variance * (inverse**2).sum(axis=1))
    low[kept], high[kept] = b - reach, b + reach
    return low, high


def _independent(X: Real) -> Index:
    """Places of columns of which none depends on those before it."""
    R = linalg.qr(X, mode="r")[0]
    size = np.sqrt(np.einsum("ij,ij->j", X, X))
    kept: list[int] = []
    basis = np.zeros((len(R), 0))
    for j in range(X.shape[1]):
        rest = R[:, j] - basis @ (basis.T @ R[:, j])
        # A second pass: one alone loses its digits where columns nearly depend on each other.
        rest -= basis @ (basis.T @ rest)
        length = float(np.sqrt(rest @ rest))
        if length > _DEPENDENT * max(float(size[j]), np.finfo(float).tiny):
            kept.append(j)
            basis = np.column_stack([basis, rest / length])
    return np.array(kept, dtype=np.intp)


@dataclass(frozen=True)
class MarginUtility(RecordMeasure):
    r"""Hellinger utility of the tables by k columns, mean over all of them.

    :math:`1 - \mathrm{HD}(f, g)/\sqrt{\sum f}` with the counts f of the original and g of the
    synthetic records, scaled to the same total. Numbers are cut into classes at quantiles of the
    original. Range: 0 to 1 (the same tables). Higher is better. The breakdown has a row for each
    table.

    >>> both = {"a": ["x", "x", "y", "y"]}, {"a": ["x", "x", "x", "y"]}
    >>> round(MarginUtility(way=1)(*both).value, 4)
    0.8154

    Args:
      way: How many columns are crossed; all of them where there are fewer.
      classes: Number of classes of a column of numbers.
    """

    name = "margin-utility"
    kind = "utility"
    direction = "higher"

    way: int = 2
    classes: int = 5

    def __call__(self, original: Any, synthetic: Any) -> Score:
        if self.way < 1 or self.classes < 2:
            raise ParameterError(
                f"way must be at least 1 and classes at least 2, got {self.way} and {self.classes}."
            )
        sets = self.sets(original, synthetic)
        coded = {name: sets.classes(name, self.classes) for name in sets.names}
        before, after = sets.rows(ORIGINAL), sets.rows(SYNTHETIC)
        scale = sets.sizes[ORIGINAL] / sets.sizes[SYNTHETIC]
        parts: dict[str, list[Any]] = {"table": [], "cells": [], "distance": [], "utility": []}
        for chosen in combinations(coded, min(self.way, len(coded))):
            cells = row_classes([coded[name] for name in chosen])
            f, g = (np.bincount(cells[r], minlength=cells.max() + 1) for r in (before, after))
            distance = hellinger(f.astype(np.float64), scale * g)
            utility = 1 - distance / math.sqrt(sets.sizes[ORIGINAL])
            for column, value in zip(
                parts, (" × ".join(chosen), len(f), distance, utility), strict=True
            ):
                parts[column].append(value)
        if not parts["table"]:
            raise NotApplicableError("there are no tables to compare.")
        return self.score(np.mean(parts["utility"]), f"{self.way}-way tables of {sets.on}", parts)


_MOST_REGRESSED = 600
"""Largest number of columns of the regression; fewer where there are few records."""
_RECORDS = 5
"""Records needed for each column."""
_STEPS, _FLAT = 60, 1e-9
_FAR = 30.0
"""Log-odds at which a record counts as recognised."""


@dataclass(frozen=True)
class PropensityError(RecordMeasure):
    r"""How well a logistic regression tells synthetic from original records, pMSE.

    With :math:`\hat p_i` the fitted probability that record i of all N is synthetic, and c the
    share of synthetic records,

    .. math:: \mathrm{pMSE} = \frac1N \sum_i (\hat p_i - c)^2

    Range: 0 to :math:`c(1 - c)`. Lower is better. The regression holds all columns, and with
    `order=2` their squares and products. It sees nothing else. The breakdown gives the value
    expected of correct synthesis and the ratio to it.

    >>> PropensityError()({"a": [1.0, 2.0, 3.0] * 9}, {"a": [3.0, 1.0, 2.0] * 9}).value < 1e-12
    True

    Args:
      order: 1 for the columns alone, 2 with squares and products.

    See Woo et al. (2009), Snoke et al. (2018).
    """

    name = "pmse"
    kind = "utility"
    range = (0.0, 0.25)
    shown: ClassVar[str] = "pMSE"

    order: int = 2

    def __call__(self, original: Any, synthetic: Any) -> Score:
        if self.order not in (1, 2):
            raise ParameterError(f"order must be 1 or 2, got {self.order!r}.")
        sets = self.sets(original, synthetic)
        N = sum(sets.sizes)
        most = min(_MOST_REGRESSED, N // _RECORDS)
        blocks = main_effects(sets, most)
        X = with_products(blocks, most) if self.order > 1 else np.hstack(list(blocks.values()))
        X = _without_dependent(np.column_stack([np.ones(N), X]))
        is_synthetic = sets.is_in(SYNTHETIC)
        c = float(is_synthetic.mean())
        error = float(np.mean((fitted_probabilities(X, is_synthetic) - c) ** 2))
        expected = (X.shape[1] - 1) * (1 - c) ** 2 * c / N
        ratio = error / expected if expected > 0 else 1.0
        found = {"pMSE": error, "expected": expected, "ratio": ratio, "parameters": X.shape[1]}
        parts = {"figure": list(found), "value": list(found.values())}
        return self.score(found[self.shown], sets.on, parts)


@dataclass(frozen=True)
class PropensityRatio(PropensityError):
    r"""pMSE relative to the value expected of correct synthesis.

    Records drawn from a right model whose parameters were estimated from the original have

    .. math:: E(\mathrm{pMSE}) = (k - 1)(1 - c)^2 c / N

    with k parameters of the regression. Range: 0 upwards; 1 is what correct synthesis has, and
    values below it mean that the synthetic records are nearer to the original than that, because
    they copy columns or preserve moments exactly. Lower is better.

    >>> PropensityRatio()({"a": [1.0, 2.0, 3.0] * 9}, {"a": [3.0, 1.0, 2.0] * 9}).value < 1e-9
    True

    See Snoke et al. (2018).
    """

    name = "pmse-ratio"
    range = POSITIVE
    shown = "ratio"


def fitted_probabilities(X: Real, is_one: np.ndarray) -> Array:
    """Probabilities of a logistic regression by Newton's method.

    Where the records can be told apart without error there is no largest likelihood; the steps
    stop as soon as the probabilities no longer move.

    Args:
      X: Independent columns, the constant among them.
      is_one: The outcome.
    """
    t = is_one.astype(np.float64)
    eta = np.zeros(len(t))
    likelihood = _log_likelihood(eta, t)
    for _ in range(_STEPS):
        p = expit(eta)
        w = np.maximum(p * (1 - p), 1e-12)
        H = X.T @ (X * w[:, None])
        # Records that are told apart without error leave H singular; so little moves no other fit.
        H[np.diag_indices_from(H)] *= 1 + 1e-10
        direction = X @ linalg.solve(H, X.T @ (t - p), assume_a="pos")
        eta, gained = _step(eta, direction, t, likelihood)
        likelihood += gained
        if gained <= _FLAT or np.abs(eta).min() > _FAR:
            break
    return np.asarray(expit(eta))


def _step(eta: Array, direction: Array, t: Array, likelihood: float) -> tuple[Array, float]:
    """The longest of ever shorter steps that does not lose likelihood, and what it gains."""
    size = 1.0
    while size > 1e-6:
        tried = eta + size * direction
        gained = _log_likelihood(tried, t) - likelihood
        if gained >= 0:
            return tried, gained
        size /= 2
    return eta, 0.0


def _log_likelihood(eta: Array, t: Array) -> float:
    return float(t @ eta - np.logaddexp(0, eta).sum())


def _without_dependent(X: Real) -> Real:
    """Columns of which none depends on the others, the first one kept."""
    size = np.sqrt(np.einsum("ij,ij->j", X, X))
    X = X[:, size > 0] / size[size > 0]
    R, order = linalg.qr(X, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    kept = order[: int((diagonal > _DEPENDENT * diagonal[0]).sum())]
    return np.asarray(X[:, np.sort(kept)])
