r"""Weighted counts of surveys: how noise on counts carries over to sums of weights.

With true count :math:`n_k`, weighted count :math:`W_k`, change of the count :math:`p_k` and mean
weight :math:`\bar w` there are three rules (Shlomo, Krenzke & Li 2019):

* ``"mean"``, their equation (4): :math:`W_k + p_k\,\bar w`;
* ``"cell"``, their equation (5): :math:`W_k + p_k\,W_k/n_k`, and (4) where :math:`n_k = 0`;
* ``"scale"``: :math:`W_k`, rounded to a whole number, is itself perturbed.

Only weighted counts are published. Beside them a perturbed sample count would give
:math:`W_k - n_k\bar w` away under (4), and :math:`W_k/n_k` under (5), without any noise.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from discreet.design.table import Table
from discreet.design.values import Real, Whole
from discreet.errors import DesignError, ParameterError
from discreet.noise.checks import positive
from discreet.protect.cells import Cells

Weighting = Literal["mean", "cell", "scale"]
LARGEST_RELATIVE_VARIANCE = 0.10
"""Weights that vary more than this must not be replaced by their mean (Shlomo et al. 2019)."""


def check_weighting(weighting: str | None, mean_weight: float | None) -> None:
    """Raise a clear error for a rule that does not exist or a mean that cannot be."""
    if weighting is not None and weighting not in get_args(Weighting):
        raise ParameterError(
            f"weighting must be 'mean', 'cell', 'scale' or None, got {weighting!r}."
        )
    if mean_weight is None:
        return
    if weighting is None:
        raise ParameterError("mean_weight has no effect without weighting=; remove one of them.")
    positive("mean_weight", mean_weight)


def by_mean(weight: Real, change: Whole, mean_weight: float) -> Real:
    r"""Equation (4): :math:`\max(0, W + p\,\bar w)`."""
    return np.asarray(np.maximum(weight + change * mean_weight, 0.0))


def by_cell(weight: Real, count: Whole, change: Whole, mean_weight: float) -> Real:
    """Equation (5): `W + p W/n`; equation (4) in empty cells."""
    own = np.divide(weight, count, out=np.full(len(weight), float(mean_weight)), where=count > 0)
    return np.asarray(np.maximum(weight + change * own, 0.0))


def mean_weight_of(table: Table) -> float:
    """The mean weight of the records, taken to be public: sample and population size are known."""
    if table.inner is not None:
        count, weight = table.inner.count, table.inner.weight
    else:
        total = [table.design.position({})]
        count, weight = table.z[total], table.weights[total]
    if weight is None or count.sum() == 0:
        raise DesignError("this table has no records with weights; give mean_weight=.")
    return float(weight.sum() / count.sum())


def relative_variance(table: Table) -> float | None:
    """The squared coefficient of variation of the weights, `None` when it cannot be known."""
    values = table.inner
    if values is None or values.weight is None or values.weight_squared is None:
        return None
    squares = float(values.weight_squared.sum()) * int(values.count.sum())
    return squares / float(values.weight.sum()) ** 2 - 1


def weighted(cells: Cells, change: Whole, weighting: Weighting, mean_weight: float) -> Real:
    """Protected weighted counts of the cells."""
    if weighting == "mean":
        return by_mean(cells.weight, change, mean_weight)
    if weighting == "cell":
        return by_cell(cells.weight, cells.count, change, mean_weight)
    return (cells.count + change).astype(np.float64)


def weighting_sentence(weighting: Weighting) -> str:
    """What the rule means for the reader of a release."""
    how = {
        "mean": "each change of a sample count is multiplied by the mean weight of the survey",
        "cell": "each change of a sample count is multiplied by the mean weight of its cell",
        "scale": "the noise is added to the weighted counts themselves, rounded to whole numbers",
    }
    return f"The values are weighted counts: {how[weighting]}. Sample counts are not published."
