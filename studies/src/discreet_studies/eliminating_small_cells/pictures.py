"""Figure 1, drawn from our tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.assess.plots.style import altair_module, colours, shapes, styled
from discreet.protect.effect import Effect
from discreet_studies.eliminating_small_cells.results import Results, matrix
from discreet_studies.eliminating_small_cells.tables import COUNTS
from discreet_studies.model import Picture

_REACH = 7
_FAR = 15
BANDS = ((20, 49), (50, 99), (100, 299), (300, 499), (500, 999), (1000, 4999))
_SERIES = ["SAFE", "noise, D = 5"]

Point = dict[str, Any]


def pictures(found: Results) -> tuple[Picture, ...]:
    """Both parts of the paper's figure."""
    return (
        Picture(
            "Figure 1a",
            "Probability of each deviation in controlled tables, by true count: SAFE beside the "
            "designed noise with D = 5.",
            lambda: _controlled(found),
        ),
        Picture(
            "Figure 1b",
            "Probability of each deviation of SAFE in tables of four variables, which are not "
            f"controlled, by size of the true count; deviations beyond {_FAR} are not drawn.",
            lambda: _uncontrolled(found),
        ),
    )


def _points(shares: dict[int, float], reach: int, counts: str, series: str) -> Iterator[Point]:
    for d in range(-reach, reach + 1):
        yield {"counts": counts, "series": series, "d": d, "share": shares.get(d, 0.0)}


def _controlled(found: Results) -> Any:
    law = matrix(5)
    names = [f"count {c}" for c in COUNTS]
    rows: list[Point] = []
    for c, name in zip(COUNTS, names, strict=True):
        p = dict(zip(law.deviations.tolist(), law.probabilities(c).tolist(), strict=True))
        rows += _points(found.controlled.shares(c, c), _REACH, name, _SERIES[0])
        rows += _points(p, _REACH, name, _SERIES[1])
    return _panels(rows, names, _SERIES, 4)


def _uncontrolled(found: Results) -> Any:
    effect = found.uncontrolled
    bands = [band for band in BANDS if _has_cells(effect, band)]
    names = [f"counts {a}-{b}" for a, b in bands]
    rows: list[Point] = []
    for band, name in zip(bands, names, strict=True):
        rows += _points(effect.shares(*band), _FAR, name, _SERIES[0])
    return _panels(rows, names, _SERIES[:1], 3)


def _has_cells(effect: Effect, band: tuple[int, int]) -> bool:
    return bool(np.any((effect.true >= band[0]) & (effect.true <= band[1])))


def _panels(rows: list[Point], names: list[str], series: list[str], columns: int) -> Any:
    """A panel for each size of count."""
    alt = altair_module()
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point={"size": 22, "filled": True}, strokeWidth=1.5)
        .encode(
            x=alt.X("d:Q", title="deviation", scale=alt.Scale(nice=False)),
            y=alt.Y("share:Q", title="probability"),
            color=alt.Color("series:N", scale=colours(series), sort=series, title=None),
            shape=alt.Shape("series:N", scale=shapes(series), sort=series, title=None),
        )
        .properties(width=560 // columns, height=130)
        .facet(facet=alt.Facet("counts:N", sort=names, title=None), columns=columns)
    )
    return styled(chart)
