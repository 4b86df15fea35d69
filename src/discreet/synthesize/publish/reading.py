"""Rows of a request: columns of the records, and what the user gives beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.errors import DataError, ParameterError, UnknownNameError
from discreet.frames import open_frame
from discreet.synthesize.algebra.matrices import as_matrix
from discreet.synthesize.model.columns import Factor, numbers_of
from discreet.synthesize.model.formula import ModelFormula
from discreet.synthesize.model.model import read_columns
from discreet.synthesize.model.rows import Rows
from discreet.synthesize.publish.request import Request
from discreet.synthesize.records import Records


def read_rows(records: Records, request: Request) -> Rows:
    """What a method needs of each record, read from its columns and from what the user gives."""
    Y, columns, weights = read_columns(records, request.formula, request.missing)
    given = {"groups": request.groups, "pieces": request.pieces}
    if request.size is None:
        given["clusters"] = request.clusters
    labels = {
        role: _labels(role, each, records, request.formula)
        for role, each in given.items()
        if each is not None
    }
    other = None
    if request.other is not None:
        other = _other_values(request.other, request.formula, len(Y))
    return Rows(Y, columns, weights, other=other, **labels)


def _labels(role: str, given: Any, records: Records, formula: ModelFormula) -> Whole:
    """Clusters, groups or pieces by number: a column's name, or a label for each row."""
    if isinstance(given, str):
        if given not in records.columns:
            raise UnknownNameError(f"column of {role}", given, records.columns)
        if given in formula.confidential:
            raise ParameterError(
                f"{role}= names the confidential column {given!r}. Use a column that may be "
                "published, or clusters of a size: clusters=5."
            )
        given = records.table.column(given)
    labels, n = Factor.of(given).codes, len(records.table)
    if len(labels) != n:
        raise DataError(f"there are {len(labels):,} labels for {role}, but {n:,} records.")
    return labels


def _other_values(other: Any, formula: ModelFormula, n: int) -> Real:
    """Data to be corrected: a matrix, or a frame with the confidential columns."""
    if isinstance(other, np.ndarray):
        matrix = as_matrix(other, "the other data")
    else:
        table = open_frame(other).to_arrow()
        for name in formula.confidential:
            if name not in table.column_names:
                raise UnknownNameError("column of the other data", name, table.column_names)
        matrix = np.column_stack(
            [numbers_of(c, table.column(c), "in the other data") for c in formula.confidential]
        )
    if matrix.shape != (n, len(formula.confidential)):
        raise DataError(
            f"the other data have {matrix.shape[0]:,} rows and {matrix.shape[1]} columns; the "
            f"records have {n:,} and the model {len(formula.confidential)}."
        )
    return matrix
