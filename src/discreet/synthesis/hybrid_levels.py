"""The regressions behind hybrid microdata, nested from pieces of clusters up to all rows.

The columns of :math:`X_1` are those of :math:`X_A` crossed with clusters (and some with pieces of
clusters), the columns of :math:`X_2` those of :math:`X_B` (some crossed with groups of clusters)
adjusted for :math:`X_1`. A crossed matrix is never made: its columns are regressed on within
blocks of rows, from the smallest blocks to the largest, and each level adjusts the columns of the
levels above it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Array, Real, Whole
from discreet.errors import DataError, ParameterError
from discreet.synthesis import hybrid_kernels as kernels
from discreet.synthesis.decompose import DEPENDENT_X, ZERO
from discreet.synthesis.orthonormal import as_matrix, binary_scales, same_rows

# Rows of clusters handled at a time; thirty columns of so many stay in the processor's cache.
CLUSTERED_ROWS = 8192


@dataclass(frozen=True)
class Scaled:
    """A matrix with a power of two for each column, by which it is divided in all computations."""

    matrix: Real  # rows in the order of the data
    scales: Real  # they keep squares within the range of numbers

    @classmethod
    def of(cls, matrix: Real) -> Scaled:
        """A matrix with the scales of its columns."""
        return cls(matrix, binary_scales(matrix))

    def columns(self, order: Whole) -> Real:
        """The scaled columns as rows of the result, in an order of places."""
        out = np.empty((self.matrix.shape[1], len(order)))
        kernels.gather(self.matrix, order, 1 / self.scales, out)
        return out


@dataclass(frozen=True)
class BlockBases:
    """Orthonormal bases of regressors, one for each block of rows."""

    starts: Whole  # where the blocks begin
    Q: Real  # the bases, columns as rows; zeros where a block has fewer columns than others
    ranks: Whole  # how many columns each block has


@dataclass(frozen=True)
class Blocks:
    """Rows ordered so that a piece, a cluster and a group of clusters are runs of rows."""

    order: Whole
    pieces: Whole  # where each piece of a cluster begins, and the end of the last one
    clusters: Whole  # the same for clusters
    groups: Whole  # the same for groups of clusters
    names: Array  # the labels of the clusters, in order

    def batches(self) -> Iterator[Blocks]:
        """Runs of whole clusters, about as many rows each as the processor's cache holds."""
        wanted = np.arange(1, len(self.order) // CLUSTERED_ROWS + 1) * CLUSTERED_ROWS
        cuts = np.unique([0, *np.searchsorted(self.clusters, wanted), len(self.names)])
        for first, last in itertools.pairwise(cuts):
            start, end = self.clusters[first], self.clusters[last]
            yield Blocks(
                self.order[start:end],
                _between(self.pieces, start, end),
                _between(self.clusters, start, end),
                np.array([0, end - start]),
                self.names[first:last],
            )

    @property
    def whole(self) -> Whole:
        """All rows as one block."""
        return np.array([0, len(self.order)])


@dataclass(frozen=True)
class HybridBases:
    """All regressors as bases that are orthogonal to each other, but for `within`."""

    blocks: Blocks
    local: list[BlockBases]  # X_1: what is crossed with pieces of clusters, and with clusters
    above: list[BlockBases]  # X_2: what is crossed with groups of clusters, and with nothing
    within: BlockBases | None  # X_2 crossed with clusters; its span holds that of `above`

    @property
    def leverage(self) -> Real:
        """What each row weighs in the fit on X_1 and X_2."""
        bases = [level.Q for level in (*self.local, *self.above)]
        return sum((np.einsum("jn,jn->n", Q, Q) for Q in bases), np.zeros(bases[0].shape[1]))

    @property
    def local_degrees(self) -> Whole:
        """Number of rows less the rank of X_1, within each cluster."""
        degrees = np.diff(self.blocks.clusters) - self.local[-1].ranks
        if len(self.local) > 1:
            first = self.blocks.pieces[:-1]
            cluster_of_piece = np.searchsorted(self.blocks.clusters, first, side="right") - 1
            np.subtract.at(degrees, cluster_of_piece, self.local[0].ranks)
        return degrees

    @property
    def rank_above(self) -> int:
        """The rank of X_2."""
        return sum(int(level.ranks.sum()) for level in self.above)


@dataclass(frozen=True)
class HybridModel:
    """Regressors by the level at which they are crossed, rows in the order of the data."""

    blocks: Blocks
    pieces: Scaled  # what is crossed with pieces of clusters
    local: Scaled  # what is crossed with clusters
    grouped: Scaled  # what is crossed with groups of clusters
    shared: Scaled  # what is not crossed

    def parts(self) -> Iterator[HybridBases]:
        """The levels of sets of clusters that can be worked on by themselves."""
        # Clusters that share a regressor share its residuals, so they cannot be parted.
        shares = self.grouped.matrix.shape[1] + self.shared.matrix.shape[1]
        for blocks in [self.blocks] if shares else self.blocks.batches():
            yield self.levels(blocks)

    def levels(self, blocks: Blocks) -> HybridBases:
        """Bases from the smallest blocks to the largest, each adjusted for those before it."""
        order, local = blocks.order, []
        pieces, own = self.pieces.columns(order), self.local.columns(order)
        if len(pieces):
            local.append(_level(blocks.pieces, pieces, pieces, []))
        # Smallest blocks first: a basis of clusters that is adjusted for their pieces is still one
        # of clusters, but a basis of pieces adjusted for clusters would no longer lie in pieces.
        columns = own.copy()
        subtract(local, columns)
        local.append(_level(blocks.clusters, own, columns, local))
        grouped = self.grouped.columns(order)
        given = np.concatenate([grouped, self.shared.columns(order)])
        if not len(given):
            return HybridBases(blocks, local, [], None)
        adjusted, g = given.copy(), len(grouped)
        subtract(local, adjusted)
        # A column that is constant within clusters is rounding alone after the adjustment, and
        # rounding must not become a direction of its own in `within`.
        kernels.clear_rounding(
            blocks.clusters, adjusted, kernels.lengths_within(blocks.clusters, given), ZERO
        )
        within = _level(blocks.clusters, given, adjusted, local)
        above = [_inside(within, _level(blocks.groups, given[:g], adjusted[:g], local))]
        subtract(above, adjusted[g:])
        shared = _level(blocks.whole, given[g:], adjusted[g:], [*local, *above])
        return HybridBases(blocks, local, [*above, _inside(within, shared)], within)


def hybrid_model(
    n: int,
    X_local: Any,
    X_shared: Any = None,
    clusters: Any = None,
    groups: Any = None,
    X_groups: Any = None,
    pieces: Any = None,
    X_pieces: Any = None,
) -> HybridModel:
    """Put regressors and labels into the order of blocks, with the defaults that `hybrid` names."""
    blocks = arrange(n, clusters, groups, pieces)
    if groups is not None and X_groups is None:
        X_shared, X_groups = None, X_shared
    if pieces is not None and X_pieces is None:
        X_pieces = np.ones(n)
    X_local = np.ones(n) if X_local is None else X_local
    given = {"X_pieces": X_pieces, "X_local": X_local, "X_groups": X_groups, "X_shared": X_shared}
    regressors = []
    for name, values in given.items():
        matrix = np.empty((n, 0)) if values is None else as_matrix(values, name)
        same_rows(Y=np.empty((n, 0)), **{name: matrix})
        regressors.append(Scaled.of(matrix))
    return HybridModel(blocks, *regressors)


def subtract(found: list[BlockBases], columns: Real) -> None:
    """Replace columns by their residuals on bases that are orthogonal to each other."""
    for level in found:
        kernels.subtract_within(level.starts, level.Q, level.ranks, columns)


def _level(starts: Whole, given: Real, adjusted: Real, below: list[BlockBases]) -> BlockBases:
    """The basis of columns that are adjusted for the levels below."""
    Q = adjusted.copy()
    # Dependence is judged by the columns as they were given: after the adjustment, rounding of a
    # column that is lost altogether would have a length of its own.
    ranks = kernels.orthonormal_within(
        starts, Q, kernels.lengths_within(starts, given), DEPENDENT_X
    )
    # A direction that is nearly lost in the adjustment is noisy, so that it has to be made
    # orthogonal to the levels below once more when it has length one.
    subtract(below, Q)
    return BlockBases(starts, Q, _again(starts, Q) if below else ranks)


def _inside(span: BlockBases, level: BlockBases) -> BlockBases:
    # The span holds the basis up to rounding. Moved into it exactly, what the span explains and the
    # basis does not is a difference of two projections of which one holds the other.
    outside = level.Q.copy()
    subtract([span], outside)
    Q = level.Q - outside
    return BlockBases(level.starts, Q, _again(level.starts, Q))


def _again(starts: Whole, Q: Real) -> Whole:
    # Columns are nearly of length one, or zero: any tolerance between the two tells them apart.
    return np.asarray(
        kernels.orthonormal_within(starts, Q, np.ones((len(starts) - 1, len(Q))), 0.5)
    )


def arrange(n: int, clusters: Any = None, groups: Any = None, pieces: Any = None) -> Blocks:
    """Order rows by group, cluster and piece; without labels, all rows are one of each."""
    if not n:
        raise DataError("there are no rows to put into clusters.")
    names, cluster = _codes(clusters, n, "clusters")
    _, group = _codes(groups, n, "groups")
    _, piece = _codes(pieces, n, "pieces")
    group_of = np.zeros(len(names), dtype=np.int64)
    group_of[cluster] = group
    if (group_of[cluster] != group).any():
        torn = names[cluster[np.argmax(group_of[cluster] != group)]]
        raise ParameterError(
            f"cluster {torn} lies in several groups, but groups are made of whole clusters."
        )
    place = np.empty(len(names), dtype=np.int64)
    by_group = np.argsort(group_of, kind="stable")
    place[by_group] = np.arange(len(names))
    cluster = place[cluster]
    cell = cluster * (piece.max(initial=0) + 1) + piece
    # NumPy sorts numbers of 16 bits and fewer by their digits, in linear time.
    short = np.min_scalar_type(int(cell.max(initial=0)))
    order = np.argsort(cell.astype(short), kind="stable")
    return Blocks(
        order, _starts(cell[order]), _starts(cluster[order]), _starts(group[order]), names[by_group]
    )


def _codes(labels: Any, n: int, what: str) -> tuple[Array, Whole]:
    if labels is None:
        return np.zeros(1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise ParameterError(
            f"{what} need one label for each of the {n} rows, got shape {labels.shape}."
        )
    if labels.dtype.kind in "iu" and labels.min() > -(2**62) and labels.max() < 2**62:
        shifted = labels.astype(np.int64) - int(labels.min())
        # Dense numbers, as `mdav` and factors give them, are counted instead of sorted.
        if shifted.max() < 2 * n:
            present = np.bincount(shifted) > 0
            return np.flatnonzero(present) + int(labels.min()), (np.cumsum(present) - 1)[shifted]
    names, codes = np.unique(labels, return_inverse=True)
    return names, codes.astype(np.int64, copy=False)


def _between(starts: Whole, start: int, end: int) -> Whole:
    return starts[np.searchsorted(starts, start) : np.searchsorted(starts, end) + 1] - start


def _starts(ordered: Whole) -> Whole:
    """Where runs of equal entries begin, and the end."""
    return np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [len(ordered)]])
