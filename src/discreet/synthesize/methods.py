"""Methods that keep fits and covariances exactly: IPSO, ROMM, declared correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular

from discreet.arrays import Real
from discreet.errors import InfeasibleError, ParameterError
from discreet.synthesize.decompose import (
    How,
    fit,
    loadings,
    random_scores,
    residuals_from,
    rotated,
    scores,
    with_scores,
)
from discreet.synthesize.orthonormal import echelon, lengths, orthonormal
from discreet.synthesize.tolerances import DEPENDENT_RESIDUALS, MARGIN, ROUNDING, Synthesis


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
