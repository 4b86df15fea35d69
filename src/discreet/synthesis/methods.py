r"""Methods that keep fits and covariances exactly (Langsrud 2019a, sections 2 to 5).

New residuals (IPSO), rotated ones (ROMM), residuals or components with declared correlations, and
residuals of other data. All take the confidential variables Y (n×k), the variables X whose fits are
preserved (n×m, the constant among them) and a source of standard normal draws, and all promise that
:math:`X^\top Y^* = X^\top Y` and :math:`Y^{*\top} Y^* = Y^\top Y`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular

from discreet.arrays import Real
from discreet.errors import InfeasibleError, ParameterError
from discreet.synthesis.decompose import (
    DEPENDENT_RESIDUALS,
    MARGIN,
    ROUNDING,
    How,
    RegressionFit,
    ResidualScores,
    Synthesis,
    fit,
    loadings,
    random_scores,
    residuals_from,
    residuals_of,
    rotate,
    scores,
    with_scores,
)
from discreet.synthesis.orthonormal import as_matrix, echelon, lengths, orthonormal, same_rows

Root = Literal["cholesky", "eigen"]
Alpha = float | Literal["largest"]
Wish = float | Literal["keep", "redraw"]
By = Literal["scores", "addition"]
Basis = Literal["scores", "random"]
LARGEST_MATRIX = 4_000  # rows for which an orthogonal matrix is made explicitly, 128 MB


def ipso(Y: Any, X: Any, *, rng: np.random.Generator) -> Synthesis:
    r"""Draw residuals anew, given the fits and the covariances.

    .. math::

       Y &= \hat Y + \hat E = \hat Y + T W \quad (2) \\
       Y_s &= \hat Y_s + \hat E_s = \hat Y_s + T^* W_s \quad (3) \\
       Y^* &= \hat Y + T^* W \quad (4)

    where :math:`Y_s` holds standard normal draws.

    Promise: beyond these moments the result says nothing about the original.
    Cost: :math:`O(n(m + k)^2)`; memory for :math:`X`, twice :math:`Y` and blocks of rows.
    """
    model = fit(Y, X)
    # Every decomposition gives the same law here, so QR is used: it needs the loadings alone, and
    # the original scores are never formed.
    W = loadings(model.residuals)
    T = random_scores(rng, len(model.Y), len(W), model.basis)
    details = {"rank_X": model.rank, "rank_residuals": len(W)}
    return Synthesis(with_scores(model, (T, W)), details)


def romm(
    Y: Any,
    X: Any,
    lambda_: float,
    *,
    rng: np.random.Generator,
    how: How = "qr",
    basis: Basis = "scores",
) -> Synthesis:
    r"""Rotate the residuals by a random orthogonal matrix that is near to the identity.

    The method is :math:`Y^* = M^* Y` with
    :math:`M^* = U_X U_X^\top + U_E P^* U_E^\top` (14, 15), where :math:`P^*` is the orthogonal
    factor of :math:`I + \lambda H` and :math:`U_E` begins with :math:`T`. The same law comes
    without the n×n matrix from the scores of

    .. math:: Y_g = T + \lambda H \quad (17)

    after its projection on :math:`X` is taken off, in the place of :math:`T` (11, 12).

    `lambda_` is the size of the noise, at least 0, and `how` says which scores are rotated. QR
    works column by column, so that the first score stays nearest to the original;
    `basis="random"` turns the scores by a random rotation first, and all are equally near.

    Promise: with :math:`\lambda = 0` the result is the original, for large :math:`\lambda` it is
    that of `ipso`; the similarity decreases from the first score to the last, unless the basis is
    random.
    """
    model = fit(Y, X)
    old = _in_basis(scores(model.residuals, how), lambda_, basis, rng)
    T = _near(old.T, lambda_, model.basis, rng)
    details = {"rank_X": model.rank, "rank_residuals": old.rank, "lambda": float(lambda_)}
    return Synthesis(with_scores(model, (T, old.W)), details)


def romm_matrix(
    Y: Any,
    X: Any,
    lambda_: float,
    *,
    rng: np.random.Generator,
    how: How = "qr",
    basis: Basis = "scores",
) -> Real:
    r"""The orthogonal matrix :math:`M^*` of (15) itself, for the same draws as `romm`.

    **Confidential**: it leads from the synthetic values back to the original. It takes n² numbers,
    and at most 4,000 rows.
    """
    model = fit(Y, X)
    n = len(model.Y)
    if n > LARGEST_MATRIX:
        raise ParameterError(
            f"an orthogonal matrix of {n:,} rows is not made explicitly; at most "
            f"{LARGEST_MATRIX:,} are. `romm` gives the same values without it."
        )
    old = _in_basis(scores(model.residuals, how), lambda_, basis, rng)
    T = _near(old.T, lambda_, model.basis, rng)
    used = np.hstack([model.basis, old.T])
    # A full QR completes the orthonormal columns; which completion it is changes no law.
    rest = np.linalg.qr(used, mode="complete")[0][:, used.shape[1] :]
    noise = residuals_from(rng.standard_normal(rest.shape), model.basis) * lambda_
    completed, _ = orthonormal(np.hstack([T, rest + noise]), 0.0)
    before = np.hstack([old.T, rest])
    return np.asarray(model.basis @ model.basis.T + completed @ before.T)


def _in_basis(
    old: ResidualScores, lambda_: float, basis: Basis, rng: np.random.Generator
) -> ResidualScores:
    if not 0 <= lambda_ < np.inf:
        raise ParameterError(
            f"lambda must be a number of at least 0, got {lambda_}. 0 returns the original."
        )
    if basis not in ("scores", "random"):
        raise ParameterError(f"basis must be 'scores' or 'random', got {basis!r}.")
    if basis == "scores":
        return old
    return rotate(old, orthonormal(rng.standard_normal((old.rank, old.rank)), 0.0)[0])


def _near(T: Real, lambda_: float, taken: Real, rng: np.random.Generator) -> Real:
    """Orthonormal scores near some others, orthogonal to a basis."""
    Yg = residuals_from(rng.standard_normal(T.shape), taken, overwrite=True)
    Yg *= lambda_
    Yg += T
    # By QR whatever `how` is: principal components of noisy scores are unstable, and QR keeps the
    # order of the scores, on which the decreasing similarity rests.
    return orthonormal(Yg, 0.0, overwrite=True)[0]


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

    Promise: the correlation of original and synthetic residuals of variable i is exactly
    :math:`\alpha d_i` (when the constant is in X). Not every wish is feasible. The details hold
    `largest_alpha`, and `correlations` as they are in the result.

    `correlations` are :math:`d_i` in [0, 1] for each variable, or one number for all. `alpha`
    multiplies all of them; `"largest"` takes the largest feasible one up to 1. `root` says how C is
    found: `"cholesky"` or `"eigen"`.
    """
    model = fit(Y, X)
    d = _in_unit_interval(correlations, model.Y.shape[1], "variables of Y")
    old = scores(model.residuals)
    try:
        # Residuals times D are other residuals with the same scores, so that (7) is a case of (9).
        added = addition(old.W, old.W * d, alpha, root)
    except InfeasibleError as error:
        nearest = addition(old.W, old.W * d, "largest", "eigen").alpha * d
        raise InfeasibleError(
            f"correlations {_as_text(d)} cannot be reached: {error} With it the correlations are "
            f"{_as_text(nearest)}. Component-wise correlations (`score_correlation`) are always "
            "feasible."
        ) from None
    T = random_scores(rng, len(model.Y), len(added.C), model.basis, old.T, what="X and Y together")
    details: dict[str, Any] = {"rank_X": model.rank, "rank_residuals": old.rank}
    details |= {"alpha": added.alpha, "largest_alpha": added.largest}
    details["correlations"] = added.alpha * d
    return Synthesis(with_scores(model, (old.T, added.alpha * old.W * d), (T, added.C)), details)


