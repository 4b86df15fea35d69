"""Small cubes for the tests of pages."""

import numpy as np

from discreet.release.cube import Cube, CubeAxis, Entry
from discreet.tables.protected import CellStatus
from discreet.tables.statement import Statement

REGION = CubeAxis(
    "region",
    "Region",
    (
        Entry("ALL", "Whole country", 0, is_sum=True),
        Entry("N", "North", 1, is_sum=True),
        Entry("N1", "Upper north", 2, is_sum=False),
        Entry("N2", "Lower north", 2, is_sum=False),
        Entry("S", "South", 1, is_sum=False),
    ),
)
SEX = CubeAxis(
    "sex",
    "Sex",
    (
        Entry("T", "Total", 0, is_sum=True),
        Entry("F", "Women", 1, is_sum=False),
        Entry("M", "Men", 1, is_sum=False),
    ),
)
AGE = CubeAxis(
    "age",
    "Age",
    (
        Entry("T", "Total", 0, is_sum=True),
        Entry("0-14", "0 to 14", 1, is_sum=False),
        Entry("15+", "15 and older", 1, is_sum=False),
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
