r"""Information preserving statistical obfuscation (Langsrud 2019, section 2; Burridge 2003)."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.synthesize.algebra.decompose import fit, loadings, random_scores, with_scores
from discreet.synthesize.synthesis import Synthesis


def ipso(Y: Any, X: Any, *, rng: np.random.Generator) -> Synthesis:
    r"""Draw residuals anew, given the fits and the covariances.

    .. math::

       Y &= \hat Y + \hat E = \hat Y + T W \quad (2) \\
       Y_s &= \hat Y_s + \hat E_s = \hat Y_s + T^* W_s \quad (3) \\
       Y^* &= \hat Y + T^* W \quad (4)

    :math:`Y_s` holds standard normal draws. The choice of decomposition does not matter here, so
    QR is used, and :math:`T` is never formed.

    Promise: :math:`X^\top Y^* = X^\top Y` and :math:`Y^{*\top} Y^* = Y^\top Y`. Beyond these
    moments the result says nothing about the original.
    Cost: :math:`O(n(m + k)^2)`; memory for :math:`X`, twice :math:`Y` and blocks of rows.
    """
    model = fit(Y, X)
    W = loadings(model.residuals)
    T = random_scores(rng, len(model.Y), len(W), model.basis)
    details = {"rank_X": model.rank, "rank_residuals": len(W)}
    return Synthesis(with_scores(model, (T, W)), details)
