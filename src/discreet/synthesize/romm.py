r"""Random orthogonal matrix masking (Langsrud 2019, section 5; Ting, Fienberg & Trottini 2008)."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import ParameterError
from discreet.synthesize.algebra.decompose import How, fit, residuals_from, scores, with_scores
from discreet.synthesize.algebra.orthonormal import orthonormal
from discreet.synthesize.synthesis import Synthesis


def romm(Y: Any, X: Any, lambda_: float, *, rng: np.random.Generator, how: How = "qr") -> Synthesis:
    r"""Rotate the residuals by a random orthogonal matrix that is near to the identity.

    The method is :math:`Y^* = M^* Y` with
    :math:`M^* = U_X U_X^\top + U_E P^* U_E^\top` (14, 15), where :math:`P^*` is the orthogonal
    factor of :math:`I + \lambda H` and :math:`U_E` begins with :math:`T`. The same law comes
    without the n×n matrix from the scores of

    .. math:: Y_g = T + \lambda H \quad (17)

    after its projection on :math:`X` is taken off, in the place of :math:`T` (11, 12).

    Promise: :math:`X^\top Y^* = X^\top Y` and :math:`Y^{*\top} Y^* = Y^\top Y`. With
    :math:`\lambda = 0` the result is the original, for large :math:`\lambda` it is that of
    `ipso`; the similarity decreases from the first score to the last.

    Args:
      Y: Confidential variables, n×k.
      X: Variables whose fits are preserved, n×m, with the constant.
      lambda_: Size of the noise :math:`\lambda \ge 0`.
      rng: Source of the standard normal draws.
      how: Which scores are rotated. New scores are always orthogonalised by QR, since principal
        components of noisy scores are unstable.
    """
    if not 0 <= lambda_ < np.inf:
        raise ParameterError(
            f"lambda must be a number of at least 0, got {lambda_}. 0 returns the original."
        )
    model = fit(Y, X)
    old = scores(model.residuals, how)
    Yg = residuals_from(rng.standard_normal(old.T.shape), model.basis, overwrite=True)
    Yg *= lambda_
    Yg += old.T
    T, _ = orthonormal(Yg, 0.0, overwrite=True)
    details = {"rank_X": model.rank, "rank_residuals": old.rank, "lambda": float(lambda_)}
    return Synthesis(with_scores(model, (T, old.W)), details)