def _in_unit_interval(values: Any, length: int, what: str) -> Real:
    d = np.asarray(values, dtype=np.float64)
    if d.ndim > 1 or (d.ndim == 1 and len(d) != length):
        msg = f"expected one number for each of the {length} {what}, got {d.size} numbers."
        raise ParameterError(msg)
    if not ((d >= 0) & (d <= 1)).all():
        msg = f"numbers must lie in [0, 1], got {d.tolist()}."
        raise ParameterError(msg)
    return np.array(np.broadcast_to(d, length))


def _as_text(numbers: Real) -> str:
    return "(" + ", ".join(f"{number:.6g}" for number in numbers) + ")"


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

    Promise: the correlation of component i with its original is exactly :math:`d_i` (when the
    constant is in X). Every wish is feasible when n is at least the rank of X, plus the components
    that are not redrawn, plus those that are not kept.

    `correlations` holds for each component a number in [0, 1], `"keep"` or `"redraw"`; or one for
    all. Components are made by QR (the first is the first variable, and so on) or are principal
    components, as `how` says; `rotation` turns them, an orthogonal matrix or `"varimax"`.
    """
    model = fit(Y, X)
    old = scores(model.residuals, how)
    if rotation is not None:
        old = rotate(old, rotation)
    d, redrawn = _as_correlations(correlations, old.rank)
    changed = np.concatenate([np.flatnonzero(redrawn), np.flatnonzero(~redrawn & (d < 1))])
    # A redrawn component may come near its original again: its own direction stays free, so that
    # it takes one dimension where a component with 0 takes two.
    fixed = old.T[:, ~redrawn] if redrawn.any() else old.T
    what = "X and the components that are not redrawn"
    T = random_scores(rng, len(fixed), len(changed), model.basis, fixed, what=what)
    added = np.sqrt(1 - d[changed] ** 2)[:, None] * old.W[changed]
    details: dict[str, Any] = {"rank_X": model.rank, "rank_residuals": old.rank}
    details["correlations"] = np.where(redrawn, np.nan, d)
    return Synthesis(with_scores(model, (old.T, d[:, None] * old.W), (T, added)), details)


def _as_correlations(correlations: Any, r: int) -> tuple[Real, np.ndarray]:
    alone = isinstance(correlations, str) or np.ndim(correlations) == 0
    wishes = [correlations] * r if alone else list(correlations)
    for wish in wishes:
        if isinstance(wish, str) and wish not in ("keep", "redraw"):
            msg = f"expected a number in [0, 1], 'keep' or 'redraw' per component, got {wish!r}."
            raise ParameterError(msg)
    redrawn = np.array([wish == "redraw" for wish in wishes], dtype=bool)
    numbers = [{"keep": 1.0, "redraw": 0.0}.get(wish, wish) for wish in wishes]
    return _in_unit_interval(numbers, r, "components of the residuals"), redrawn


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

    `other` has rows and columns as in Y. `share` is :math:`d_i` in [0, 1] for each variable, or one
    number for all. By scores, `how` says by which: QR keeps close to the other data, principal
    components do not. By addition, `alpha` is the multiplier, or `"largest"` for the largest
    feasible one up to 1, and `root` says how C is found, `"cholesky"` or `"eigen"`.
    """
    model = fit(Y, X)
    Eg = residuals_of(_other(model, other, share, rng), model.basis)
    if by == "scores":
        return _by_scores(model, Eg, how)
    if by == "addition":
        return _by_addition(model, Eg, alpha, root, rng)
    raise ParameterError(f"by must be 'scores' or 'addition', got {by!r}.")


