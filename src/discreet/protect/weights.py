r"""Weighted counts of surveys: two published rules, for study.

With true count :math:`n_k`, weighted count :math:`W_k`, change of the count :math:`p_k` and mean
weight :math:`\bar w`, Shlomo, Krenzke & Li (2019) change weighted counts by their equations (4) and
(5). **Not for publication**: with whole weights, or weights of two decimals, only one :math:`p_k`
leaves a possible sum of weights, so the noise can be read off. Publication rounds weighted counts
to a grid as coarse as the noise (`grid=` of the methods).
"""

from __future__ import annotations

import numpy as np

from discreet.tables.values import Real, Whole


def by_mean(weight: Real, change: Whole, mean_weight: float) -> Real:
    r"""Equation (4): :math:`\max(0, W + p\,\bar w)`."""
    return np.asarray(np.maximum(weight + change * mean_weight, 0.0))


def by_cell(weight: Real, count: Whole, change: Whole, mean_weight: float) -> Real:
    """Equation (5): `W + p W/n`; equation (4) in empty cells."""
    own = np.divide(weight, count, out=np.full(len(weight), float(mean_weight)), where=count > 0)
    return np.asarray(np.maximum(weight + change * own, 0.0))
