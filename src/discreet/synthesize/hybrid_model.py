r"""The regressions behind hybrid microdata, nested from pieces of clusters up to all rows.

The columns of :math:`X_1` are those of :math:`X_A` crossed with clusters (and some with pieces of
clusters), the columns of :math:`X_2` those of :math:`X_B` (some crossed with groups of clusters)
adjusted for :math:`X_1`. A crossed matrix is never made: its columns are regressed on within
blocks of rows, from the smallest blocks to the largest, and each level adjusts the columns of the
levels above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.synthesize.block_kernels import clear_rounding, lengths_within, remove_within
from discreet.synthesize.blocks import Blocks, Index, arrange
from discreet.synthesize.decompose import DEPENDENT_X, ZERO
from discreet.synthesize.matrices import Matrix, as_matrix, binary_scales, same_rows

_NO_LEVERAGE = np.empty(0)


@dataclass(frozen=True)
class HybridModel:
    """Regressors by the level at which they are crossed, columns as rows, in order of blocks.

    Attributes:
      blocks: The order of rows.
      pieces: What is crossed with pieces of clusters.
      local: What is crossed with clusters.
      grouped: What is crossed with groups of clusters.
      shared: What is not crossed.
    """

    blocks: Blocks
    pieces: Matrix
    local: Matrix
    grouped: Matrix
    shared: Matrix

    @property
    def above(self) -> Matrix:
        """What is not crossed with clusters: the grouped and the shared columns."""
        return np.concatenate([self.grouped, self.shared])


@dataclass(frozen=True)
class LocalFit:
    """What regression on all that is crossed with clusters left.

    Attributes:
      left: Residuals of the given columns.
      above: The columns X_2, adjusted for all that is crossed with clusters.
      above_lengths: Length of the columns of X_B within clusters, before they were adjusted.
      left_lengths: The same for the given columns.
      ranks: Rank of X_1 within each cluster.
    """

    left: Matrix
    above: Matrix
    above_lengths: Matrix
    left_lengths: Matrix
    ranks: Index


def model(
    n: int,
    X_local: Any,
    X_shared: Any,
    clusters: Any,
    groups: Any,
    X_groups: Any,
    pieces: Any,
    X_pieces: Any,
) -> HybridModel:
    """Put regressors and labels into the order of blocks, with the defaults that `hybrid` names."""
    blocks = arrange(n, clusters, groups, pieces)
    if groups is not None and X_groups is None:
        X_shared, X_groups = None, X_shared
    if pieces is not None and X_pieces is None:
        X_pieces = np.ones(n)
    X_local = np.ones(n) if X_local is None else X_local
    return HybridModel(
        blocks,
        _columns(blocks, X_pieces, "X_pieces"),
        _columns(blocks, X_local, "X_local"),
        _columns(blocks, X_groups, "X_groups"),
        _columns(blocks, X_shared, "X_shared"),
    )


def _columns(blocks: Blocks, values: Any, name: str) -> Matrix:
    """A matrix in the order of blocks; powers of two keep its squares within range."""
    n = len(blocks.order)
    if values is None:
        return np.empty((0, n))
    matrix = as_matrix(values, name)
    same_rows(Y=np.empty((n, 0)), **{name: matrix})
    return blocks.columns(matrix) / binary_scales(matrix)[:, None]


def fit_local(own: HybridModel, A: Matrix, leverage: Matrix = _NO_LEVERAGE) -> LocalFit:
    """Regress columns, and X_B with them, on what is crossed with clusters and their pieces."""
    blocks = own.blocks
    above, local = own.above, own.local
    together = np.concatenate([above, A])
    lengths = lengths_within(blocks.clusters, together)
    local_lengths = lengths_within(blocks.clusters, local)
    ranks = np.zeros(len(blocks.clusters) - 1, dtype=np.int64)
    if len(own.pieces):
        carried = np.concatenate([local, together])
        piece_lengths = lengths_within(blocks.pieces, own.pieces)
        found = remove_within(
            blocks.pieces, own.pieces, piece_lengths, DEPENDENT_X, carried, leverage
        )
        np.add.at(ranks, blocks.cluster_of_piece, found)
        local, together = carried[: len(local)], carried[len(local) :]
    ranks += remove_within(blocks.clusters, local, local_lengths, DEPENDENT_X, together, leverage)
    clear_rounding(blocks.clusters, together, lengths, ZERO)
    b = len(above)
    return LocalFit(together[b:], together[:b], lengths[:, :b], lengths[:, b:], ranks)


def fit_above(own: HybridModel, found: LocalFit, A: Matrix, leverage: Matrix = _NO_LEVERAGE) -> int:
    """Replace columns by their residuals on X_2 within groups and over all rows.

    Returns the rank of X_2.
    """
    blocks, g = own.blocks, len(own.grouped)
    size = found.above_lengths**2
    carried = np.concatenate([found.above[g:], A])
    rank = 0
    if g:
        first = np.searchsorted(blocks.clusters, blocks.groups[:-1])
        lengths = np.sqrt(np.add.reduceat(size[:, :g], first))
        removed = remove_within(
            blocks.groups, found.above[:g], lengths, DEPENDENT_X, carried, leverage
        )
        rank += int(removed.sum())
    shared, rest = carried[: len(own.shared)], carried[len(own.shared) :]
    lengths = np.sqrt(size[:, g:].sum(axis=0, keepdims=True))
    rank += int(remove_within(blocks.whole, shared, lengths, DEPENDENT_X, rest, leverage)[0])
    A[:] = rest
    return rank
