"""Horizontal bars: a group for each row, a bar for each column."""

from __future__ import annotations

from markupsafe import Markup

from discreet.serve.web import drawing as palette
from discreet.serve.web import drawing as svg
from discreet.serve.web.drawing import ChartData
from discreet.serve.web.texts import nice_ticks

MOST_CATEGORIES, MOST_SERIES, MOST_MARKS = 40, palette.MOST_SERIES, 72
_THIN = 13.0  # a bar among others; a lone bar is half as high again
_FOOT = 26.0


def fits(picture: ChartData) -> bool:
    """Whether there is anything to draw."""
    return bool(picture.categories)


def draw(picture: ChartData) -> Markup:
    """The bars, with values behind them where there is one bar for each row."""
    is_lone = len(picture.series) == 1
    looks, patterns = palette.fills(picture)
    head, top = ([], 4.0) if is_lone else palette.legend(picture, looks)
    left = min(max(map(svg.width_of, picture.categories)) + 10, svg.WIDTH * 0.4)
    thick = _THIN * 1.5 if is_lone else _THIN
    names = svg.name_height(picture.categories, left - 10)
    group = max(thick * len(picture.series) + (8 if is_lone else 10), names)
    height = top + group * len(picture.categories) + _FOOT
    ticks = nice_ticks(picture.largest)
    room = svg.width_of(picture.written(picture.largest)) + 8 if is_lone else 14.0
    scale = (svg.WIDTH - left - room) / ticks[-1]
    parts = [*patterns, *head, *_axis(picture, ticks, scale, left, top, height)]
    for k, category in enumerate(picture.categories):
        y = top + k * group + (group - thick * len(picture.series)) / 2
        middle = y + thick * len(picture.series) / 2
        parts.append(svg.label(left - 8, middle, category, left - 10))
        parts += _group(picture, k, looks, (left, y, thick, scale))
    return svg.drawing(picture.title, picture.description, height, parts)


def _axis(
    picture: ChartData, ticks: list[float], scale: float, left: float, top: float, height: float
) -> list[Markup]:
    bottom = height - _FOOT
    parts = []
    for value in ticks:
        x = left + value * scale
        said = picture.tick(value, ticks[1])
        parts.append(svg.line(x, top, x, bottom))
        anchor = "start" if value == 0 else "end" if value == ticks[-1] else "middle"
        parts.append(svg.text(x, height - 8, said, text_anchor=anchor, fill=svg.SOFT))
    return parts


def _group(
    picture: ChartData, k: int, looks: list[str], place: tuple[float, float, float, float]
) -> list[Markup]:
    left, y, thick, scale = place
    parts = []
    for s, value in enumerate(picture.values[k]):
        shown = picture.written(value)
        length = max(float(value) * scale, 0.0) if value == value else 0.0
        top, hint = y + s * thick, svg.tooltip(picture.hint(k, s))
        parts.append(svg.rectangle(left, top, length, thick - 1.5, hint, fill=looks[s]))
        if len(picture.series) == 1:
            parts.append(svg.text(left + length + 6, top + thick * 0.5 + 4, shown, fill=svg.SOFT))
    return parts
