"""A cube as columns: a row per cell, codes or labels, the figure and its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Index
from discreet.frames import fresh_name, value_names
from discreet.release.cube import ABSENT, Cube, CubeAxis
from discreet.release.formats.options import Labels, Options
from discreet.release.formats.symbols import has_statuses, status_names, symbols

if TYPE_CHECKING:
    import pyarrow as pa


def present(cube: Cube) -> Index:
    """The places of the cells that the release contains, in the flattened array."""
    return np.flatnonzero(cube.status != ABSENT)


def long_table(cube: Cube, options: Options, at: Index | None = None) -> pa.Table:
    """Columns of categories, the figures, and the status where any cell has one.

    Args:
      cube: The cube.
      options: Codes or labels, and the name of the figures.
      at: Which cells, by their places in the flattened array; all that are present if absent.
    """
    import pyarrow as pa

    places = present(cube) if at is None else at
    columns = categories(cube, places, options.labels or "codes")
    values = cube.values.reshape(-1)[places]
    empty = symbols(cube).reshape(-1)[places] != ""
    measured = {options.measure_of(cube): pa.array(values, mask=empty)}
    if has_statuses(cube):
        measured["status"] = pa.array(status_names(cube.status.reshape(-1)[places]), pa.string())
    names = value_names(columns, measured)
    return pa.table({**columns, **{names[k]: column for k, column in measured.items()}})


def categories(cube: Cube, places: Index, labels: Labels) -> dict[str, pa.Array]:
    """Columns of codes, labels or both, with names that differ."""
    where = np.unravel_index(places, cube.values.shape) if cube.axes else ()
    found: dict[str, pa.Array] = {}
    for axis, index in zip(cube.axes, where, strict=True):
        for name, texts in _texts(axis, labels):
            found[fresh_name(name, found)] = _encoded(texts, index)
    return found


def _texts(axis: CubeAxis, labels: Labels) -> list[tuple[str, list[str]]]:
    codes = (axis.name, list(axis.codes))
    shown = [entry.label for entry in axis.entries]
    if labels == "both":
        return [codes, (f"{axis.name}_label", shown)]
    return [codes] if labels == "codes" else [(axis.label, shown)]


def _encoded(texts: list[str], index: Index) -> pa.Array:
    import pyarrow as pa

    indices = pa.array(index.astype(np.int32))
    return pa.array(texts, pa.string()).take(indices)
