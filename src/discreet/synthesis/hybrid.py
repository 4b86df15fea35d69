r"""Hybrid microdata: generalised microaggregation (Langsrud 2019a, section 6).

.. math:: Y = \hat Y_1 + \hat Y_2 + \hat E_3 + \hat E_4

:math:`\hat Y_1` is the fit on what is crossed with clusters (:math:`X_A`), :math:`\hat Y_2` the fit
on the rest (:math:`X_B`, adjusted for :math:`X_A` within clusters), :math:`\hat E_3` what the rest
explains when it is crossed with clusters too, and :math:`\hat E_4` what nothing explains. The fits
are kept; the two kinds of residuals are replaced by synthetic ones with the same products of
columns, :math:`\hat E_3` over all rows and :math:`\hat E_4` within each cluster.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import InfeasibleError, ParameterError
from discreet.synthesis import hybrid_kernels as kernels
from discreet.synthesis.decompose import (
    DEPENDENT_RESIDUALS,
    MARGIN,
    ROUNDING,
    ZERO,
    Synthesis,
    scores,
)
from discreet.synthesis.hybrid_levels import Blocks, HybridBases, Scaled, hybrid_model, subtract
from discreet.synthesis.orthonormal import as_matrix

Variant = Literal["main", "a", "b", "c"]
Residuals = Literal["synthetic", "zero"]


# Pivots of a Cholesky root up to here are zero, on the scale of the residuals' own products.
PIVOT = 1e-14


def hybrid(
    Y: Any,
    X_local: Any,
    X_shared: Any,
    clusters: Any,
    *,
    rng: np.random.Generator,
    groups: Any = None,
    X_groups: Any = None,
    pieces: Any = None,
    X_pieces: Any = None,
    variant: Variant = "main",
    residuals: Residuals = "synthetic",
) -> Synthesis:
    r"""New values with exactly the fits, and covariances of residuals, that each cluster has.

    Without `X_shared` this is IPSO within each cluster (MHa); with one cluster and `pieces`, IPSO
    with indicators of the pieces (MHb).

    Args:
      Y: The confidential variables, n×k.
      X_local: Regressors crossed with clusters, the constant among them; None is the constant.
      X_shared: Regressors that are not crossed with clusters, or None.
      clusters: One label for each row; None makes all rows one cluster.
      rng: Where chance comes from; n×k standard normal draws are taken.
      groups: Labels of groups of clusters: `X_groups` is crossed with them.
      X_groups: What is crossed with groups; all of `X_shared`, if it is not given.
      pieces: Labels of pieces of clusters: `X_pieces` is crossed with them.
      X_pieces: What is crossed with pieces; the constant, if it is not given.
      variant: `"main"` keeps products of :math:`\hat E_4` in each cluster and those of
        :math:`\hat E_3` over all rows; `"a"`, `"b"` and `"c"` keep those of
        :math:`\hat E_3 + \hat E_4` in each cluster, with the synthetic :math:`\hat E_3` set to
        zero, left as it is, or scaled by the largest feasible :math:`\alpha`.
      residuals: `"zero"` returns the fits alone: generalised microaggregation.
    """
    Y = as_matrix(Y, "Y")
    if variant not in get_args(Variant):
        known = ", ".join(get_args(Variant))
        raise ParameterError(f"variant must be one of {known}, got {variant!r}.")
    if residuals not in get_args(Residuals):
        raise ParameterError(f"residuals must be 'synthetic' or 'zero', got {residuals!r}.")
    own = hybrid_model(len(Y), X_local, X_shared, clusters, groups, X_groups, pieces, X_pieces)
    values, synthetic = Scaled.of(Y), residuals == "synthetic"
    # The result takes the memory of the draws: those of a part are read before it is written.
    out = np.asarray(rng.standard_normal(Y.shape)) if synthetic else np.empty_like(Y, order="C")
    details: dict[str, Any] = {"clusters": own.blocks.names, "rank_X": 0}
    degrees = []
    for found in own.parts():
        order, free = found.blocks.order, found.local_degrees
        columns = values.columns(order)
        columns = _replace_residuals(found, columns, out, synthetic, variant, details)
        kernels.scatter(columns, order, values.scales, out)
        details["rank_X"] += len(order) - int(free.sum()) + found.rank_above
        degrees.append(free if found.within is None else free - found.within.ranks)
    return Synthesis(out, {**details, "residual_degrees": np.concatenate(degrees)})


def _replace_residuals(
    found: HybridBases,
    columns: Real,
    draws: Real,
    synthetic: bool,
    variant: str,
    details: dict[str, Any],
) -> Real:
    k, order = len(columns), found.blocks.order
    drawn = Scaled(draws, np.ones(k)).columns(order) if synthetic else columns[:0]
    E4, E3 = _residuals(found, np.concatenate([columns, drawn]))
    E = E4[:k] if E3 is None else E4[:k] + E3[:k]
    columns -= E
    if not synthetic:
        return columns
    clusters, T = found.blocks.clusters, E4[k:]
    # The draws go through the same regressions as the values, so their residuals within clusters
    # are scores that are orthogonal to everything that is kept; their rank is the room there is.
    room = kernels.orthonormal_within(
        clusters, T, kernels.lengths_within(clusters, T), DEPENDENT_RESIDUALS
    )
    if E3 is None:
        kernels.replace_within(clusters, E, DEPENDENT_RESIDUALS, T)
    elif variant == "main":
        kernels.replace_within(clusters, E4[:k], DEPENDENT_RESIDUALS, T)
        columns += _with_loadings_of(E3[:k], E3[k:])
    elif variant == "a":
        needed = kernels.replace_within(clusters, E, DEPENDENT_RESIDUALS, T)
        _check_room(needed, room, found.blocks.names, variant)
    else:
        between = _with_loadings_of(E3[:k], E3[k:])
        if variant == "c":
            whole, part, _ = _products(found.blocks, E, between)
            details["alpha"] = _largest_alpha(whole, part)
            between *= details["alpha"]
        C, needed = _local_factors(found.blocks, E, between)
        _check_room(needed, room, found.blocks.names, variant)
        kernels.spread_within(clusters, T, C)
        columns += between
    columns += T
    return columns


def _residuals(found: HybridBases, A: Real) -> tuple[Real, Real | None]:
    """E_4 and E_3 of some columns; the second only if there is an X_B."""
    blocks = found.blocks
    lengths = kernels.lengths_within(blocks.clusters, A)
    within = A.copy()
    subtract(found.local, within)
    kernels.clear_rounding(blocks.clusters, within, lengths, ZERO)
    if found.within is None:
        return within, None
    between = within.copy()
    subtract([found.within], within)
    kernels.clear_rounding(blocks.clusters, within, lengths, ZERO)
    # A difference, not a projection of its own: what X_1 leaves is split into two without loss.
    between -= within
    subtract(found.above, between)
    kernels.clear_rounding(blocks.whole, between, kernels.lengths_within(blocks.whole, A), ZERO)
    return within, between


def _with_loadings_of(E: Real, drawn: Real) -> Real:
    W = scores(E.T).W
    T = scores(drawn.T).T[:, : len(W)]
    return np.ascontiguousarray((T @ W).T)


def _check_room(needed: Whole, room: Whole, names: Any, variant: str) -> None:
    """Refuse residuals that need more dimensions than X_A and X_B leave free in a cluster."""
    if short := int((needed > room).sum()):
        worst = int(np.argmax(needed - room))
        raise InfeasibleError(
            f"variant {variant!r} is not possible in {short} of {len(names)} clusters: in cluster "
            f"{names[worst]} the residuals have rank {int(needed[worst])}, but X_local and "
            f"X_shared leave only {int(room[worst])} dimensions free. Use variant 'main', larger "
            "clusters, or fewer columns in X_shared."
        )


def _local_factors(blocks: Blocks, E: Real, between: Real) -> tuple[Real, Whole]:
    """The factors C of all clusters beside synthetic residuals, and how many rows each has."""
    whole, part, lengths = _products(blocks, E, between)
    rest = whole - part
    smallest = np.asarray(np.linalg.eigvalsh(rest)[:, 0], dtype=np.float64)
    if (smallest < -ROUNDING).any():
        worst, alpha = int(np.argmin(smallest)), _largest_alpha(whole, part)
        count = int((smallest < -ROUNDING).sum())
        raise InfeasibleError(
            f"variant 'b' is not possible in {count} of {len(smallest)} clusters: in cluster "
            f"{blocks.names[worst]} the products that are left for the residuals within the "
            f"cluster have the eigenvalue {smallest[worst]:.3g} (in units of the variables' own "
            "sums of squares), and none may be negative. The nearest feasible wish is variant "
            f"'c', which scales the synthetic residuals between clusters by α = {alpha:.6g}."
        )
    rows = kernels.triangular_roots(rest, PIVOT)
    return rest * lengths[:, None, :], rows


def _products(blocks: Blocks, E: Real, between: Real) -> tuple[Real, Real, Real]:
    """Products of both in each cluster on the scale of `E`, and the lengths of its columns."""
    whole = kernels.products_within(blocks.clusters, E)
    part = kernels.products_within(blocks.clusters, between)
    lengths = np.sqrt(np.einsum("bjj->bj", whole))
    # A variable without residuals in a cluster has no scale of its own there.
    scale = np.where(lengths > 0, lengths, np.sqrt(np.einsum("bjj->bj", part)))
    scale = np.where(scale > 0, scale, 1.0)
    pairs = scale[:, :, None] * scale[:, None, :]
    return whole / pairs, part / pairs, scale


def _largest_alpha(whole: Real, part: Real) -> float:
    r"""The smallest over clusters of :math:`1/\sqrt{\lambda_{max}(whole^{-1} part)}`, at most 1."""
    values, vectors = np.linalg.eigh(whole)
    used = values > ROUNDING * np.maximum(values[:, -1:], 1.0)
    # Directions in which the whole has no variance leave no room at all, and dividing by their
    # eigenvalues would divide by rounding.
    outside = np.where(used[:, None, :], 0.0, vectors)
    if np.einsum("bij,bik,bkj->bj", outside, part, outside).max(initial=0.0) > ROUNDING:
        return 0.0
    root = np.where(used, 1 / np.sqrt(np.where(used, values, 1.0)), 0.0)[:, None, :] * vectors
    ratio = np.linalg.eigvalsh(root.swapaxes(1, 2) @ part @ root)[:, -1].max(initial=0.0)
    return 1.0 if ratio <= 0 else min(1.0, 1 / np.sqrt(ratio) / (1 + MARGIN))
