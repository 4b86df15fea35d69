"""Which charts there are, which of them a table allows, and the one that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from discreet.serve.web.charts import bars, heat, lines, pyramid
from discreet.serve.web.charts.picture import Picture
from discreet.serve.web.texts import Texts


@dataclass(frozen=True)
class Kind:
    """A kind of chart.

    Attributes:
      fits: Whether a picture can be drawn.
      draw: Draws it.
      most_categories: Rows that have room.
      most_series: Columns that have room.
    """

    fits: Callable[[Picture], bool]
    draw: Callable[[Picture], Markup]
    most_categories: int
    most_series: int


CHARTS = {
    "bars": Kind(bars.fits, bars.draw, bars.MOST_CATEGORIES, bars.MOST_SERIES),
    "lines": Kind(lines.fits, lines.draw, lines.MOST_CATEGORIES, lines.MOST_SERIES),
    "heat": Kind(heat.fits, heat.draw, heat.MOST_CATEGORIES, heat.MOST_SERIES),
    "pyramid": Kind(pyramid.fits, pyramid.draw, pyramid.MOST_CATEGORIES, pyramid.MOST_SERIES),
}


@dataclass(frozen=True)
class Drawn:
    """A chart on a page.

    Attributes:
      svg: The drawing; empty where the table does not fit the chart.
      note: What is left out of it, or why there is none.
    """

    svg: Markup
    note: str = ""


def drawn(name: str, picture: Picture, texts: Texts) -> Drawn:
    """The chart of this name, or what it would need."""
    kind, said = CHARTS[name], texts.chart
    if not kind.fits(picture):
        return Drawn(Markup(""), getattr(said.needs, name))
    if not np.isfinite(picture.values).any():
        return Drawn(Markup(""), said.nothing_shown)
    limited = picture.limited(kind.most_categories, kind.most_series)
    described = replace(limited, description=_description(name, limited, texts))
    return Drawn(kind.draw(described), _left_out(picture, limited, texts))


def _description(name: str, picture: Picture, texts: Texts) -> str:
    """The chart in words: how much it shows, and between which values."""
    said, values = texts.chart, picture.values
    high = np.unravel_index(np.nanargmax(values), values.shape)
    low = np.unravel_index(np.nanargmin(values), values.shape)
    return said.description.format(
        kind=getattr(said.kinds, name),
        rows=texts.count("rows", len(picture.categories)),
        columns=texts.count("columns", len(picture.series)),
        most=picture.written(float(values[high])),
        most_at=_named(picture, *map(int, high)),
        least=picture.written(float(values[low])),
        least_at=_named(picture, *map(int, low)),
    )


def _named(picture: Picture, k: int, s: int) -> str:
    return ", ".join(part for part in (picture.categories[k], picture.series[s]) if part)


def _left_out(whole: Picture, shown: Picture, texts: Texts) -> str:
    pairs = [
        ("rows", len(shown.categories), len(whole.categories)),
        ("columns", len(shown.series), len(whole.series)),
    ]
    said = texts.chart.left_out
    notes = [said.format(n=n, all=texts.count(what, m)) for what, n, m in pairs if n < m]
    return " ".join(notes)
