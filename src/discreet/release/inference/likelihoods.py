"""What each value of a release says of the count behind it, by the law in its statement."""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import Array, Real
from discreet.errors import DesignError
from discreet.noise.matrix import TransitionMatrix
from discreet.release.inference.law import matrix_of, noise_step
from discreet.release.uncertainty import capped_law, gaussian_law
from discreet.solve.likelihood.noise_likelihood import CellLikelihoods
from discreet.tables.protected import WEIGHT, CellStatus, Protected

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
