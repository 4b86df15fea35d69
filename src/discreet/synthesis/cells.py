"""Publishable cells of a table as columns of a model (Langsrud 2019a, section 7).

The columns of :math:`X` are those of the cells that suppression finds safe, so that synthetic
records have the published sums of the table and tell none of those that are suppressed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.errors import ParameterError
from discreet.rules.counts import CountRule
from discreet.suppress.suppress import Suppress
from discreet.synthesis.model import CELL, Rows, values_of
from discreet.synthesis.request import SynthesisRequest
from discreet.tables.from_frames import contributions_to_table
from discreet.tables.magnitude import Magnitude
from discreet.tables.truth import TrueTable


def with_cells(request: SynthesisRequest, rows: Rows) -> Rows:
    """Rows with a column of zeros and ones for each publishable cell of the table in `cells(…)`.

    Rules and pattern are those of `Suppress` for each confidential column. A cell is preserved
    where it may be shown for all of them: hiding more protects each as well.
    """
    formula = request.formula
    if formula.cells is None:
        return rows
    if any(isinstance(rule, CountRule) for rule in request.rules) or not request.rules:
        raise ParameterError(
            "cells(…) are chosen by rules for sums, such as 'few-contributors(3)' and 'p%(10)'; "
            "give these as rules=."
        )
    amounts = rows.Y if rows.weights is None else rows.Y * rows.weights[:, None]
    tables = [_table_of(request, rows, column) for column in amounts.T]
    shown: Mask = np.ones(tables[0].design.n_published, dtype=bool)
    method = Suppress(request.rules)
    for table in tables:
        shown &= ~method.pattern(table).suppressed
    design = tables[0].design
    axes = design.require_variables("cells").axes
    codes = tuple(_codes(rows, axis.name) for axis in axes)
    inner = np.ravel_multi_index(codes, tuple(len(axis) for axis in axes))
    members = design.matrix().tocsc()[:, np.flatnonzero(shown)][inner].toarray()
    # Cells of the same records are one column, and a constant is in every model.
    members = np.unique(members, axis=1)
    members = members[:, np.ptp(members, axis=0) > 0]
    found = {f"{CELL}{k + 1}": column.astype(float) for k, column in enumerate(members.T)}
    terms = formula.term_sources(list(rows.columns))
    apart = set(formula.cell_variables) - set(terms)
    columns = {name: c for name, c in rows.columns.items() if name not in apart}
    return replace(rows, columns={**columns, **found})


def _codes(rows: Rows, name: str) -> Whole:
    """A column as numbers of its values in their order; missing numbers have a mark elsewhere."""
    return np.unique(values_of(rows.columns[name]), return_inverse=True)[1]


def _table_of(request: SynthesisRequest, rows: Rows, amounts: Real) -> TrueTable:
    import pyarrow as pa

    codes = {}
    for name in request.formula.cell_variables:
        numbers = _codes(rows, name)
        # With leading zeros codes are sorted as numbers are.
        width = len(str(numbers.max()))
        codes[name] = [f"{number:0{width}d}" for number in numbers.tolist()]
    value, record = "amount ", "record "  # names that no variable of a formula can have
    frame = pa.table({**codes, value: amounts, record: np.arange(len(amounts))})
    of = Magnitude(value, record, negative="absolute" if (amounts < 0).any() else "refuse")
    return contributions_to_table(
        frame,
        request.formula.cells or "",
        of,
        weight=None,
        hierarchies=None,
        support="all",
        structural_zeros=(),
        declared=False,
    )
