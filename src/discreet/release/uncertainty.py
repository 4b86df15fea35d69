"""How far published cells may be from the truth: standard errors, intervals and likelihoods.

All follow from the design and the public law of the noise alone, so they cost no privacy.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from discreet.arrays import Array, Mask, Real
from discreet.errors import DesignError, ParameterError, is_number
from discreet.noise.matrix import TransitionMatrix
from discreet.noise.pram import laplace_law
from discreet.release.inference.law import matrix_of, noise_step, step_size
from discreet.solve.fit import Fitter
from discreet.solve.least_squares.basis import fitted_variances
from discreet.solve.least_squares.least_squares import LeastSquares
from discreet.solve.likelihood.noise_likelihood import CellLikelihoods
from discreet.tables.protected import WEIGHT, CellStatus, Protected

_ZERO = 1e-12  # variances below this share of the largest are those of cells without noise
_SMOOTH = 30.0  # from this standard deviation on the discrete Gaussian is as good as continuous


def standard_errors(protected: Protected) -> Real:
    """The standard deviation of each published cell's noise; see `Release.standard_errors`."""
    precision = protected.precision
    if precision is None:
        raise DesignError(_why_unknown(protected))
    if protected.statement.says("known-rounded"):  # not noise, but not the truth either
        precision = np.where(np.isinf(precision), np.nan, precision)
    with np.errstate(divide="ignore"):
        return np.asarray(1 / np.sqrt(precision))


def intervals(protected: Protected, level: float = 0.95) -> tuple[Real, Real]:
    """Confidence limits of each published cell; see `Release.intervals`."""
    if not is_number(level) or not 0 < level < 1:
        raise ParameterError(f"level must lie strictly between 0 and 1, got {level!r}.")
    error = standard_errors(protected)
    reach = -ndtri((1 - level) / 2) * error
    direct, step = _directly_noised(protected), 1.0
    if protected.unit == WEIGHT and any(
        s.parameters.get("grid") for s in protected.statement.steps
    ):
        step = step_size(protected)
    for each in np.unique(error[direct & (error > 0)]):
        reach[direct & (error == each)] = step * _reach(protected, float(each) / step, level)
    if protected.unit == WEIGHT:
        # sums of weights were rounded to steps before
        reach = np.where(error > 0, reach + step / 2, reach)
    low, high = protected.z - reach, protected.z + reach
    return np.maximum(low, 0.0), np.maximum(high, 0.0)


def fitted_precision(protected: Protected, fitter: Fitter) -> Real | None:
    """Precision of published cells after a fit; `None` where the fit is not linear in the noise."""
    precision, weights = protected.precision, protected.fit_weights()
    says = protected.statement.says
    is_plain = isinstance(fitter, LeastSquares) and fitter.start is None and fitter.variance is None
    if precision is None or weights is None or not is_plain:
        return None
    if says("clipped") or says("known-rounded"):  # this noise has another mean than zero
        return None
    if says("adds-up"):
        return precision  # values that add up are met exactly
    variances = fitted_variances(protected.design, weights, 1 / precision)
    if variances is None:
        return None
    some = variances > _ZERO * variances.max(initial=0.0)
    return np.where(some, 1 / np.where(some, variances, 1.0), np.inf)


def why_biased(protected: Protected) -> str | None:
    """Why what is made of the values is not unbiased; nothing where their noise has mean zero."""
    if not protected.statement.says("clipped"):
        return None
    return (
        "negative results were set to zero before cells were summed or fitted, so errors of "
        "the sums are not known. Protect with nonnegative=False."
    )


def _why_unknown(protected: Protected) -> str:
    statement = protected.statement
    if statement.privacy is None:
        return (
            "this release does not tell the variance of its noise, so its standard errors are not "
            "known. Differentially private methods publish theirs."
        )
    if (why := why_biased(protected)) is not None:
        return why
    return (
        f"errors of single cells are not known after the step {statement.steps[-1].name!r}. They "
        "are known before it, and after a linear fit: `release.fit(LeastSquares())`, on complete "
        "designs with levels of equal groups or few inner cells."
    )


def _directly_noised(protected: Protected) -> Mask:
    """Published cells whose value is the true one plus a single draw."""
    step = protected.statement.steps[-1]
    if not step.name.startswith("protect:"):
        return np.zeros(len(protected.z), dtype=bool)
    if step.parameters.get("margins") == "summed":
        return np.asarray(protected.design.column_sizes == 1)
    return np.ones(len(protected.z), dtype=bool)


