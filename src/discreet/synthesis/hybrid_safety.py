"""Clusters that leave too little to draw, or that one of their members sees through.

Where squares and products of k columns are kept too, f directions are left to the others of a
cluster when one of them knows itself. They can turn as long as f is two or more. Values are whole
numbers of some unit, though, and among the turned ones only those on the lattice are possible:
their number grows with the power k(f − k − 1)/2 of the sum of squares, and is a handful whatever
the unit is unless f is at least k + 2. So a cluster needs k + 3 residual degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.synthesis.formula import GROUPS, PIECES, SHARED
from discreet.synthesis.hybrid_kernels import products_within
from discreet.synthesis.hybrid_levels import HybridBases, hybrid_model
from discreet.synthesis.large import LEVERAGE, sensitive_sums
from discreet.synthesis.model import ModelMatrices, Rows, cells_of
from discreet.synthesis.request import Merge, SynthesisRequest
from discreet.synthesis.safety import (
    LEAST_FREEDOM,
    ONE,
    Unsafe,
    least_freedom,
    refuse,
    refuse_large,
    small_sets,
)


def safe_clusters(request: SynthesisRequest, model: ModelMatrices, rows: Rows) -> Rows:
    """Rows whose clusters, and pieces of clusters, leave residuals to draw.

    Small pieces are merged within clusters, and small clusters within groups, as are those that a
    large unit dominates; or they are refused.
    """
    clusters, scaled, merge = rows.clusters, model.without_weights, request.merge
    if clusters is None:
        return rows
    if rows.pieces is not None:
        cells = np.unique(clusters * (rows.pieces.max() + 1) + rows.pieces, return_inverse=True)[1]
        find = partial(unsafe_clusters, _crossed_with(PIECES, scaled), None)
        rows = replace(rows, pieces=_safe_labels("pieces", cells, clusters, find, merge))

    def unsafe(labels: Whole) -> UnsafeClusters:
        given = hybrid_arguments(scaled, replace(rows, clusters=labels))
        return unsafe_clusters(**given, least=least_freedom(request), bound=LEVERAGE)

    def find_dominated(labels: Whole) -> Whole:
        return sensitive_sums(model, labels, request.rules, squares=request.keeps_squares)

    labels = _safe_labels("clusters", clusters, rows.groups, unsafe, merge, find_dominated)
    rows = replace(rows, clusters=labels)
    _refuse_cells_within(scaled, rows)
    refuse_large(np.flatnonzero(unsafe(labels).rows))
    return rows


def _safe_labels(
    role: str,
    labels: Whole,
    within: Whole | None,
    unsafe: Callable[[Whole], UnsafeClusters],
    merge: Merge | None,
    dominated: Callable[[Whole], Whole] | None = None,
) -> Whole:
    if merge:
        within = np.zeros(len(labels), dtype=np.int64) if within is None else within

        def to_merge(each: Whole) -> Whole:
            found = unsafe(each)
            more = np.zeros(0, np.int64) if dominated is None else dominated(each)
            return np.concatenate([found.names, np.unique(each[found.rows]), more])

        labels = merged_labels(labels, within, to_merge)
    found = unsafe(labels)
    if len(found.names):
        small = np.flatnonzero(np.isin(labels, found.names))
        refuse([Unsafe(role, small)], found.least)
    return labels


def _refuse_cells_within(scaled: ModelMatrices, rows: Rows) -> None:
    """Refuse small cells within clusters, pieces and groups, for what is crossed with these."""
    n = len(scaled.Y)
    levels_of = [(rows.clusters, scaled.X)]
    levels_of += [(getattr(rows, w), _crossed_with(w, scaled)) for w in (PIECES, GROUPS)]
    own = hybrid_model(n, **hybrid_arguments(scaled, rows))
    if _is_known_between(own.levels(own.blocks)):
        levels_of.append((rows.clusters, scaled.all_columns))
    for labels, X in levels_of:
        if labels is not None:
            own = hybrid_model(n, X, clusters=labels)
            Q = own.levels(own.blocks).local[-1].Q
            basis = np.empty(Q.shape[::-1])
            basis[own.blocks.order] = Q.T
            refuse(unsafe_cells_within(scaled, labels, basis))


@dataclass(frozen=True)
class UnsafeClusters:
    """What would come out as it went in, or mirrored."""

    names: Array  # labels of the clusters with too few residual degrees of freedom, `degrees` each
    degrees: Whole
    rows: Mask  # for each row whether it lies in such a cluster or weighs too much in its fit
    least: int = LEAST_FREEDOM  # how many they need

    def __bool__(self) -> bool:
        """Whether there is anything unsafe."""
        return bool(self.rows.any())


def unsafe_clusters(
    X_local: Any,
    X_shared: Any,
    clusters: Any,
    *,
    least: int = LEAST_FREEDOM,
    bound: float = ONE,
    **crossed: Any,
) -> UnsafeClusters:
    """Clusters with too few residual degrees of freedom, and rows of a leverage above a bound.

    The arguments are those of `hybrid`, with groups and pieces and what is crossed with them. It
    does not look at the confidential variables.
    """
    given = (clusters, X_local, X_shared, *crossed.values())
    n = len(next(values for values in given if values is not None))
    own = hybrid_model(n, X_local, X_shared, clusters, **crossed)
    found = own.levels(own.blocks)
    degrees = found.local_degrees
    if found.within is not None:
        # The rank of X_2 that would be lost without a cluster depends on that cluster alone.
        basis = np.concatenate([level.Q for level in found.above])
        sizes = np.linalg.eigvalsh(products_within(found.blocks.clusters, basis))
        degrees = degrees - np.asarray((sizes >= ONE).sum(axis=1))
    leverage = found.leverage
    if found.within is not None and _is_known_between(found):
        degrees = np.minimum(degrees, found.local_degrees - found.within.ranks)
        leverage = np.maximum(leverage, replace(found, above=[found.within]).leverage)
    unsafe = degrees < least
    rows = np.empty(n, dtype=np.bool_)
    in_unsafe = np.repeat(unsafe, np.diff(own.blocks.clusters))
    rows[own.blocks.order] = in_unsafe | (leverage > min(ONE, bound + (1 - ONE)))
    return UnsafeClusters(own.blocks.names[unsafe], degrees[unsafe], rows, least)


def _is_known_between(found: HybridBases) -> bool:
    # What X_B would explain within clusters has too few directions to be drawn anew: then E_3 comes
    # out as it went in, or mirrored, and counts as preserved.
    if found.within is None:
        return False
    return bool(found.within.ranks.sum() - found.rank_above < LEAST_FREEDOM)


def hybrid_arguments(scaled: ModelMatrices, rows: Rows) -> dict[str, Any]:
    """What a hybrid method takes beside the confidential values of a `scaled` model."""
    return {
        "X_local": scaled.X,
        "X_shared": scaled.others.get(SHARED),
        "clusters": rows.clusters,
        "groups": rows.groups,
        "X_groups": scaled.others.get(GROUPS),
        "pieces": rows.pieces,
        "X_pieces": None if rows.pieces is None else _crossed_with(PIECES, scaled),
    }


def _crossed_with(word: str, scaled: ModelMatrices) -> Real:
    """What is crossed with pieces or groups: the constant, and the terms that say so."""
    constant = scaled.X[:, :1]
    return np.hstack([constant, scaled.others.get(word, constant[:, :0])])


def unsafe_cells_within(model: ModelMatrices, labels: Whole, basis: Real) -> list[Unsafe]:
    """The same for cells within clusters; `basis` spans what is preserved within each cluster."""
    leverage = np.einsum("ij,ij->i", basis, basis)
    found = []
    for crossing in (*model.crossings, *_binary_columns(model)):
        codes = cells_of(crossing, model.columns)
        cells = np.unique(codes * (labels.max() + 1) + labels, return_inverse=True)[1]
        where = f"cells of {' × '.join(crossing)} within clusters, groups or pieces"
        found += [Unsafe(where, s, crossing) for s in small_sets(cells, basis, leverage)]
    return found


def _binary_columns(model: ModelMatrices) -> Iterator[tuple[str, ...]]:
    # A column of two numbers is a factor in all but name.
    for name, column in model.columns.items():
        if isinstance(column, np.ndarray):
            others = column[column != column[0]]
            if len(others) and (others == others[0]).all():
                yield (name,)


def merged_labels(labels: Whole, within: Whole, find_small: Callable[[Whole], Whole]) -> Whole:
    """Labels, numbered from 0, of which the small ones are one within each of some sets."""
    while len(small := find_small(labels)):
        before = len(np.unique(labels))
        is_small = np.isin(labels, small)
        for part in np.unique(within[is_small]):
            here = within == part
            chosen = np.unique(labels[is_small & here])
            others, sizes = np.unique(labels[here & ~is_small], return_counts=True)
            # One that stays alone would be as small as before, so the smallest other goes with it.
            if len(chosen) == 1 and len(others):
                chosen = np.append(chosen, others[np.argmin(sizes)])
            labels = np.where(here & np.isin(labels, chosen), chosen[0], labels)
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        if len(np.unique(labels)) == before:
            break  # one label is left in each set that is still too small; it will be refused
    return labels
