"""A model and clusters on which no record comes out as it went in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from discreet.synthesize.decompose import Fitted, fit
from discreet.synthesize.formula import ModelFormula
from discreet.synthesize.merge import Codes, merged_columns, merged_labels
from discreet.synthesize.model import Model, build
from discreet.synthesize.request import Merge
from discreet.synthesize.rows import Rows
from discreet.synthesize.safety import (
    Unsafe,
    refuse,
    refuse_fixed_columns,
    small_clusters,
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


def safe_clusters(model: Model, rows: Rows, merge: Merge | None) -> Rows:
    """Rows whose clusters, or pieces of clusters, leave residuals to draw.

    Args:
      model: The model, whose local terms are preserved within clusters and pieces.
      rows: The rows with their clusters.
      merge: Whether small ones are merged, within groups and clusters; they are refused otherwise.
    """
    if rows.clusters is None:
        return rows
    X = model.scaled[1]
    if rows.pieces is None:
        within, finest, role = rows.groups, rows.clusters, "clusters"
    else:
        within, finest, role = rows.clusters, _crossed(rows.clusters, rows.pieces), "pieces"
    find_small = partial(small_clusters, X=X)
    if merge:
        within = np.zeros(len(finest), dtype=np.int64) if within is None else within
        finest = merged_labels(finest, within, find_small)
    small = find_small(finest)
    if len(small):
        unsafe = Unsafe(role, np.flatnonzero(np.isin(finest, small)))
        refuse([unsafe], len(rows.Y), 0)
    return replace(rows, clusters=finest) if role == "clusters" else replace(rows, pieces=finest)


def _fitted(model: Model) -> Fitted:
    """The regression on all columns, local and shared."""
    Y, X, shared = model.scaled
    return fit(Y, X if shared is None else np.hstack([X, shared]))


def _crossed(clusters: Codes, pieces: Codes) -> Codes:
    both = np.unique(np.column_stack([clusters, pieces]), axis=0, return_inverse=True)[1]
    return both.astype(np.int64)
