"""A cube with everything a format must carry: levels, hidden, impossible and absent cells."""

import numpy as np
import pytest

import discreet as dc
from discreet import Release
from discreet.release import Cube, Options
from discreet.release.formats.write import About
from discreet.tables import CellStatus, Sentence, Statement, Step

SAID = Sentence("noise", "Noise has variance 3.", "Figures were changed.")
STATEMENT = Statement((Step("protect:x", {}, (SAID,)),), version="0.2.0")
ABOUT = About(
    title='People by place and "sex"',
    name="people",
    source="Office",
    contact="help@office.example",
    licence="CC BY 4.0",
    edition="2026",
    updated="2026-11-16",
    footnotes=("Islands are part of the north.",),
)
OPTIONS = Options(about=ABOUT)
PLACE = dc.Hierarchy(
    "all",
    {"n": "all", "s": "all", "n1": "n", "n2": "n", "s1": "s"},
    labels={"all": "Country", "n": "North", "n1": "=Nørrby", "n2": "Østby; east", "s1": "Sør"},
)


def release(**parts):
    axes = [
        dc.design.Axis.from_hierarchies("place", [PLACE]),
        dc.design.Axis.flat("sex", ["f", "m"]),
    ]
    design = dc.Design.product(axes, "place*sex")
    y = np.array([1, 20, 3, 40, 5, 60])
    status = np.zeros(design.n_published, dtype=np.int8)
    labels = design.label_columns()
    rows = list(zip(*(labels[name].to_pylist() for name in ("place", "sex")), strict=True))
    status[rows.index(("n1", "f"))] = CellStatus.suppressed
    status[rows.index(("s1", "f"))] = CellStatus.structural_zero
    return Release(design, design.aggregate(y), STATEMENT, **{"status": status, **parts})


@pytest.fixture
def made():
    return release()


@pytest.fixture
def cube(made):
    return Cube.of(made)


def truth(cube):
    """What every reader must find: figures by codes, none where they are not shown."""
    found = {}
    for index in np.ndindex(*cube.values.shape):
        codes = tuple(axis.codes[k] for axis, k in zip(cube.axes, index, strict=True))
        hidden = cube.status[index] in (CellStatus.suppressed, CellStatus.structural_zero)
        found[codes] = None if hidden else cube.values[index].item()
    return found
