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
      most_marks: Rows times columns that have room.
    """

    fits: Callable[[Picture], bool]
    draw: Callable[[Picture], Markup]
    most_categories: int
    most_series: int
    most_marks: int

    def limited(self, picture: Picture) -> Picture:
        """What has room of a picture."""
        series = min(len(picture.series), self.most_series)
        categories = min(self.most_categories, max(self.most_marks // max(series, 1), 1))
        return picture.limited(categories, series)


CHARTS = {
    name: Kind(
        module.fits,
        module.draw,
        module.MOST_CATEGORIES,
        module.MOST_SERIES,
        module.MOST_MARKS,
    )
    for name, module in {"bars": bars, "lines": lines, "heat": heat, "pyramid": pyramid}.items()
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
    limited = kind.limited(picture)
    described = replace(limited, description=_description(name, limited, texts))
    return Drawn(kind.draw(described), _left_out(picture, limited, texts))


def _description(name: str, picture: Picture, texts: Texts) -> str:
    """The chart in words: how much it shows, and between which values."""
    said, values = texts.chart, picture.values
    high = np.unravel_index(np.nanargmax(values), values.shape)
    low = np.unravel_index(np.nanargmin(values), values.shape)
    described: str = said.description.format(
        kind=getattr(said.kinds, name),
        rows=texts.count("rows", len(picture.categories)),
        columns=texts.count("columns", len(picture.series)),
        most=picture.written(float(values[high])),
        most_at=_named(picture, *map(int, high)),
        least=picture.written(float(values[low])),
        least_at=_named(picture, *map(int, low)),
    )
    return described


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
