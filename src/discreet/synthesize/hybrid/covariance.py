r"""Covariances kept within clusters beside given residuals (Langsrud 2019, section 6, b and c).

.. math:: C^\top C = \hat E^\top \hat E - \alpha^2 \hat E_3^{*\top} \hat E_3^*

in each cluster, :math:`\hat E = \hat E_3 + \hat E_4`. All products are taken on the scale of
:math:`\hat E`, where its columns have length one.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import InfeasibleError
from discreet.synthesize.hybrid.blocks import Blocks
from discreet.synthesize.hybrid.kernels import products_within, triangular_roots
from discreet.synthesize.tolerances import MARGIN, PIVOT, ROUNDING


def local_factors(blocks: Blocks, E: Real, between: Real) -> tuple[Real, Whole]:
    """The factors C of all clusters, and how many rows each of them has.

    `between` are the synthetic residuals beside which the products of `E` are to be kept.
    """
    whole, part, lengths = _products(blocks, E, between)
    rest = whole - part
    smallest = np.asarray(np.linalg.eigvalsh(rest)[:, 0], dtype=np.float64)
    if (smallest < -ROUNDING).any():
        raise _infeasible(blocks, smallest, _largest(whole, part))
    rows = triangular_roots(rest, PIVOT)
    return rest * lengths[:, None, :], rows


def largest_alpha(blocks: Blocks, E: Real, between: Real) -> float:
    """The largest α, at most 1, for which every cluster has a factor C."""
    whole, part, _ = _products(blocks, E, between)
    return _largest(whole, part)


def _products(blocks: Blocks, E: Real, between: Real) -> tuple[Real, Real, Real]:
    """Products of both in each cluster on the scale of `E`, and the lengths of its columns."""
    whole = products_within(blocks.clusters, E)
    part = products_within(blocks.clusters, between)
    lengths = np.sqrt(np.einsum("bjj->bj", whole))
    scale = np.where(lengths > 0, lengths, np.sqrt(np.einsum("bjj->bj", part)))
    scale = np.where(scale > 0, scale, 1.0)
    pairs = scale[:, :, None] * scale[:, None, :]
    return whole / pairs, part / pairs, scale


def _largest(whole: Real, part: Real) -> float:
    r"""The smallest over clusters of :math:`1/\sqrt{\lambda_{max}(whole^{-1} part)}`, at most 1."""
    values, vectors = np.linalg.eigh(whole)
    used = values > ROUNDING * np.maximum(values[:, -1:], 1.0)
    outside = np.where(used[:, None, :], 0.0, vectors)
    if np.einsum("bij,bik,bkj->bj", outside, part, outside).max(initial=0.0) > ROUNDING:
        return 0.0
    root = np.where(used, 1 / np.sqrt(np.where(used, values, 1.0)), 0.0)[:, None, :] * vectors
    ratio = np.linalg.eigvalsh(root.swapaxes(1, 2) @ part @ root)[:, -1].max(initial=0.0)
    return 1.0 if ratio <= 0 else min(1.0, 1 / np.sqrt(ratio) / (1 + MARGIN))


def _infeasible(blocks: Blocks, smallest: Real, alpha: float) -> InfeasibleError:
    worst = int(np.argmin(smallest))
    count = int((smallest < -ROUNDING).sum())
    return InfeasibleError(
        f"variant 'b' is not possible in {count} of {len(smallest)} clusters: in cluster "
        f"{blocks.names[worst]} the products that are left for the residuals within the cluster "
        f"have the eigenvalue {smallest[worst]:.3g} (in units of the variables' own sums of "
        f"squares), and none may be negative. The nearest feasible wish is variant 'c', which "
        f"scales the synthetic residuals between clusters by α = {alpha:.6g}."
    )
