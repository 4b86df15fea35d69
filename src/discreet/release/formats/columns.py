"""A cube as columns: a row per cell, codes or labels, the figure and its status."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index
from discreet.frames import fresh_name, value_names
from discreet.release.cube import ABSENT, Cube, CubeAxis
from discreet.release.formats.write import Labels, Options
from discreet.tables.protected import HIDDEN, CellStatus
from discreet.tables.show import CONFIDENTIAL

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


NOT_POSSIBLE, NOT_AVAILABLE = ":z", ":"
MEANINGS = {
    CONFIDENTIAL: "confidential",
    NOT_POSSIBLE: "cannot occur",
    NOT_AVAILABLE: "not available",
}
"""The symbols of files and pages, as statistical offices write them."""
ABSENT_NAME = "absent"
Figure = int | float | None


class Cells(Protocol):
    """Figures with their status: a cube, or a layout of one."""

    @property
    def values(self) -> Array:
        """The figures."""

    @property
    def status(self) -> NDArray[np.int8]:
        """A `CellStatus` or `ABSENT` for each."""


class Symbols(NamedTuple):
    """What stands for a figure that is no number, that the release lacks, cannot be, or hides."""

    undefined: str = NOT_AVAILABLE
    absent: str = NOT_AVAILABLE
    impossible: str = NOT_POSSIBLE
    hidden: str = CONFIDENTIAL


IN_FILES = Symbols()


def symbols(cells: Cells, signs: Symbols = IN_FILES) -> NDArray[np.str_]:
    """For each cell the symbol that stands in place of its figure; empty where it has one."""
    status = cells.status
    found = np.full(status.shape, "", dtype="U2")
    # Later lines win: shares of a hidden figure are not numbers, but readers are told it is hidden.
    if cells.values.dtype.kind == "f":
        found[np.isnan(cells.values)] = signs.undefined
    found[status == ABSENT] = signs.absent
    found[status == CellStatus.structural_zero] = signs.impossible
    found[np.isin(status, HIDDEN)] = signs.hidden
    return found


def used_symbols(cube: Cube) -> list[str]:
    """The symbols that stand in place of figures."""
    return sorted({str(symbol) for symbol in symbols(cube).reshape(-1) if symbol})


def has_statuses(cube: Cube) -> bool:
    """Whether any cell has a status other than published."""
    return bool(cube.status.any())


def status_names(status: Array) -> NDArray[np.str_]:
    """The status of cells in words; that of an absent cell is the last."""
    names = [s.name.replace("_", " ") for s in CellStatus]
    found: NDArray[np.str_] = np.array([*names, ABSENT_NAME])[status]
    return found


def plain_values(cube: Cube, at: Index | slice = slice(None)) -> list[Figure]:
    """Figures as plain numbers in the cube's order, none where a symbol stands.

    Args:
      cube: The cube.
      at: Which cells, by their places in the flattened array.
    """
    values, empty = cube.values.reshape(-1)[at], symbols(cube).reshape(-1)[at] != ""
    found: list[Figure] = values.tolist()
    for place in np.flatnonzero(empty):
        found[place] = None
    return found


def decimals_of(values: Array, most: int = 2) -> int:
    """As many decimals as whole numbers, tenths or hundredths need."""
    if not np.issubdtype(values.dtype, np.floating):
        return 0
    finite = values[np.isfinite(values)]
    for decimals in range(most):
        if np.allclose(finite, np.round(finite, decimals), rtol=0, atol=1e-9):
            return decimals
    return most


_FORMULA = r"^[=+\-@\t\r\n]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def inert_text(text: str) -> str:
    """A text that is not run as a formula.

    A spreadsheet would run a text that begins with one of ``= + - @``, a tab or a line break. Such
    texts get an apostrophe in front; numbers stay as they are.
    """
    is_formula = re.match(_FORMULA, text) and not re.match(_NUMBER, text)
    return f"'{text}" if is_formula else text


def inert(cells: pa.Table) -> pa.Table:
    """A table with nothing in it, names of columns included, that a spreadsheet would run."""
    import pyarrow as pa

    columns = [_inert_texts(c) if not _is_number(c.type) else c for c in cells.columns]
    return pa.table(columns, names=[inert_text(name) for name in cells.column_names])


def _inert_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.cast(pa.string())
    runs = pc.match_substring_regex(texts, _FORMULA)
    is_formula = pc.and_not(runs, pc.match_substring_regex(texts, _NUMBER))
    return pc.if_else(is_formula, pc.binary_join_element_wise("'", texts, ""), texts)


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