def _reach(protected: Protected, error: float, level: float) -> float:
    """The smallest reach that one draw keeps to with this probability."""
    step = protected.statement.steps[-1]
    cap, variance = int(step.parameters.get("cap") or 0), error**2
    match step.name.removeprefix("protect:"):
        case "laplace":
            return -error / math.sqrt(2) * math.log1p(-level)
        case "discrete-laplace" if not cap:
            return _laplace_reach(variance, level)
        case "discrete-laplace":
            return _smallest(capped_law(variance, cap), level)
        case "discrete-gaussian" if error > _SMOOTH:
            return float(math.ceil(-ndtri((1 - level) / 2) * error - 0.5))
        case "discrete-gaussian":
            return _smallest(gaussian_law(variance), level)
        case other:
            raise DesignError(f"the law of the noise of {other!r} is not known.")


def _laplace_reach(variance: float, level: float) -> float:
    r"""Least `k` with :math:`1 - 2q^{k+1}/(1 + q) \ge` level, where the variance gives `q`."""
    a = 1 + 1 / variance
    log_q = -math.log(a + math.sqrt(a * a - 1))
    tail = math.log((1 - level) * (1 + math.exp(log_q)) / 2)
    return max(0.0, math.ceil(tail / log_q - 1 - 1e-9))


def _smallest(law: Real, level: float) -> float:
    """Least `k` such that noise in `-k..k` has this probability; `law` is symmetric about zero."""
    middle = len(law) // 2
    within_reach = law[middle] + 2 * np.concatenate([[0.0], np.cumsum(law[middle + 1 :])])
    # Sums of probabilities may fall short of a level that they reach by their rounding.
    return float(min(int(np.searchsorted(within_reach, level - 1e-12)), middle))


def capped_law(variance: float, cap: int) -> Real:
    """The capped discrete Laplace law of this variance."""
    from scipy.optimize import brentq  # start-up time: every command loads this file

    u = np.arange(-cap, cap + 1.0)

    def excess(log_scale: float) -> float:
        return float(laplace_law(1.0, cap, math.exp(log_scale)) @ u**2) - variance

    widest = math.log(1e6 * cap)
    scale = widest if excess(widest) <= 0 else brentq(excess, -3.0, widest)
    return laplace_law(1.0, cap, math.exp(scale))


def gaussian_law(variance: float) -> Real:
    """The discrete Gaussian law of this variance."""
    from scipy.optimize import brentq  # start-up time

    u = np.arange(-400, 401.0)  # thirteen standard deviations at the largest one, `_SMOOTH`

    def law(log_scale: float) -> Real:
        p = np.exp(-(u**2) / (2 * math.exp(2 * log_scale)))
        return np.asarray(p / p.sum())

    def excess(log_scale: float) -> float:
        return float(law(log_scale) @ u**2) - variance

    return law(brentq(excess, -2.5, math.log(2 * _SMOOTH)))


_PRIVATE = ("protect:laplace", "protect:discrete-laplace", "protect:discrete-gaussian")
# Gaussian noise beyond so many standard deviations: e^-72 of its law
_FAR = 12.0
Row = tuple[Array, Array]
_NOTHING: Row = (np.zeros(0), np.zeros(0))


def likelihoods_of(protected: Protected) -> CellLikelihoods:
    """The likelihood of every published value, from the statement alone.

    Values with noise by a matrix that the statement tells, and values of private methods; cells
    below a threshold have the probability that they are hidden. Sums of cells with noise, and
    values that were fitted or rounded, are refused: their law is another one.
    """
    step = noise_step(protected)
    if step is None:
        raise DesignError(
            "the release does not say how it was protected, and a likelihood needs the law."
        )
    if step.parameters.get("margins", "own") != "own":
        raise DesignError(
            "totals of this release are sums of cells with noise, so it adds up already and has no "
            "law of its own for each total. Protect with margins='own' for a likelihood fit."
        )
    size = float(step.parameters.get("grid") or 1.0)
    options = {"step": size, "rounded": protected.unit == WEIGHT}
    z = np.asarray(protected.z, dtype=float) / size
    if step.name in _PRIVATE:
        options["is_straight"] = step.name != "protect:discrete-gaussian" and not (
            step.parameters.get("cap")
        )
        rows = _private_rows(protected, step.name, z, size)
    else:
        threshold = int(step.parameters.get("threshold") or 0)
        rows = _keyed_rows(protected, matrix_of(protected), z, threshold)
    return CellLikelihoods.of(rows, **options)


