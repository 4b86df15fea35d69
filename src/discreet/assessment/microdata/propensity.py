"""Whether a regression can tell synthetic records from original ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.special import expit

from discreet.arrays import Array, Real
from discreet.assessment.measure import POSITIVE, Score
from discreet.assessment.microdata.record_sets import (
    SYNTHETIC,
    RecordMeasure,
    main_effects,
    with_products,
)
from discreet.errors import ParameterError

_MOST = 600
"""Largest number of columns of the regression; fewer where there are few records."""
_RECORDS = 5
"""Records needed for each column."""
_STEPS, _FLAT, _DEPENDENT = 60, 1e-9, 1e-9
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

    order: int = 2

    def __call__(self, original: Any, synthetic: Any) -> Score:
        found = self.measure_errors(original, synthetic)
        return self.score(found["pMSE"], self.on(original, synthetic), _parts(found))

    def on(self, original: Any, synthetic: Any) -> str:
        """The columns in words."""
        return self.sets(original, synthetic).on

    def measure_errors(self, original: Any, synthetic: Any) -> dict[str, float]:
        """The error, what is expected of correct synthesis, and their ratio."""
        if self.order not in (1, 2):
            raise ParameterError(f"order must be 1 or 2, got {self.order!r}.")
        sets = self.sets(original, synthetic)
        N = sum(sets.sizes)
        most = min(_MOST, N // _RECORDS)
        blocks = main_effects(sets, most)
        X = with_products(blocks, most) if self.order > 1 else np.hstack(list(blocks.values()))
        X = _independent(np.column_stack([np.ones(N), X]))
        is_synthetic = sets.is_in(SYNTHETIC)
        c = float(is_synthetic.mean())
        error = float(np.mean((fitted_probabilities(X, is_synthetic) - c) ** 2))
        expected = (X.shape[1] - 1) * (1 - c) ** 2 * c / N
        ratio = error / expected if expected > 0 else 1.0
        return {"pMSE": error, "expected": expected, "ratio": ratio, "parameters": X.shape[1]}


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

    def __call__(self, original: Any, synthetic: Any) -> Score:
        found = self.measure_errors(original, synthetic)
        return self.score(found["ratio"], self.on(original, synthetic), _parts(found))


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


def _independent(X: Real) -> Real:
    """Columns of which none depends on the others, the first one kept."""
    size = np.sqrt(np.einsum("ij,ij->j", X, X))
    X = X[:, size > 0] / size[size > 0]
    R, order = linalg.qr(X, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    kept = order[: int((diagonal > _DEPENDENT * diagonal[0]).sum())]
    return np.asarray(X[:, np.sort(kept)])


def _parts(found: dict[str, float]) -> dict[str, list[Any]]:
    return {"figure": list(found), "value": list(found.values())}
