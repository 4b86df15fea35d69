r"""Declared correlations of residuals (Langsrud 2019, equation 7; Muralidhar & Sarathy 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.arrays import Real
from discreet.errors import InfeasibleError, ParameterError
from discreet.synthesize.algebra.addition import Alpha, Root, addition
from discreet.synthesize.algebra.decompose import fit, random_scores, scores, with_scores
from discreet.synthesize.synthesis import Synthesis


def residual_correlation(
    Y: Any,
    X: Any,
    correlations: float | Sequence[float],
    *,
    rng: np.random.Generator,
    alpha: Alpha = 1.0,
    root: Root = "cholesky",
) -> Synthesis:
    r"""Residuals that correlate with the original ones as declared, variable by variable.

    .. math:: Y^* = \hat Y + \alpha \hat E D + T^* C \quad (7)

    with :math:`D = \mathrm{diag}(d_1, …, d_k)`, :math:`T^*` orthogonal to :math:`X` and
    :math:`Y`, and :math:`C^\top C = \hat E^\top \hat E - \alpha^2 D \hat E^\top \hat E D`.

    Promise: :math:`X^\top Y^* = X^\top Y`, :math:`Y^{*\top} Y^* = Y^\top Y`, and the correlation
    of original and synthetic residuals of variable i is exactly :math:`\alpha d_i` (when the
    constant is in X). Not every wish is feasible. The details hold `largest_alpha`, and
    `correlations` as they are in the result.

    Args:
      Y: Confidential variables, n×k.
      X: Variables whose fits are preserved, n×m, with the constant.
      correlations: :math:`d_i` in [0, 1] for each variable, or one number for all.
      rng: Source of the standard normal draws.
      alpha: Multiplier of all correlations; `"largest"` takes the largest feasible one up to 1.
      root: How C is found: `"cholesky"` or `"eigen"`.
    """
    model = fit(Y, X)
    d = in_unit_interval(correlations, model.Y.shape[1], "variables of Y")
    old = scores(model.residuals)
    try:
        added = addition(old.W, old.W * d, alpha, root)
    except InfeasibleError as error:
        nearest = addition(old.W, old.W * d, "largest", "eigen").alpha * d
        raise InfeasibleError(
            f"correlations {_shown(d)} cannot be reached: {error} With it the correlations are "
            f"{_shown(nearest)}. Component-wise correlations (`score_correlation`) are always "
            "feasible."
        ) from None
    T = random_scores(rng, len(model.Y), len(added.C), model.basis, old.T, what="X and Y together")
    details = {
        "rank_X": model.rank,
        "rank_residuals": old.rank,
        "alpha": added.alpha,
        "largest_alpha": added.largest,
        "correlations": added.alpha * d,
    }
    return Synthesis(with_scores(model, (old.T, added.alpha * old.W * d), (T, added.C)), details)


def in_unit_interval(values: Any, length: int, what: str) -> Real:
    """One number in [0, 1] for each of `length` things; one number stands for all."""
    d = np.asarray(values, dtype=np.float64)
    if d.ndim > 1 or (d.ndim == 1 and len(d) != length):
        msg = f"expected one number for each of the {length} {what}, got {d.size} numbers."
        raise ParameterError(msg)
    if not ((d >= 0) & (d <= 1)).all():
        msg = f"numbers must lie in [0, 1], got {d.tolist()}."
        raise ParameterError(msg)
    return np.array(np.broadcast_to(d, length))


def _shown(numbers: Real) -> str:
    return "(" + ", ".join(f"{number:.6g}" for number in numbers) + ")"
