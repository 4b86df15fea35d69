"""Charts beside a table, drawn as SVG: bars, lines, a heat map and an age–sex pyramid.

Each chart is one file with a function that draws a `Picture`; `CHARTS` lists them by the name that
an address uses. Colours are told apart by lightness and patterns as well, so that charts can be
read on paper and by colour-blind people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from discreet.serve.web.charts import bars, heat, lines, pyramid
from discreet.serve.web.drawing import ChartData
from discreet.serve.web.texts import Texts

CHARTS: Mapping[str, Any] = {"bars": bars, "lines": lines, "heat": heat, "pyramid": pyramid}
"""The charts by name; each says what `fits` it, how much has room, and how to `draw` it."""


@dataclass(frozen=True)
class DrawnChart:
    """A chart on a page.

    Attributes:
      svg: The drawing; empty where the table does not fit the chart.
      note: What is left out of it, or why there is none.
    """

    svg: Markup
    note: str = ""


def draw_chart(name: str, picture: ChartData, texts: Texts) -> DrawnChart:
    """The chart of this name, or what it would need."""
    kind, said = CHARTS[name], texts.chart
    if not kind.fits(picture):
        return DrawnChart(Markup(""), getattr(said.needs, name))
    if not np.isfinite(picture.values).any():
        return DrawnChart(Markup(""), said.nothing_shown)
    series = min(len(picture.series), kind.MOST_SERIES)
    most = min(kind.MOST_CATEGORIES, max(kind.MOST_MARKS // max(series, 1), 1))
    limited = picture.limited(most, series)
    described = replace(limited, description=_description(name, limited, texts))
    return DrawnChart(kind.draw(described), _left_out(picture, limited, texts))


def _description(name: str, picture: ChartData, texts: Texts) -> str:
    """The chart in words: how much it shows, and between which values."""
    said, values = texts.chart, picture.values
    high = np.unravel_index(np.nanargmax(values), values.shape)
    low = np.unravel_index(np.nanargmin(values), values.shape)
    described: str = said.description.format(
        kind=getattr(said.kinds, name),
        rows=texts.count("rows", len(picture.categories)),
        columns=texts.count("columns", len(picture.series)),
        most=picture.written(float(values[high])),
        most_at=picture.named(*map(int, high), between=", "),
        least=picture.written(float(values[low])),
        least_at=picture.named(*map(int, low), between=", "),
    )
    return described


def _left_out(whole: ChartData, shown: ChartData, texts: Texts) -> str:
    pairs = [
        ("rows", len(shown.categories), len(whole.categories)),
        ("columns", len(shown.series), len(whole.series)),
    ]
    said = texts.chart.left_out
    notes = [said.format(n=n, all=texts.count(what, m)) for what, n, m in pairs if n < m]
    return " ".join(notes)
