"""The order in which clusters, their pieces and their groups are runs of rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Array, Whole
from discreet.errors import DataError, ParameterError
from discreet.synthesize.tolerances import CLUSTERED_ROWS


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

    order: Whole
    pieces: Whole
    clusters: Whole
    groups: Whole
    names: Array

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

    @property
    def cluster_of_piece(self) -> Whole:
        """The number of the cluster each piece belongs to."""
        return np.searchsorted(self.clusters, self.pieces[:-1], side="right") - 1


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
    short = np.min_scalar_type(int(cell.max(initial=0)))  # short numbers are sorted by digits
    order = np.argsort(cell.astype(short), kind="stable")
    return Blocks(
        order, _starts(cell[order]), _starts(cluster[order]), _starts(group[order]), names[by_group]
    )


def _codes(labels: Any, n: int, what: str) -> tuple[Array, Whole]:
    """The different labels, and the number of each row's label among them."""
    if labels is None:
        return np.zeros(1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise ParameterError(
            f"{what} need one label for each of the {n} rows, got shape {labels.shape}."
        )
    if labels.dtype.kind in "iu" and labels.min() > -(2**62) and labels.max() < 2**62:
        shifted = labels.astype(np.int64) - int(labels.min())
        if shifted.max() < 2 * n:  # dense numbers need no sorting
            present = np.bincount(shifted) > 0
            return np.flatnonzero(present) + int(labels.min()), (np.cumsum(present) - 1)[shifted]
    names, codes = np.unique(labels, return_inverse=True)
    return names, codes.astype(np.int64, copy=False)


def _between(starts: Whole, start: int, end: int) -> Whole:
    """The starts of blocks that lie in a run of rows."""
    return starts[np.searchsorted(starts, start) : np.searchsorted(starts, end) + 1] - start


def _starts(ordered: Whole) -> Whole:
    """Where runs of equal entries begin, and the end."""
    return np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [len(ordered)]])