def _keyed_rows(
    protected: Protected, matrix: TransitionMatrix, z: Real, threshold: int
) -> list[Row]:
    """Rows by a transition matrix, made once for each value."""
    status = np.zeros(len(z), np.int8) if protected.status is None else protected.status
    below = _hidden_row(matrix, threshold)
    known: dict[int, Row] = {}
    rows = []
    for value, what in zip(np.rint(z).astype(np.int64).tolist(), status.tolist(), strict=True):
        if what == CellStatus.structural_zero:
            rows.append((np.zeros(1), np.zeros(1)))
        elif what == CellStatus.below_threshold:
            rows.append(below)
        elif what:
            rows.append(_NOTHING)
        else:
            if value not in known:
                known[value] = _value_row(matrix, value)
            rows.append(known[value])
    return rows


def _value_row(matrix: TransitionMatrix, value: int) -> Row:
    """Log-probabilities that counts become the value."""
    reach = matrix.max_move
    counts = np.arange(max(0, value - reach), value + reach + 1)
    law = matrix.law[matrix.row_of(counts), value - counts + reach]
    return counts, _logarithm(law)


def _hidden_row(matrix: TransitionMatrix, threshold: int) -> Row:
    """Log-probabilities that counts become a value below the threshold."""
    reach = matrix.max_move
    counts = np.arange(max(threshold, 1) + reach)
    targets = counts[:, None] + matrix.deviations
    law = np.where(targets < threshold, matrix.law[matrix.row_of(counts)], 0.0).sum(axis=1)
    return counts, _logarithm(law)


def _private_rows(protected: Protected, name: str, z: Real, size: float) -> list[Row]:
    """Rows by private noise, whose variance is published with each cell."""
    if protected.precision is None:
        raise DesignError("this release does not tell the variance of its noise cell by cell.")
    step = noise_step(protected)
    given = {} if step is None else step.parameters
    cap, is_cut = int(given.get("cap") or 0), protected.statement.says("clipped")
    is_rounded = protected.statement.says("known-rounded")
    far = 2 * float(np.abs(z).max(initial=0.0)) + 1
    rows = []
    for value, precision in zip(z.tolist(), (protected.precision * size**2).tolist(), strict=True):
        if math.isinf(precision):  # a known margin: the truth, or what rounding made of it
            rows.append(_NOTHING if is_rounded else (np.array([value]), np.zeros(1)))
        elif name == "protect:discrete-gaussian":
            law, reach = gaussian_law(1 / precision), math.ceil(_FAR / math.sqrt(precision)) + 1
            kept = slice(max(0, len(law) // 2 - reach), len(law) // 2 + reach + 1)
            rows.append(_listed_row(law[kept], value, is_cut))
        elif cap:
            rows.append(_listed_row(capped_law(1 / precision, cap), value, is_cut))
        else:
            rows.append(_laplace_row(name, value, 1 / precision, far))
    return rows


def _laplace_row(name: str, value: float, variance: float, far: float) -> Row:
    """The corners of Laplace noise: straight on both sides of the value.

    Setting negative results to zero leaves the slope of the row of zero as it is.
    """
    if name == "protect:laplace":
        slope = math.sqrt(2 / variance)
    else:
        a = 1 + 1 / variance
        slope = math.log(a + math.sqrt(a * a - 1))
    last = far + math.ceil(40 / slope)
    corners = {0.0, last, max(0.0, math.floor(value)), max(0.0, math.ceil(value))}
    counts = np.array(sorted(corners))
    return counts, -slope * np.abs(counts - value)


def _listed_row(law: Real, value: float, is_cut: bool) -> Row:
    """Log-probabilities of counts under a law of noise about zero; zero may stand for less."""
    reach, value = len(law) // 2, round(value)
    counts = np.arange(max(0, value - reach), max(0, value) + reach + 1)
    at = value - counts + reach
    inside = (at >= 0) & (at < len(law))
    chance = np.where(inside, law[np.clip(at, 0, len(law) - 1)], 0.0)
    if is_cut and value == 0:
        chance = np.cumsum(law)[np.clip(reach - counts, 0, len(law) - 1)] * (counts <= reach)
    return counts, _logarithm(chance)


def _logarithm(probability: Real) -> Real:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability))
