"""What stands in place of a figure, and what the status of a cell is called."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Index
from discreet.release.cube import ABSENT, Cube
from discreet.tables.protected import HIDDEN, CellStatus
from discreet.tables.show import CONFIDENTIAL

NOT_POSSIBLE, NOT_AVAILABLE = ":z", ":"
MEANINGS = {
    CONFIDENTIAL: "confidential",
    NOT_POSSIBLE: "cannot occur",
    NOT_AVAILABLE: "not available",
}
"""The symbols of files and pages, as statistical offices write them."""

ABSENT_NAME = "absent"
Figure = int | float | None


def symbols(cube: Cube) -> NDArray[np.str_]:
    """For each cell the symbol that stands in place of its figure; empty where it has one."""
    status = cube.status
    found = np.full(status.shape, "", dtype="U2")
    if cube.values.dtype.kind == "f":
        found[np.isnan(cube.values)] = NOT_AVAILABLE
    found[status == ABSENT] = NOT_AVAILABLE
    found[status == CellStatus.structural_zero] = NOT_POSSIBLE
    found[np.isin(status, HIDDEN)] = CONFIDENTIAL
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
