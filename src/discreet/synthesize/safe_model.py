"""A model and clusters on which no record comes out as it went in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from discreet.arrays import Array, Mask, Real, Whole
from discreet.synthesize.decompose import Fitted, fit
from discreet.synthesize.formula import GROUPS, PIECES, SHARED, ModelFormula
from discreet.synthesize.hybrid_kernels import products_within
from discreet.synthesize.hybrid_levels import Levels, model
from discreet.synthesize.hybrid_levels import model as hybrid_model
from discreet.synthesize.model import Model, build
from discreet.synthesize.request import Merge
from discreet.synthesize.rows import Rows
from discreet.synthesize.safe_sets import (
    Unsafe,
    merged_columns,
    merged_labels,
    refuse,
    refuse_fixed_columns,
    unsafe_cells_within,
    unsafe_sets,
)
from discreet.synthesize.tolerances import LEAST_FREEDOM, ONE


def safe_model(formula: ModelFormula, rows: Rows, merge: Merge | None) -> Model:
    """The matrices of a model in which all records have residuals to draw.

    Raises:
      UnsafeRowsError: There are others, and they are not to be merged; or a column has none.
    """
    model = merged_model(formula, rows, merge)
    fitted = _fitted(model)
    refuse(unsafe_sets(model, fitted.basis), len(rows.Y), fitted.rank)
    refuse_fixed_columns(formula.confidential, rows.Y, model.unscaled(fitted.residuals))
    return model


def merged_model(formula: ModelFormula, rows: Rows, merge: Merge | None) -> Model:
    """The matrices of a model, in which levels of small cells are merged if that is asked for."""
    model = build(formula, rows.Y, rows.columns, rows.weights)
    while merge:
        found = unsafe_sets(model, _fitted(model).basis)
        columns = merged_columns(model.columns, found)
        if columns is None:
            break
        model = build(formula, rows.Y, columns, rows.weights)
    return model


def hybrid_arguments(scaled: Model, rows: Rows) -> dict[str, Any]:
    """What a hybrid method takes beside the confidential values of a `scaled` model."""
    return {
        "X_local": scaled.X,
        "X_shared": scaled.others.get(SHARED),
        "clusters": rows.clusters,
        "groups": rows.groups,
        "X_groups": scaled.others.get(GROUPS),
        "pieces": rows.pieces,
        "X_pieces": None if rows.pieces is None else _in_pieces(scaled),
    }


def _in_pieces(scaled: Model) -> Real:
    """What is crossed with pieces of clusters: the constant, and the terms that say so."""
    constant = scaled.X[:, :1]
    return np.hstack([constant, scaled.others.get(PIECES, constant[:, :0])])


def safe_clusters(model: Model, rows: Rows, merge: Merge | None) -> Rows:
    """Rows whose clusters, and pieces of clusters, leave residuals to draw.

    Small pieces are merged within clusters and small clusters within groups, or they are refused.
    """
    clusters, scaled = rows.clusters, model.scaled
    if clusters is None:
        return rows
    if rows.pieces is not None:
        cells = np.unique(clusters * (rows.pieces.max() + 1) + rows.pieces, return_inverse=True)[1]
        find = partial(unsafe_clusters, _in_pieces(scaled), None)
        rows = replace(rows, pieces=_safe_labels("pieces", cells, clusters, find, merge))

    def unsafe(labels: Whole) -> UnsafeClusters:
        return unsafe_clusters(**hybrid_arguments(scaled, replace(rows, clusters=labels)))

    rows = replace(rows, clusters=_safe_labels("clusters", clusters, rows.groups, unsafe, merge))
    _refuse_cells_within(scaled, rows)
    return rows


def _safe_labels(
    role: str,
    labels: Whole,
    within: Whole | None,
    unsafe: Callable[[Whole], UnsafeClusters],
    merge: Merge | None,
) -> Whole:
    """Labels without small ones: merged, or refused."""
    if merge:
        within = np.zeros(len(labels), dtype=np.int64) if within is None else within
        labels = merged_labels(labels, within, lambda each: unsafe(each).names)
    found = unsafe(labels)
    where = role if len(found.names) else "records of leverage 1"
    refuse([Unsafe(where, np.flatnonzero(found.rows))] if found else [], len(labels), 0)
    return labels


def _refuse_cells_within(scaled: Model, rows: Rows) -> None:
    """Refuse small cells within clusters, pieces and groups, for what is crossed with these."""
    n, constant, others = len(scaled.Y), scaled.X[:, :1], scaled.others
    levels_of = [(rows.clusters, scaled.X), (rows.pieces, _in_pieces(scaled))]
    levels_of.append((rows.groups, np.hstack([constant, others.get(GROUPS, constant[:, :0])])))
    own = hybrid_model(n, **hybrid_arguments(scaled, rows))
    if is_known_between(own.levels(own.blocks)):
        levels_of.append((rows.clusters, scaled.all_columns))
    for labels, X in levels_of:
        if labels is not None:
            basis = _basis_within(labels, X)
            refuse(unsafe_cells_within(scaled, labels, basis), n, 0)


def _basis_within(labels: Whole, X: Real) -> Real:
    """Orthonormal bases of some columns within each set of rows, in the order of the rows."""
    own = hybrid_model(len(X), X, clusters=labels)
    Q = own.levels(own.blocks).local[-1].Q
    basis = np.empty(Q.shape[::-1])
    basis[own.blocks.order] = Q.T
    return basis


def _fitted(model: Model) -> Fitted:
    """The regression on all columns, crossed with nothing."""
    scaled = model.scaled
    return fit(scaled.Y, scaled.all_columns)


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
