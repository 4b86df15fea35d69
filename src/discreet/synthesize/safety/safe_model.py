"""A model and clusters on which no record comes out as it went in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.synthesize.algebra.decompose import Fitted, fit
from discreet.synthesize.hybrid.levels import model as hybrid_model
from discreet.synthesize.model.formula import GROUPS, PIECES, SHARED, ModelFormula
from discreet.synthesize.model.model import Model, build
from discreet.synthesize.model.rows import Rows
from discreet.synthesize.publish.request import Merge
from discreet.synthesize.safety.clusters import UnsafeClusters, is_known_between, unsafe_clusters
from discreet.synthesize.safety.merge import merged_columns, merged_labels
from discreet.synthesize.safety.sets import (
    Unsafe,
    refuse,
    refuse_fixed_columns,
    unsafe_cells_within,
    unsafe_sets,
)


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
