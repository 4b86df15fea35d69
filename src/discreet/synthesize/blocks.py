"""The order in which clusters, their pieces and their groups are runs of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.synthesize.block_kernels import gather, scatter
from discreet.synthesize.matrices import Matrix

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """Rows ordered so that a piece, a cluster and a group of clusters are runs of rows.

    Attributes:
      order: The rows, in order.
      pieces: Where each piece of a cluster begins, and the end of the last one.
      clusters: The same for clusters.
      groups: The same for groups of clusters.
      names: The labels of the clusters, in order.
    """

    order: Index
    pieces: Index
    clusters: Index
    groups: Index
    names: NDArray[Any]

    def columns(self, matrix: Matrix) -> Matrix:
        """The columns of a matrix as rows of the result, in this order of places."""
        return gather(matrix, self.order)

    def rows(self, columns: Matrix) -> Matrix:
        """The way back: rows in the order of the data."""
        return scatter(columns, self.order)

    @property
    def whole(self) -> Index:
        """All rows as one block."""
        return np.array([0, len(self.order)])

    @property
    def cluster_of_piece(self) -> Index:
        """The number of the cluster each piece belongs to."""
        return np.searchsorted(self.clusters, self.pieces[:-1], side="right") - 1


def arrange(n: int, clusters: Any = None, groups: Any = None, pieces: Any = None) -> Blocks:
    """Order rows by group, cluster and piece; without labels, all rows are one of each."""
    names, cluster = _codes(clusters, n, "clusters")
    _, group = _codes(groups, n, "groups")
    _, piece = _codes(pieces, n, "pieces")
    group_of = np.zeros(len(names), dtype=np.int64)
    group_of[cluster] = group
    if (group_of[cluster] != group).any():
        torn = names[cluster[np.argmax(group_of[cluster] != group)]]
        msg = f"cluster {torn} lies in several groups, but groups are made of whole clusters."
        raise ParameterError(msg)
    place = np.empty(len(names), dtype=np.int64)
    by_group = np.argsort(group_of, kind="stable")
    place[by_group] = np.arange(len(names))
    cluster = place[cluster]
    cell = cluster * (piece.max(initial=0) + 1) + piece
    short = np.min_scalar_type(int(cell.max(initial=0)))  # short numbers are sorted by digits
    order = np.argsort(cell.astype(short), kind="stable")
    return Blocks(
        order,
        _starts(cell[order]),
        _starts(cluster[order]),
        _starts(group[order]),
        names[by_group],
    )


def _codes(labels: Any, n: int, what: str) -> tuple[NDArray[Any], Index]:
    """The different labels, and the number of each row's label among them."""
    if labels is None:
        return np.zeros(1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    labels = np.asarray(labels)
    if labels.shape != (n,):
        msg = f"{what} need one label for each of the {n} rows, got shape {labels.shape}."
        raise ParameterError(msg)
    names, codes = np.unique(labels, return_inverse=True)
    return names, codes.astype(np.int64, copy=False)


def _starts(ordered: Index) -> Index:
    """Where runs of equal entries begin, and the end."""
    return np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [len(ordered)]])
