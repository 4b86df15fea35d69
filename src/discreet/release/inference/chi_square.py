r"""Chi-square tests of independence and of fit, naive and with an allowance for known noise.

Noise that is added to a table looks like association. For a table of values
:math:`b = n + u`, with :math:`n` a sample under independence and :math:`u` independent noise,
:math:`X^2 = \sum(b - e)^2/e` is a quadratic form in the residuals, whose covariance is
:math:`P(I + D)P`: :math:`P = (I - \sqrt p\sqrt p^\top)\otimes(I - \sqrt q\sqrt q^\top)` takes the
margins out and :math:`D` is diagonal with the noise variance relative to the expected count,
:math:`v/e`. Hence

.. math::
   \mathrm{E}X^2 = \mathrm{tr}\,P(I + D), \qquad \mathrm{Var}X^2 = 2\,\mathrm{tr}\,(P(I + D))^2,

and :math:`X^2` is referred to the scaled chi-square distribution with these two moments
(Satterthwaite's approximation, as Rao & Scott 1981 use it for survey designs). Without noise this
is the usual test. For given proportions :math:`\pi` the same holds with
:math:`P = I - \sqrt\pi\sqrt\pi^\top`. Rinott, O'Keefe, Shlomo & Skinner (2018) make the case for
such allowances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc, gammaln, xlogy

from discreet.arrays import Real
from discreet.design.codes import canonical
from discreet.design.formula import Margins
from discreet.errors import CodeError, DataError, DesignError, ParameterError, positive
from discreet.noise.matrix import TransitionMatrix
from discreet.release.inference.law import TableCells, mechanism_of, step_size
from discreet.tables.protected import Protected

Mechanism = TransitionMatrix | float
"""The law of the noise, or its variance where that is the same for every count."""
_ROUNDING = 1e-6  # how far proportions that were rounded for print may sum from one


@dataclass(frozen=True)
class ChiSquareTest:
    r"""A test of independence, or of given proportions.

    Attributes:
      statistic: :math:`X^2 = \sum(b - e)^2/e`.
      freedom: Degrees of freedom of the plain test, :math:`(r - 1)(c - 1)`, or one less than the
        number of proportions.
      p_value: Probability of a statistic at least as large under the hypothesis.
      cramers_v: :math:`\sqrt{X^2 / (N \min(r - 1, c - 1))}`, between 0 and 1; for `k` proportions
        :math:`\sqrt{X^2 / (N(k - 1))}`.
      inflation: Expected statistic under the hypothesis over `freedom`; 1 without noise.
    """

    statistic: float
    freedom: int
    p_value: float
    cramers_v: float
    inflation: float = 1.0


def chi_square(
    protected: Protected,
    table: Margins,
    matrix: TransitionMatrix | None = None,
    *,
    design_effect: float = 1.0,
) -> ChiSquareTest:
    """Test whether two variables are independent, from a published table and the law of its noise.

    Weighted counts are tested on the scale of the sample: they are divided by the step of the noise
    (the `grid` of the method, an average weight) and by the design effect. Without a matrix the law
    comes from the statement, or from the precision that private releases publish.

    Args:
      protected: The release.
      table: The two-way table: `"region*sex"`.
      matrix: The law of the noise, where the statement does not tell it.
      design_effect: Variance of the survey's estimates over that of a simple random sample.

    See Shlomo, Krenzke & Li (2019), Rinott et al. (2018).
    """
    cells = TableCells.of(protected, table)
    if len(cells.levels) != 2:
        raise DesignError(
            f"a test of independence needs two variables, but the table has {len(cells.levels)}."
        )
    counts, weight = _on_the_scale_of_records(cells, design_effect)
    return chi_square_test(counts, mechanism_of(cells, matrix), weight)


def goodness_of_fit(
    protected: Protected,
    table: Margins,
    proportions: Mapping[object, float] | npt.ArrayLike,
    matrix: TransitionMatrix | None = None,
    *,
    design_effect: float = 1.0,
) -> ChiSquareTest:
    """Test whether the cells of a table have given proportions, allowing for their noise.

    Args:
      protected: The release.
      table: The table: `"region"`, or a crossing.
      proportions: Proportions that sum to one: by code for one variable, or an array with an axis
        for each variable in the order of the design.
      matrix: The law of the noise, where the statement does not tell it.
      design_effect: As for `chi_square`.

    See Rinott et al. (2018).
    """
    cells = TableCells.of(protected, table)
    counts, weight = _on_the_scale_of_records(cells, design_effect)
    given = _proportions(cells, proportions)
    return goodness_of_fit_test(counts, given, mechanism_of(cells, matrix), weight)


def _on_the_scale_of_records(cells: TableCells, design_effect: float) -> tuple[Real, float]:
    """Values as effective numbers of records, and what one unit of noise adds to them."""
    effect = positive("design_effect", design_effect)
    size = step_size(cells.protected)
    return np.asarray(cells.crossing() / (size * effect), dtype=np.float64), 1 / effect


def _proportions(cells: TableCells, given: Mapping[object, float] | npt.ArrayLike) -> Real:
    shape = tuple(len(level) for level in cells.levels)
    if isinstance(given, Mapping):
        if len(shape) != 1:
            raise ParameterError(
                "proportions of a crossing are given as an array, with an axis for each variable."
            )
        named, codes = {canonical(code): p for code, p in given.items()}, cells.levels[0].codes
        if set(named) != set(codes):
            raise CodeError(f"proportions are needed for {list(codes)}, got {list(named)}.")
        given = [named[code] for code in codes]
    found = np.asarray(given, dtype=np.float64)
    if found.shape != shape:
        raise ParameterError(f"the table has shape {shape}, but proportions have {found.shape}.")
    if not (found > 0).all() or abs(found.sum() - 1) > _ROUNDING:
        raise ParameterError(
            f"proportions must be above 0 and sum to 1; the least is {found.min():g} and they sum "
            f"to {found.sum():g}."
        )
    return found


def chi_square_test(
    counts: npt.ArrayLike, mechanism: Mechanism | None = None, weight: float = 1.0
) -> ChiSquareTest:
    """Test a two-way table for independence, allowing for noise where its law is known.

    Negative values are set to zero, and rows and columns without counts are left out.

    >>> test = chi_square_test([[20, 10], [10, 20]])
    >>> round(test.statistic, 4), test.freedom, round(test.cramers_v, 4)
    (6.6667, 1, 0.3333)

    Args:
      counts: The table, rows by columns.
      mechanism: The law of the noise on each cell, or its variance, if the test is to allow for it.
      weight: What one unit of noise adds to a cell; the average weight for weighted counts.

    See Shlomo, Krenzke & Li (2019), section 3, on what the naive test does to perturbed tables.
    """
    b = _drop_empty(np.asarray(counts, dtype=np.float64))
    if min(b.shape) < 2:
        _check_weight(weight)
        return ChiSquareTest(0.0, 0, 1.0, 0.0)
    total = b.sum()
    p, q = b.sum(axis=1) / total, b.sum(axis=0) / total
    freedom = (b.shape[0] - 1) * (b.shape[1] - 1)
    return _test(b, p, q, freedom, total * (min(b.shape) - 1), mechanism, weight)


def goodness_of_fit_test(
    counts: npt.ArrayLike,
    proportions: npt.ArrayLike,
    mechanism: Mechanism | None = None,
    weight: float = 1.0,
) -> ChiSquareTest:
    """Test counts for given proportions, allowing for noise where its law is known.

    Negative values are set to zero.

    >>> round(goodness_of_fit_test([20, 10, 30], [0.25, 0.25, 0.5]).statistic, 4)
    3.3333

    Args:
      counts: The counts.
      proportions: As many positive proportions that sum to one.
      mechanism: As for `chi_square_test`.
      weight: As for `chi_square_test`.
    """
    b = np.maximum(np.asarray(counts, dtype=np.float64).reshape(-1, 1), 0.0)
    p = np.asarray(proportions, dtype=np.float64).ravel()
    if len(b) < 2 or not b.any():
        _check_weight(weight)
        return ChiSquareTest(0.0, 0, 1.0, 0.0)
    freedom = len(b) - 1
    # One column that is not fitted: its share in the projection is zero.
    return _test(b, p, np.zeros(1), freedom, b.sum() * freedom, mechanism, weight)


def _test(
    b: Real, p: Real, q: Real, freedom: int, most: float, mechanism: Mechanism | None, weight: float
) -> ChiSquareTest:
    """The test of values `b` with shares `p` of rows and `q` of columns.

    A single column is given and not fitted: its share is zero. Cramér's V needs `most`, the largest
    possible statistic.
    """
    _check_weight(weight)
    e = b.sum() * (np.outer(p, q) if len(q) > 1 else p[:, None])
    statistic = float(((b - e) ** 2 / e).sum())
    v = math.sqrt(statistic / most)
    if mechanism is None:
        return ChiSquareTest(statistic, freedom, _upper_tail(statistic, freedom), v)
    mean, variance = _moments(p, q, weight**2 * noise_variance(mechanism, e / weight) / e)
    scale, effective = variance / (2 * mean), 2 * mean**2 / variance
    tail = _upper_tail(statistic / scale, effective)
    return ChiSquareTest(statistic, freedom, tail, v, mean / freedom)


def _check_weight(weight: float) -> None:
    if weight <= 0:
        raise ParameterError(f"weight must be above 0, got {weight}.")


def noise_variance(mechanism: Mechanism, expected: Real) -> Real:
    """Variance that the mechanism adds to a Poisson count with each expectation.

    It is Var(n + u) - Var(n), with u the noise of count n: the mean noise may depend on the count,
    and so may add to the variance, or take from it. Expectations far above the last row that
    differs from the ones after it take the average over the repeating rows. A mechanism that is
    given by its variance has this variance at every count.
    """
    if not isinstance(mechanism, TransitionMatrix):
        return np.full(expected.shape, float(mechanism))
    head = int(mechanism.starts[len(mechanism.starts) - mechanism.period])
    # Six standard deviations above it, a Poisson count meets the repeating rows alone.
    limit = head + 6 * math.sqrt(head) + mechanism.period + 20
    near = expected < limit
    last = mechanism.law[len(mechanism.starts) - mechanism.period :] @ np.stack(
        [mechanism.deviations, mechanism.deviations**2], axis=1
    )
    far = last[:, 1].mean() - last[:, 0].mean() ** 2
    variance = np.full(expected.shape, float(far))
    if near.any():
        variance[near] = _poisson_variance(mechanism, expected[near])
    return np.asarray(np.maximum(variance, 0.0))


def _poisson_variance(mechanism: TransitionMatrix, expected: Real) -> Real:
    """Var(n + u) - Var(n) for Poisson counts, summed over the counts that occur."""
    rates, place = np.unique(expected, return_inverse=True)
    top = int(rates.max() + 10 * math.sqrt(rates.max() + 1) + 20)
    n = np.arange(top + 1)
    pmf = np.exp(xlogy(n, rates[:, None]) - rates[:, None] - gammaln(n + 1))
    law, u = mechanism.law[mechanism.row_of(n)], mechanism.deviations
    first, second = law @ u, law @ u**2
    moved = pmf @ (n**2 + 2 * n * first + second) - (pmf @ (n + first)) ** 2
    still = pmf @ n**2 - (pmf @ n) ** 2
    found: Real = (moved - still)[place]
    return found


def _moments(p: Real, q: Real, d: Real) -> tuple[float, float]:
    """Mean and variance of the statistic under the hypothesis with relative noise variances `d`.

    The squared entries of the projection are a Kronecker product of diag(1 - 2s) + ss'.
    """
    w = 1 + d
    rows = (1 - 2 * p)[:, None] * w + np.outer(p, p @ w)
    both = rows * (1 - 2 * q) + np.outer(rows @ q, q)
    return float((np.outer(1 - p, 1 - q) * w).sum()), 2 * float((w * both).sum())


def _drop_empty(table: Real) -> Real:
    """The table without negative values and without empty rows and columns."""
    if table.ndim != 2:
        raise DataError(f"a chi-square test needs a two-way table, got {table.ndim} dimensions.")
    b = np.maximum(table, 0.0)
    return np.asarray(b[b.sum(axis=1) > 0][:, b.sum(axis=0) > 0])


def _upper_tail(statistic: float, freedom: float) -> float:
    return float(gammaincc(freedom / 2, statistic / 2))
