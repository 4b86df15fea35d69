"""What is published as a variable of its own, `ContentsCode`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.release.cube import Cube, CubeAxis, Entry
from discreet.serve.web.panel import unit_label
from discreet.serve.web.texts import Texts

CONTENTS = "ContentsCode"
_LABEL = {"en": "contents", "nb": "statistikkvariabel"}


def contents_axis(units: Sequence[str], texts: Texts) -> CubeAxis:
    """The variable of units."""
    entries = tuple(Entry(unit, unit_label(unit, texts), 1, is_sum=False) for unit in units)
    return CubeAxis(CONTENTS, _LABEL.get(texts.code, "contents"), entries)


def with_contents(cubes: Mapping[str, Cube], texts: Texts) -> Cube:
    """Cubes of several units as one, with the units as its last variable."""
    return Cube.stacked(contents_axis(list(cubes), texts), list(cubes.values()))
