"""From published cells in a frame, with the code of the total where one is meant, to a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array, Whole
from discreet.design.axis import Axis
from discreet.design.codes import canonical_array, natural_order
from discreet.design.formula import Margins, parse
from discreet.design.hierarchy import Hierarchy
from discreet.design.product import ProductDesign
from discreet.errors import DesignError
from discreet.frames import numbers, to_arrow
from discreet.tables.assembly import (
    TOTALS,
    Declared,
    HierarchiesLike,
    as_hierarchies,
    declared_among,
    read_keys,
    variables_of,
)
from discreet.tables.keys import KeyConvention
from discreet.tables.keys import convention as key_convention
from discreet.tables.truth import TrueTable
from discreet.tables.values import CellValues

if TYPE_CHECKING:
    import pyarrow as pa


def published_to_table(
    frame: Any,
    margins: Margins,
    *,
    count: str,
    key: str | None,
    hierarchies: HierarchiesLike | None,
    convention: str | KeyConvention,
    declared: Declared = False,
) -> TrueTable:
    """A table from a frame of published cells; see `Table.from_frame`."""
    cells, rule, trees = to_arrow(frame), key_convention(convention), as_hierarchies(hierarchies)
    names = variables_of(parse(margins), cells.column_names, trees)
    said = declared_among(names, declared)
    axes = [published_axis(cells, v, trees.get(v), declared=v in said) for v in names]
    design = ProductDesign(axes, margins)
    where = published_positions(design, cells)
    values = CellValues(_placed(design, where, numbers(cells, count), count))
    if key is not None:
        keys = read_keys(numbers(cells, key), rule)
        values = replace(values, key=_placed(design, where, keys, key))
    return TrueTable(design, values, _inner_if_published(design, values), rule)


def _inner_if_published(design: ProductDesign, values: CellValues) -> CellValues | None:
    """The inner cells, when they are all among the published ones."""
    if not design.shows_inner_cells:
        return None
    places = design.inner_in_published()
    return values.moved(lambda published: published[places])


def published_axis(
    cells: pa.Table,
    variable: str,
    trees: Sequence[Hierarchy] | None,
    *,
    declared: bool,
    total: str | None = None,
) -> Axis:
    """The axis of a variable whose column holds codes and the total's code."""
    if trees:
        return Axis.from_hierarchies(variable, trees)
    codes, _ = canonical_array(cells.column(variable))
    total = total or next((c for c in TOTALS if c in codes), TOTALS[0])
    leaves = natural_order([c for c in codes if c != total])
    return Axis.flat(variable, leaves, total, declared=declared)


def published_positions(
    design: ProductDesign, cells: pa.Table, lines: Sequence[int] | None = None
) -> Whole:
    """The published position of every row of the frame.

    Args:
      design: The design.
      cells: Rows with a code for each of its variables.
      lines: Numbers of the rows' lines in their file, for the error.
    """
    lookup: dict[tuple[str, ...], int] = {}
    columns = [[codes[i] for i in index] for index, codes in design.published_codes()]
    for k, names in enumerate(zip(*columns, strict=True)):
        lookup.setdefault(names, k)
    shown = []
    for axis in design.axes:
        codes, index = canonical_array(cells.column(axis.name))
        codes = [axis.total if c in axis.total_codes else c for c in codes]
        shown.append([codes[i] for i in index])
    where = np.array([lookup.get(names, -1) for names in zip(*shown, strict=True)], dtype=np.int64)
    if (where < 0).any():
        row = int(np.flatnonzero(where < 0)[0])
        cell = {a.name: shown[j][row] for j, a in enumerate(design.axes)}
        place = f"row {row + 1}" if lines is None else f"line {lines[row]}"
        raise DesignError(f"{place}: cell {cell} is not among the margins asked for.")
    return where


def _placed(design: ProductDesign, where: Whole, values: Array, name: str) -> Array:
    filled = np.bincount(where, minlength=design.n_published)
    if (filled != 1).any():
        k = int(np.flatnonzero(filled != 1)[0])
        times = "twice or more" if filled[k] else "not at all"
        raise DesignError(f"column {name!r}: cell {design.cell(k) or 'total'} is given {times}.")
    out = np.empty(design.n_published, dtype=values.dtype)
    out[where] = values
    return out
