r"""Declared correlations of components (Langsrud 2019, equation 8 and section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from discreet.arrays import Real
from discreet.errors import ParameterError
from discreet.synthesize.algebra.decompose import How, fit, random_scores, scores, with_scores
from discreet.synthesize.algebra.rotation import rotated
from discreet.synthesize.residual_correlation import in_unit_interval
from discreet.synthesize.synthesis import Synthesis

Wish = float | Literal["keep", "redraw"]


def score_correlation(
    Y: Any,
    X: Any,
    correlations: Wish | Sequence[Wish],
    *,
    rng: np.random.Generator,
    how: How = "qr",
    rotation: Any = None,
) -> Synthesis:
    r"""Residual components that correlate with the original ones as declared.

    .. math:: Y^* = \hat Y + T D W + T^* \sqrt{I - D^2} W \quad (8)

    so that the new unit scores are :math:`d_i T_i + \sqrt{1 - d_i^2}\, T^*_i`. A component with
    `"keep"` (or 1) stays as it is. A component with `"redraw"` gets a direction that is
    orthogonal to X and to the other components, old and new, but not to its own original; this
    saves dimensions. A component with 0 is uncorrelated with its original by construction.

    Promise: :math:`X^\top Y^* = X^\top Y`, :math:`Y^{*\top} Y^* = Y^\top Y`, and the correlation
    of component i with its original is exactly :math:`d_i` (when the constant is in X). Every
    wish is feasible when n is at least the rank of X, plus the components that are not redrawn,
    plus those that are not kept.

    Args:
      Y: Confidential variables, n×k.
      X: Variables whose fits are preserved, n×m, with the constant.
      correlations: For each component a number in [0, 1], `"keep"` or `"redraw"`; or one for all.
      rng: Source of the standard normal draws.
      how: Components by QR (the first is the first variable, and so on) or principal components.
      rotation: An orthogonal matrix that turns the components, or `"varimax"`.
    """
    model = fit(Y, X)
    old = scores(model.residuals, how)
    if rotation is not None:
        old = rotated(old, rotation)
    d, redrawn = _wishes(correlations, old.rank)
    changed = np.concatenate([np.flatnonzero(redrawn), np.flatnonzero(~redrawn & (d < 1))])
    fixed = old.T[:, ~redrawn] if redrawn.any() else old.T
    what = "X and the components that are not redrawn"
    T = random_scores(rng, len(fixed), len(changed), model.basis, fixed, what=what)
    added = np.sqrt(1 - d[changed] ** 2)[:, None] * old.W[changed]
    details = {
        "rank_X": model.rank,
        "rank_residuals": old.rank,
        "correlations": np.where(redrawn, np.nan, d),
    }
    return Synthesis(with_scores(model, (old.T, d[:, None] * old.W), (T, added)), details)


def _wishes(correlations: Any, r: int) -> tuple[Real, np.ndarray]:
    """Correlations (0 where redrawn), and which components are redrawn."""
    alone = isinstance(correlations, str) or np.ndim(correlations) == 0
    wishes = [correlations] * r if alone else list(correlations)
    for wish in wishes:
        if isinstance(wish, str) and wish not in ("keep", "redraw"):
            msg = f"expected a number in [0, 1], 'keep' or 'redraw' per component, got {wish!r}."
            raise ParameterError(msg)
    redrawn = np.array([wish == "redraw" for wish in wishes], dtype=bool)
    numbers = [{"keep": 1.0, "redraw": 0.0}.get(wish, wish) for wish in wishes]
    return in_unit_interval(numbers, r, "components of the residuals"), redrawn
