r"""Variances of least squares fits, from the design and the variances of what was fitted.

The fit is :math:`\hat z = X^\top M^+ X W z` with :math:`M = X W X^\top`. Noise `u` of variance
:math:`v_g` on each distinct cell `g`, shared by the cells :math:`k \sim g` with the same inner
cells, gives

.. math:: \operatorname{Cov}(\hat z) = X^\top M^+ B \operatorname{diag}(v) B^\top M^+ X, \qquad
          b_g = \sum_{k \sim g} w_k x_k .

On a complete design whose levels have groups of equal size, all margins share eigenvectors. With
:math:`g_{bS}` the eigenvalue of block `b` on effect `S` (of rank :math:`r_S`), a cell of block `t`,
one of :math:`n_t`, has variance

.. math:: \frac{1}{n_t} \sum_S r_S\, g_{tS}\,
          \frac{\sum_b w_b^2 v_b\, g_{bS}}{(\sum_b w_b\, g_{bS})^2} .
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Real
from discreet.design.base import Design
from discreet.design.product import ProductDesign
from discreet.solve.least_squares.basis import Effects
from discreet.solve.least_squares.schedule import LEAST_SQUARES


def fitted_variances(design: Design, weights: Real, variances: Real) -> Real | None:
    """Variances of the published cells of a least squares fit.

    Args:
      design: The design.
      weights: Weights of the fit, all positive.
      variances: Variances of the noise in what was fitted. Cells with the same inner cells are
        taken to have the same noise, all others to be independent.

    Returns:
      The variances, or `None` where there is no closed form and the design is too large for dense
      algebra.
    """
    found = _by_blocks(design, weights, variances)
    if found is None and design.n_inner <= LEAST_SQUARES.dense:
        found = _dense(design, weights, variances)
    return found


def _by_blocks(design: Design, weights: Real, variances: Real) -> Real | None:
    """The closed form; `None` where margins have no common eigenvectors."""
    product = design.product_form
    if product is None or not product.axes:
        return None
    effects = Effects.of(product)
    if effects is None or (product.duplicates() != np.arange(product.n_published)).any():
        return None
    w, v = _of_blocks(product, weights), _of_blocks(product, variances)
    if w is None or v is None:
        return None
    gains, ranks = effects.gains, effects.ranks.ravel()
    strength = w @ gains
    seen = strength > 0
    error = np.where(seen, (w**2 * v) @ gains, 0.0) / np.where(seen, strength, 1.0) ** 2
    of_block = (gains * ranks) @ error / np.diff(product.offsets)
    return np.asarray(of_block[product.block_of_cell()])


def _of_blocks(design: ProductDesign, values: Real) -> Real | None:
    """Values by block, if they are the same in all cells of each."""
    first = values[design.offsets[:-1]]
    same = np.allclose(values, first[design.block_of_cell()], rtol=LEAST_SQUARES.same, atol=0.0)
    return first if same else None


def _dense(design: Design, weights: Real, variances: Real) -> Real:
    X = np.asarray(design.matrix().toarray(), dtype=np.float64)
    left, size, _ = np.linalg.svd(X, full_matrices=False)
    Q = left[:, size > LEAST_SQUARES.rank * size.max(initial=0.0)]
    X = Q.T @ X
    M = (X * weights) @ X.T
    same = np.zeros((len(X), design.n_published))
    np.add.at(same.T, design.duplicates(), (X * weights).T)
    moved = X.T @ np.linalg.solve(M, same)
    return np.asarray((moved**2) @ variances)