def _other(model: RegressionFit, other: Any, share: Any, rng: np.random.Generator) -> Real:
    if (other is None) == (share is None):
        raise ParameterError(
            "give either the data to be corrected, or the share of the original in a mixture."
        )
    if other is None:
        d = _in_unit_interval(share, model.Y.shape[1], "variables")
        mixture = rng.standard_normal(model.Y.shape)
        # The draws have the variances of the original, so that d is a share on every scale.
        centred = model.Y - model.Y.mean(axis=0)
        mixture *= (1 - d) * lengths(centred) / np.sqrt(len(model.Y))
        mixture += model.Y * d
        return mixture
    Yg = as_matrix(other, "the other data")
    same_rows(Y=model.Y, other=Yg)
    if Yg.shape != model.Y.shape:
        raise ParameterError(
            f"the other data have {Yg.shape[1]} columns, expected {model.Y.shape[1]} as in Y."
        )
    return Yg


def _by_scores(model: RegressionFit, Eg: Real, how: How) -> Synthesis:
    old = scores(model.residuals, how)
    if how == "qr":
        # Components by QR belong to columns, so those of dependent columns have no partner.
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
    model: RegressionFit, Eg: Real, alpha: Alpha, root: Root, rng: np.random.Generator
) -> Synthesis:
    old, other = scores(model.residuals), scores(Eg)
    added = addition(old.W, other.W, alpha, root)
    T = random_scores(
        rng, len(Eg), len(added.C), model.basis, other.T, what="X and the other data together"
    )
    details: dict[str, Any] = {"rank_X": model.rank, "rank_residuals": old.rank}
    details |= {"alpha": added.alpha, "largest_alpha": added.largest}
    parts = (other.T, added.alpha * other.W), (T, added.C)
    return Synthesis(with_scores(model, *parts), details)


