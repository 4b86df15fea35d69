r"""Corrections of other data to exact fits and covariances (Langsrud 2019, sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from discreet.arrays import Real
from discreet.errors import InfeasibleError, ParameterError
from discreet.synthesize.decompose import (
    Fitted,
    How,
    fit,
    random_scores,
    residuals_of,
    scores,
    with_scores,
)
from discreet.synthesize.methods import Alpha, Root, addition, in_unit_interval
from discreet.synthesize.orthonormal import as_matrix, echelon, lengths, same_rows
from discreet.synthesize.tolerances import DEPENDENT_RESIDUALS, Synthesis

By = Literal["scores", "addition"]


def from_residuals(
    Y: Any,
    X: Any,
    other: Any = None,
    *,
    rng: np.random.Generator,
    share: float | Sequence[float] | None = None,
    by: By = "scores",
    how: How = "qr",
    alpha: Alpha = 1.0,
    root: Root = "cholesky",
) -> Synthesis:
    r"""Correct an anonymised data set so that fits and covariances are those of the original.

    Only the residuals of the other data are used, :math:`Y_g = \hat Y_g + \hat E_g` (5, 11).
    By scores, with :math:`\hat E_g = T_g W_g`,

    .. math:: Y^* = \hat Y + T_g W \quad (12)

    which stays close to :math:`Y_g` when that nearly has the right moments. By addition,

    .. math::

       Y^* &= \hat Y + \alpha \hat E_g + T^* C \quad (6, 9) \\
       C^\top C &= \hat E^\top \hat E - \alpha^2 \hat E_g^\top \hat E_g \quad (10)

    which keeps the other residuals as they are and adds to them, where there is room. With
    `share` in the place of other data, they are a mixture of the original and of normal draws
    with the variances of the original,

    .. math:: Y_g = Y D + Y_s (I - D) \quad (13)

    Promise: :math:`X^\top Y^* = X^\top Y` and :math:`Y^{*\top} Y^* = Y^\top Y`.

    Args:
      Y: Confidential variables, n×k.
      X: Variables whose fits are preserved, n×m, with the constant.
      other: The data to be corrected, n×k, rows and columns as in `Y`.
      rng: Source of the standard normal draws, for `share` and for `by="addition"`.
      share: :math:`d_i` in [0, 1] for each variable, or one number for all.
      by: `"scores"` or `"addition"`.
      how: Decomposition by scores. QR keeps close to the other data, principal components do not.
      alpha: Multiplier by addition; `"largest"` takes the largest feasible one up to 1.
      root: How C is found by addition: `"cholesky"` or `"eigen"`.
    """
    model = fit(Y, X)
    Eg = residuals_of(_other(model, other, share, rng), model.basis)
    if by == "scores":
        return _by_scores(model, Eg, how)
    if by == "addition":
        return _by_addition(model, Eg, alpha, root, rng)
    raise ParameterError(f"by must be 'scores' or 'addition', got {by!r}.")


def _other(model: Fitted, other: Any, share: Any, rng: np.random.Generator) -> Real:
    if (other is None) == (share is None):
        raise ParameterError(
            "give either the data to be corrected, or the share of the original in a mixture."
        )
    if other is None:
        return _mixture(model.Y, in_unit_interval(share, model.Y.shape[1], "variables"), rng)
    Yg = as_matrix(other, "the other data")
    same_rows(Y=model.Y, other=Yg)
    if Yg.shape != model.Y.shape:
        raise ParameterError(
            f"the other data have {Yg.shape[1]} columns, expected {model.Y.shape[1]} as in Y."
        )
    return Yg


def _mixture(Y: Real, d: Real, rng: np.random.Generator) -> Real:
    """Equation (13); the draws have the variances of the original."""
    mixed = rng.standard_normal(Y.shape)
    mixed *= (1 - d) * lengths(Y - Y.mean(axis=0)) / np.sqrt(len(Y))
    mixed += Y * d
    return mixed


def _by_scores(model: Fitted, Eg: Real, how: How) -> Synthesis:
    old = scores(model.residuals, how)
    if how == "qr":
        kept = echelon(old.W, DEPENDENT_RESIDUALS).kept
        Eg = Eg if len(kept) == Eg.shape[1] else Eg[:, kept]
    new = scores(Eg, how)
    if new.rank < old.rank:
        raise InfeasibleError(
            f"the residuals of the other data have {new.rank} independent components, but "
            f"{old.rank} are needed for the covariances of Y. Use by='addition', or other data "
            "whose residuals do not depend on each other."
        )
    details = {"rank_X": model.rank, "rank_residuals": old.rank}
    return Synthesis(with_scores(model, (new.T[:, : old.rank], old.W)), details)


def _by_addition(
    model: Fitted, Eg: Real, alpha: Alpha, root: Root, rng: np.random.Generator
) -> Synthesis:
    old, other = scores(model.residuals), scores(Eg)
    added = addition(old.W, other.W, alpha, root)
    T = random_scores(
        rng, len(Eg), len(added.C), model.basis, other.T, what="X and the other data together"
    )
    details = {
        "rank_X": model.rank,
        "rank_residuals": old.rank,
        "alpha": added.alpha,
        "largest_alpha": added.largest,
    }
    parts = (other.T, added.alpha * other.W), (T, added.C)
    return Synthesis(with_scores(model, *parts), details)
