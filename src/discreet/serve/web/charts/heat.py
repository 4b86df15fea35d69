"""A heat map: a field for each cell, darker for larger values, with the value in it."""

from __future__ import annotations

import math

from markupsafe import Markup

from discreet.serve.web import drawing as svg
from discreet.serve.web.drawing import FONT, WIDTH, ChartData

MOST_CATEGORIES, MOST_SERIES, MOST_MARKS = 60, 24, 1440
SHADES = ("#f1f5f9", "#d3e3ee", "#a9cbe0", "#6fa8ca", "#3a7fab", "#17557f", "#0a3050")
"""Light to dark; each differs from the next in lightness, so that grey paper keeps the order."""
_DARK_FROM = 4  # shades on which writing is white
_HIGH = 24.0
_SMALL = 11.0
_FOOT = 40.0


def fits(picture: ChartData) -> bool:
    """Whether there is anything to draw."""
    return bool(picture.categories)


def draw(picture: ChartData) -> Markup:
    """The fields under the names of the columns, and what the shades stand for."""
    left = min(max(map(svg.width_of, picture.categories)) + 10, WIDTH * 0.38)
    wide = _field_width(picture, left)
    top, parts = _over(picture, left, wide)
    has_room = max(map(svg.width_of, _texts(picture))) * _SMALL / FONT + 4 <= wide
    high = max(_HIGH, svg.name_height(picture.categories, left - 10))
    for k, category in enumerate(picture.categories):
        y = top + k * high
        parts.append(svg.label(left - 8, y + high / 2, category, left - 10))
        for s in range(len(picture.series)):
            parts += _field(picture, k, s, (left + s * wide, y, wide, high), has_room)
    bottom = top + high * len(picture.categories)
    parts += _key(picture, left, bottom)
    return svg.drawing(picture.title, picture.description, bottom + _FOOT, parts)


def _field_width(picture: ChartData, left: float) -> float:
    """The width of a field; slanted names need room beside the last one."""
    longest = max(map(svg.width_of, picture.series))
    level = (WIDTH - left) / len(picture.series)
    if longest + 6 <= level:
        return level
    return (WIDTH - left - min(longest, svg.SLANTED) * 0.6) / len(picture.series)


def shade_of(value: float, largest: float) -> int:
    """Which shade stands for a value."""
    if not largest > 0 or math.isnan(value):
        return 0
    return min(max(int(value / largest * len(SHADES)), 0), len(SHADES) - 1)


def _texts(picture: ChartData) -> list[str]:
    return [picture.written(float(value)) for value in picture.values.ravel()]


def _over(picture: ChartData, left: float, wide: float) -> tuple[float, list[Markup]]:
    longest = max(map(svg.width_of, picture.series))
    if not longest:
        return 6.0, []
    is_level = longest + 6 <= wide
    height = 22.0 if is_level else min(longest, svg.SLANTED) * 0.72 + 20
    parts = []
    for s, series in enumerate(picture.series):
        x = left + (s + 0.5) * wide
        if is_level:
            parts.append(svg.text(x, 15.0, series, text_anchor="middle"))
        else:
            parts.append(svg.slanted(x, height - 6, series, -45))
    return height, parts


def _field(
    picture: ChartData, k: int, s: int, place: tuple[float, float, float, float], has_room: bool
) -> list[Markup]:
    x, y, wide, high = place
    value = float(picture.values[k, s])
    shade = shade_of(value, picture.largest)
    hint = svg.tooltip(picture.hint(k, s))
    fill = "#fff" if math.isnan(value) else SHADES[shade]
    edge = svg.GRID if math.isnan(value) else "#fff"
    parts = [svg.rectangle(x, y, wide, high, hint, fill=fill, stroke=edge)]
    if has_room:
        ink = "#fff" if shade >= _DARK_FROM else svg.INK
        look = {"text_anchor": "middle", "fill": ink, "pointer_events": "none"}
        x, y, said = x + wide / 2, y + high / 2 + 4, picture.written(value)
        parts.append(svg.text(x, y, said, **look, font_size=_SMALL))
    return parts


def _key(picture: ChartData, left: float, bottom: float) -> list[Markup]:
    wide = (WIDTH - left) / len(SHADES)
    y = bottom + 10
    parts = [
        svg.rectangle(left + k * wide, y, wide, 8.0, fill=shade) for k, shade in enumerate(SHADES)
    ]
    least, most = picture.written(0.0), picture.written(picture.largest)
    parts.append(svg.text(left, y + 22, least, fill=svg.SOFT, font_size=_SMALL))
    parts.append(svg.text(WIDTH, y + 22, most, fill=svg.SOFT, font_size=_SMALL, text_anchor="end"))
    return parts
