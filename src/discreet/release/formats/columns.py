"""What formats share: a cube as columns, symbols in place of figures, texts that never run."""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index
from discreet.columns import Column
from discreet.frames import Frame, fresh_name, value_names
from discreet.release.cube import ABSENT, Cube, CubeAxis
from discreet.release.formats.write import Labels, Options
from discreet.tables.protected import HIDDEN, STATUS_NAMES, CellStatus
from discreet.tables.show import CONFIDENTIAL


def present(cube: Cube) -> Index:
    """The places of the cells that the release contains, in the flattened array."""
    return np.flatnonzero(cube.status != ABSENT)


def long_table(cube: Cube, options: Options) -> Frame:
    """Columns of categories, the figures, and the status where any cell present has one."""
    places = present(cube)
    columns = categories(cube, places, options.labels or "codes")
    values = cube.values.reshape(-1)[places]
    empty = symbols(cube).reshape(-1)[places] != ""
    measured = {options.measure_of(cube): Column(values, mask=empty)}
    if cube.status.any():
        measured["status"] = Column(status_names(cube.status.reshape(-1)[places]), "string")
    names = value_names(columns, measured)
    return Frame({**columns, **{names[k]: column for k, column in measured.items()}})


def categories(cube: Cube, places: Index, labels: Labels) -> dict[str, Column]:
    """Columns of codes, labels or both, with names that differ."""
    where = np.unravel_index(places, cube.values.shape) if cube.axes else ()
    found: dict[str, Column] = {}
    for axis, index in zip(cube.axes, where, strict=True):
        for name, texts in _texts(axis, labels):
            found[fresh_name(name, found)] = Column(texts, "string").take(index)
    return found


def _texts(axis: CubeAxis, labels: Labels) -> list[tuple[str, list[str]]]:
    codes = (axis.name, list(axis.codes))
    shown = [entry.label for entry in axis.entries]
    if labels == "both":
        return [codes, (f"{axis.name}_label", shown)]
    return [codes] if labels == "codes" else [(axis.label, shown)]


NOT_POSSIBLE, NOT_AVAILABLE = ":z", ":"
MEANINGS = {
    CONFIDENTIAL: "confidential",
    NOT_POSSIBLE: "cannot occur",
    NOT_AVAILABLE: "not available",
}
"""The symbols of files and pages, as statistical offices write them."""
ABSENT_NAME = "absent"
Figure = int | float | None


class Figures(Protocol):
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


def symbols(cells: Figures, signs: Symbols = IN_FILES) -> NDArray[np.str_]:
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


def status_names(status: Array) -> NDArray[np.str_]:
    """The status of cells in words; that of an absent cell is the last."""
    found: NDArray[np.str_] = np.array([*STATUS_NAMES, ABSENT_NAME])[status]
    return found


def plain_values(cube: Cube, at: Index | slice = slice(None)) -> list[Figure]:
    """Figures as plain numbers, `None` where a symbol stands; `at` as for `long_table`."""
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


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def inert_text(text: str) -> str:
    """A text that is not run as a formula.

    A spreadsheet would run a text that begins with one of ``= + - @``, a tab or a line break. Such
    texts get an apostrophe in front; numbers stay as they are.
    """
    is_formula = text.startswith(_FORMULA) and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def inert(cells: Frame) -> Frame:
    """A table with nothing in it, names of columns included, that a spreadsheet would run."""
    columns = {}
    for name, column in zip(cells.column_names, cells.columns, strict=True):
        if not column.kind.startswith(("int", "uint", "float")):
            codes, texts = column.encoded()
            column = Column.of_codes(codes, list(map(inert_text, texts.cast("string"))))
        columns[inert_text(name)] = column
    return Frame(columns)