@dataclass(frozen=True)
class Addition:
    """How much of other residuals fits in, and what completes it."""

    alpha: float  # the multiplier used
    largest: float  # the largest feasible multiplier; infinite when there are no other residuals
    C: Real  # loadings of the synthetic scores


def addition(W: Real, Wg: Real, alpha: Alpha, root: Root) -> Addition:
    """Solve (10) for the wished multiplier, or for the largest one up to 1.

    `W` are the QR loadings of the original residuals, `Wg` those of the other residuals. Root
    `"cholesky"` gives an upper triangular C, `"eigen"` one with orthogonal rows in the scores.
    """
    if root not in ("cholesky", "eigen"):
        raise ParameterError(f"root must be 'cholesky' or 'eigen', got {root!r}.")
    # With W_g = K W, (10) is C'C = W'(I - alpha² K'K) W, and the singular values of K say how large
    # alpha may be. Eigenvalues of (10) itself would mix the scales of the variables.
    kept = echelon(W, DEPENDENT_RESIDUALS).kept
    K = solve_triangular(W[:, kept], Wg[:, kept].T, trans="T").T if len(W) else Wg[:, :0]
    size = lengths(Wg) + lengths(W)
    exists = not (lengths(Wg - K @ W) > DEPENDENT_RESIDUALS * size).any()
    _, sizes, axes = np.linalg.svd(K)
    top = float(sizes.max(initial=0.0)) if exists else np.inf
    largest = 1.0 / top if top > 0 else np.inf
    chosen = _choose(alpha, largest)
    left = np.ones(len(W))
    left[: len(sizes)] -= (chosen * sizes) ** 2
    C = np.sqrt(np.maximum(left, 0.0))[:, None] * (axes @ W)
    C = C[left > ROUNDING]  # a direction that is used up takes no dimension of the new scores
    return Addition(chosen, largest, echelon(C, DEPENDENT_RESIDUALS).R if root == "cholesky" else C)


def _choose(alpha: Alpha, largest: float) -> float:
    # Where all of the other residuals fit in, nothing is taken off: alpha = 1 is a common wish.
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
