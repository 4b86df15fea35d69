"""A model and clusters on which no record comes out as it went in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from discreet.synthesize.decompose import Fitted, fit
from discreet.synthesize.formula import GROUPS, PIECES, SHARED, ModelFormula
from discreet.synthesize.hybrid_model import fit_above, fit_local
from discreet.synthesize.hybrid_model import model as hybrid_model
from discreet.synthesize.matrices import Matrix
from discreet.synthesize.merge import Codes, merged_columns, merged_labels
from discreet.synthesize.model import Model, build
from discreet.synthesize.request import Merge
from discreet.synthesize.rows import Rows
from discreet.synthesize.safety import (
    LEAST_FREEDOM,
    ROUNDING,
    Unsafe,
    refuse,
    refuse_fixed_columns,
    unsafe_sets,
)


def safe_model(formula: ModelFormula, rows: Rows, merge: Merge | None) -> Model:
    """The matrices of a model in which all records have residuals to draw.

    Args:
      formula: The model.
      rows: The rows.
      merge: Whether levels of small cells are merged; they are refused otherwise.

    Raises:
      UnsafeRowsError: There are such records, or a column without residuals.
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
    """What a hybrid method takes beside the confidential values.

    Args:
      scaled: The model, its rows multiplied by the roots of the weights.
      rows: The rows with their clusters.
    """
    return {
        "X_local": scaled.X,
        "X_shared": scaled.others.get(SHARED),
        "clusters": rows.clusters,
        "groups": rows.groups,
        "X_groups": scaled.others.get(GROUPS),
        "pieces": rows.pieces,
        "X_pieces": scaled.others.get(PIECES),
    }


def safe_clusters(model: Model, rows: Rows, merge: Merge | None) -> Rows:
    """Rows whose clusters, and pieces of clusters, leave residuals to draw.

    Args:
      model: The model.
      rows: The rows with their clusters.
      merge: Whether small ones are merged, pieces within clusters and clusters within groups; they
        are refused otherwise.
    """
    clusters, pieces, scaled = rows.clusters, rows.pieces, model.scaled
    if clusters is None:
        return rows
    if pieces is not None:
        crossed = np.hstack([scaled.X[:, :1], scaled.others.get(PIECES, scaled.X[:, :0])])
        pieces = _safe_labels("pieces", _crossed(clusters, pieces), clusters, crossed, merge)
    clusters = _safe_labels("clusters", clusters, rows.groups, scaled.X, merge)
    rows = replace(rows, clusters=clusters, pieces=pieces)
    _refuse_leverage(scaled, rows)
    return rows


def small_clusters(labels: Codes, X: Matrix) -> Codes:
    """The clusters with too few residual degrees of freedom for what is preserved within them.

    Args:
      labels: The cluster of each row, numbered from 0 without gaps.
      X: Columns whose fits are preserved within clusters, the constant among them.
    """
    own = hybrid_model(len(X), X, None, labels, None, None, None, None)
    ranks = fit_local(own, np.empty((0, len(X)))).ranks
    small = np.diff(own.blocks.clusters) - ranks < LEAST_FREEDOM
    return np.asarray(own.blocks.names[small], dtype=np.int64)


def _safe_labels(
    role: str, labels: Codes, within: Codes | None, X: Matrix, merge: Merge | None
) -> Codes:
    """Labels without small ones: merged, or refused."""
    find_small = partial(small_clusters, X=X)
    if merge:
        within = np.zeros(len(labels), dtype=np.int64) if within is None else within
        labels = merged_labels(labels, within, find_small)
    small = np.isin(labels, find_small(labels))
    refuse([Unsafe(role, np.flatnonzero(small))] if small.any() else [], len(labels), 0)
    return labels


def _refuse_leverage(scaled: Model, rows: Rows) -> None:
    """Refuse records that are their own fit once all that is crossed is taken together."""
    own = hybrid_model(len(scaled.Y), **hybrid_arguments(scaled, rows))
    leverage, nothing = np.zeros(len(scaled.Y)), np.empty((0, len(scaled.Y)))
    found = fit_local(own, nothing, leverage)
    rank = int(found.ranks.sum())
    if len(found.above):
        rank += fit_above(own, found, nothing, leverage)
    single = own.blocks.order[leverage >= 1 - ROUNDING]
    unsafe = [Unsafe("records of leverage 1", np.sort(single))] if len(single) else []
    refuse(unsafe, len(scaled.Y), rank)


def _fitted(model: Model) -> Fitted:
    """The regression on all columns, crossed with nothing."""
    scaled = model.scaled
    return fit(scaled.Y, scaled.all_columns)


def _crossed(clusters: Codes, pieces: Codes) -> Codes:
    both = np.unique(np.column_stack([clusters, pieces]), axis=0, return_inverse=True)[1]
    return both.astype(np.int64)
