r"""Residuals of other data, completed by synthetic scores (Langsrud 2019, equations 9 and 10).

.. math::

   Y^* &= \hat Y + \alpha \hat E_g + T^* C \quad (9) \\
   C^\top C &= \hat E^\top \hat E - \alpha^2 \hat E_g^\top \hat E_g \quad (10)

With :math:`\hat E = TW`, :math:`\hat E_g = T_g W_g` and :math:`K = W_g W^{-1}`, the right side is
:math:`W^\top (I - \alpha^2 K^\top K) W`. It has a root when no singular value of
:math:`\alpha K` is above one, so the largest :math:`\alpha` is one over the largest singular
value of :math:`K`. Working with :math:`K` avoids squares of the variables, whose scales may
differ by many powers of ten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import solve_triangular

from discreet.arrays import Real
from discreet.errors import InfeasibleError, ParameterError
from discreet.synthesize.algebra.matrices import lengths
from discreet.synthesize.algebra.orthonormal import echelon
from discreet.synthesize.tolerances import DEPENDENT_RESIDUALS, MARGIN, ROUNDING

Root = Literal["cholesky", "eigen"]
Alpha = float | Literal["largest"]


@dataclass(frozen=True)
class Addition:
    """How much of other residuals fits in, and what completes it.

    Attributes:
      alpha: The multiplier used.
      largest: The largest feasible multiplier; infinite when there are no other residuals.
      C: Loadings of the synthetic scores.
    """

    alpha: float
    largest: float
    C: Real


def addition(W: Real, Wg: Real, alpha: Alpha, root: Root) -> Addition:
    """Solve (10) for the wished multiplier, or for the largest one up to 1.

    Args:
      W: QR loadings of the original residuals, r×k.
      Wg: Loadings of the other residuals with respect to orthonormal scores.
      alpha: A number in [0, 1], or `"largest"`.
      root: `"cholesky"` for an upper triangular C, `"eigen"` for one with orthogonal rows in the
        original scores.
    """
    if root not in ("cholesky", "eigen"):
        raise ParameterError(f"root must be 'cholesky' or 'eigen', got {root!r}.")
    K, exists = _in_scores(W, Wg)
    _, sizes, axes = np.linalg.svd(K)
    top = float(sizes.max(initial=0.0)) if exists else np.inf
    largest = 1.0 / top if top > 0 else np.inf
    chosen = _choose(alpha, largest)
    left = np.ones(len(W))
    left[: len(sizes)] -= (chosen * sizes) ** 2
    C = np.sqrt(np.maximum(left, 0.0))[:, None] * (axes @ W)
    C = C[left > ROUNDING]
    return Addition(chosen, largest, echelon(C, DEPENDENT_RESIDUALS).R if root == "cholesky" else C)


def _in_scores(W: Real, Wg: Real) -> tuple[Real, bool]:
    """The matrix K with :math:`W_g = K W`, and whether there is one for all columns."""
    kept = echelon(W, DEPENDENT_RESIDUALS).kept
    K = solve_triangular(W[:, kept], Wg[:, kept].T, trans="T").T if len(W) else Wg[:, :0]
    size = lengths(Wg) + lengths(W)
    return K, not (lengths(Wg - K @ W) > DEPENDENT_RESIDUALS * size).any()


def _choose(alpha: Alpha, largest: float) -> float:
    feasible = 1.0 if largest >= 1 - ROUNDING else largest / (1 + MARGIN)
    if alpha == "largest":
        return feasible
    if isinstance(alpha, str) or not 0 <= alpha <= 1:
        raise ParameterError(f"alpha must lie in [0, 1] or be 'largest', got {alpha!r}.")
    if alpha > max(largest * (1 + ROUNDING), feasible):
        raise InfeasibleError(_refusal(float(alpha), largest, feasible))
    return float(alpha)


def _refusal(alpha: float, largest: float, feasible: float) -> str:
    if largest == 0:
        return (
            "the original residuals depend on each other linearly and the other residuals do not "
            "in the same way, so the covariances leave no room for them: the smallest eigenvalue "
            f"of (10) is below zero for every alpha above 0, and alpha = {alpha:g} was asked for. "
            "The nearest feasible alpha is 0. Leave out the dependent variables, or treat them "
            "alike."
        )
    binding = 1 - (alpha / largest) ** 2
    return (
        f"alpha = {alpha:g} takes up more variance than there is: relative to the original "
        f"residuals, the smallest eigenvalue of (10) is {binding:.6g}, and it must not be below "
        f"zero. The nearest feasible alpha is {feasible:.10g}; alpha='largest' takes it."
    )
