"""Small cubes for the tests of pages."""

import numpy as np

from discreet.release import Cube, CubeAxis, CubeEntry
from discreet.tables import CellStatus, Statement

REGION = CubeAxis(
    "region",
    "Region",
    (
        CubeEntry("ALL", "Whole country", 0, is_sum=True),
        CubeEntry("N", "North", 1, is_sum=True),
        CubeEntry("N1", "Upper north", 2, is_sum=False),
        CubeEntry("N2", "Lower north", 2, is_sum=False),
        CubeEntry("S", "South", 1, is_sum=False),
    ),
)
SEX = CubeAxis(
    "sex",
    "Sex",
    (
        CubeEntry("T", "Total", 0, is_sum=True),
        CubeEntry("F", "Women", 1, is_sum=False),
        CubeEntry("M", "Men", 1, is_sum=False),
    ),
)
AGE = CubeAxis(
    "age",
    "Age",
    (
        CubeEntry("T", "Total", 0, is_sum=True),
        CubeEntry("0-14", "0 to 14", 1, is_sum=False),
        CubeEntry("15+", "15 and older", 1, is_sum=False),
    ),
)


def cube_of(*axes, values=None, status=None):
    """A cube; by default with other values in every cell."""
    shape = [len(axis) for axis in axes]
    made = np.arange(10, 10 + np.prod(shape)).reshape(shape) if values is None else values
    found = np.zeros(shape, dtype=np.int8) if status is None else status
    return Cube(axes, np.asarray(made), found, "count", Statement())


def hidden_at(cube, *place, status=CellStatus.suppressed):
    """The same cube with one cell hidden."""
    changed = cube.status.copy()
    changed[place] = status
    return Cube(cube.axes, cube.values, changed, cube.unit, cube.statement)
