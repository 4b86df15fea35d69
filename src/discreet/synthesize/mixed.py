"""New records with new codes: protected counts first, then amounts by the original's model."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import ConfidentialError
from discreet.synthesize.algebra.decompose import fit, loadings, random_scores, with_scores
from discreet.synthesize.algebra.matrices import as_matrix
from discreet.synthesize.synthesis import Synthesis
from discreet.synthesize.tolerances import ESTIMABLE


def mixed(Y: Any, X: Any, X_new: Any, *, rng: np.random.Generator) -> Synthesis:
    r"""Values of other records, with exactly the regression of the original ones.

    .. math::

       Y^* = X^* \hat B + \sqrt{\frac{n^* - r^*}{n - r}}\, T^* W

    with the coefficients :math:`\hat B` and the residuals :math:`\hat E = T W` of n original
    records, and scores :math:`T^*` orthogonal to :math:`X^*` as in `ipso`.

    Promise: the regression of :math:`Y^*` on :math:`X^*` has the coefficients of the original, and
    its estimated covariance of residuals is exactly that of the original.

    Args:
      Y: Confidential variables, n×k.
      X: Variables of the original records, n×m, with the constant.
      X_new: The same variables of the new records.
      rng: Source of the standard normal draws.
    """
    Y, X, X_new = as_matrix(Y, "Y"), as_matrix(X, "X"), as_matrix(X_new, "X_new")
    _check_estimable(X, X_new)
    before = fit(Y, X)
    W = loadings(before.residuals)
    coefficients = np.linalg.lstsq(X, Y, rcond=None)[0]
    after = fit(X_new @ coefficients, X_new)
    T = random_scores(rng, len(X_new), len(W), after.basis, what="X of the new records")
    freedom = len(X_new) - after.rank, len(X) - before.rank
    scale = np.sqrt(freedom[0] / freedom[1])
    details = {"rank_X": before.rank, "rank_new": after.rank, "rank_residuals": len(W)}
    return Synthesis(with_scores(after, (T, scale * W)), details)


def mixed_within(Y: Any, cells: Whole, new_cells: Whole, *, rng: np.random.Generator) -> Synthesis:
    """Values of other records, with the means and covariances of each cell.

    Promise: a cell with more new records than variables has exactly the means and the estimated
    covariances of the original cell. In smaller ones values are normal draws with these moments.

    Args:
      Y: Confidential variables, n×k.
      cells: The cell of each original record.
      new_cells: The cell of each new record; each must have original records.
      rng: Source of the standard normal draws.
    """
    Y = as_matrix(Y, "Y")
    if len(np.setdiff1d(new_cells, cells)):
        raise _no_records()
    values = np.empty((len(new_cells), Y.shape[1]))
    for cell in np.unique(new_cells):
        own, new = Y[cells == cell], np.flatnonzero(new_cells == cell)
        W = loadings(fit(own, np.ones((len(own), 1))).residuals)
        if len(new) > len(W):
            values[new] = mixed(own, np.ones((len(own), 1)), np.ones((len(new), 1)), rng=rng).Y
        else:
            drawn = rng.standard_normal((len(new), len(W))) @ W
            values[new] = own.mean(axis=0) + drawn / np.sqrt(len(own) - 1)
    return Synthesis(values, {"cells": len(np.unique(new_cells))})


def _check_estimable(X: Real, X_new: Real) -> None:
    """Refuse new rows whose expected values do not follow from the original records."""
    top = np.abs(X).max(axis=0, initial=1.0)
    _, size, Vt = np.linalg.svd(np.unique(X, axis=0) / top, full_matrices=False)
    V = Vt[size > ESTIMABLE * size[0]].T
    rows = np.unique(X_new, axis=0) / top
    rest = np.linalg.norm(rows - rows @ V @ V.T, axis=1)
    if (rest > ESTIMABLE * np.linalg.norm(rows, axis=1)).any():
        raise _no_records()


def _no_records() -> ConfidentialError:
    return ConfidentialError(
        "the protected counts fill cells whose amounts do not follow from the original records, "
        "because there are none. Leave out interactions from the model, or protect counts by a "
        "method that keeps zeros."
    )
