r"""Clusters that hybrid microdata would give back as they were, or mirrored.

A cluster of n rows has a rank r of regressors that it determines alone: those crossed with
clusters, and those of :math:`X_B` that would be lost without its rows. With n − r = 0 its rows
come out as they went in; with n − r = 1 residuals can only change their sign. The rank lost
without a set S of rows is the number of singular values of :math:`Q_S` that are one, where Q is an
orthonormal basis. Residuals that :math:`X_B` would explain within clusters protect the others only
if they have two dimensions at least over all clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Whole
from discreet.synthesize.hybrid.kernels import products_within
from discreet.synthesize.hybrid.levels import Levels, model
from discreet.synthesize.tolerances import LEAST_FREEDOM, ONE


@dataclass(frozen=True)
class UnsafeClusters:
    """What would come out as it went in, or mirrored.

    Attributes:
      names: Labels of the clusters with too few residual degrees of freedom, `degrees` each.
      rows: For each row whether it lies in such a cluster or has leverage one.
    """

    names: Array
    degrees: Whole
    rows: Mask

    def __bool__(self) -> bool:
        """Whether there is anything unsafe."""
        return bool(self.rows.any())


def unsafe_clusters(X_local: Any, X_shared: Any, clusters: Any, **crossed: Any) -> UnsafeClusters:
    """Clusters with fewer than two residual degrees of freedom, and rows of leverage one.

    The arguments are those of `hybrid`, with groups and pieces and what is crossed with them. It
    does not look at the confidential variables.
    """
    given = (clusters, X_local, X_shared, *crossed.values())
    n = len(next(values for values in given if values is not None))
    own = model(n, X_local, X_shared, clusters, **crossed)
    found = own.levels(own.blocks)
    degrees = found.local_degrees - _lost_ranks(found)
    leverage = found.leverage
    if found.within is not None and is_known_between(found):
        degrees = np.minimum(degrees, found.local_degrees - found.within.ranks)
        leverage = np.maximum(leverage, replace(found, above=[found.within]).leverage)
    unsafe = degrees < LEAST_FREEDOM
    rows = np.empty(n, dtype=np.bool_)
    in_unsafe = np.repeat(unsafe, np.diff(own.blocks.clusters))
    rows[own.blocks.order] = in_unsafe | (leverage >= ONE)
    return UnsafeClusters(own.blocks.names[unsafe], degrees[unsafe], rows)


def is_known_between(found: Levels) -> bool:
    """Whether what X_B would explain within clusters has too few directions to be drawn anew."""
    if found.within is None:
        return False
    return bool(found.within.ranks.sum() - found.rank_above < LEAST_FREEDOM)


def _lost_ranks(found: Levels) -> Whole:
    """For each cluster, the rank of X_2 that would be lost without it."""
    if found.within is None:
        return np.zeros_like(found.local_degrees)
    basis = np.concatenate([level.Q for level in found.above])
    sizes = np.linalg.eigvalsh(products_within(found.blocks.clusters, basis))
    return np.asarray((sizes >= ONE).sum(axis=1))
