"""A pyramid: the rows in the middle, the first column to the left, the second to the right."""

from __future__ import annotations

from markupsafe import Markup

from discreet.serve.web import drawing as palette
from discreet.serve.web import drawing as svg
from discreet.serve.web.drawing import ChartData
from discreet.serve.web.texts import nice_ticks

MOST_CATEGORIES, MOST_SERIES, MOST_MARKS = 110, 2, 220
_TOP, _FOOT = 28.0, 26.0


def fits(picture: ChartData) -> bool:
    """Whether two columns and one variable in rows are shown."""
    return len(picture.series) == 2 and picture.n_rows == 1 and len(picture.categories) > 1


def draw(picture: ChartData) -> Markup:
    """The pyramid; the last row is at the top, as ages are drawn."""
    high = 16.0 if len(picture.categories) <= 40 else 8.0
    every = 1 if high > 12 else 5
    shown = picture.categories[::every]
    middle = min(max(map(svg.width_of, shown)) + 16, svg.WIDTH * 0.34)
    side = (svg.WIDTH - middle) / 2
    ticks = nice_ticks(picture.largest, 3)
    scale = (side - 4) / ticks[-1]
    height = _TOP + high * len(picture.categories) + _FOOT
    looks, patterns = palette.fills(picture)
    parts = [*patterns, *_heads(picture, side), *_axis(picture, ticks, (side, scale, height))]
    for k, category in enumerate(reversed(picture.categories)):
        place = len(picture.categories) - 1 - k
        y = _TOP + k * high
        if place % every == 0:
            name = svg.shortened(category, middle - 10)
            centre = svg.WIDTH / 2
            parts.append(svg.text(centre, y + high / 2 + 4, name, text_anchor="middle"))
        parts += _pair(picture, place, looks, (side, y, high, scale))
    return svg.drawing(picture.title, picture.description, height, parts)


def _heads(picture: ChartData, side: float) -> list[Markup]:
    left, right = picture.series
    return [
        svg.text(side, 16.0, svg.shortened(left, side), text_anchor="end", font_weight="600"),
        svg.text(svg.WIDTH - side, 16.0, svg.shortened(right, side), font_weight="600"),
    ]


def _axis(
    picture: ChartData, ticks: list[float], place: tuple[float, float, float]
) -> list[Markup]:
    side, scale, height = place
    parts = []
    for value in ticks:
        said = picture.tick(value, ticks[1])
        is_last = value == ticks[-1]
        for is_left in (True, False):
            x = side - value * scale if is_left else svg.WIDTH - side + value * scale
            anchor = ("start" if is_left else "end") if is_last else "middle"
            parts.append(svg.line(x, _TOP - 4, x, height - _FOOT))
            parts.append(svg.text(x, height - 8, said, text_anchor=anchor, fill=svg.SOFT))
    return parts


def _pair(
    picture: ChartData, k: int, looks: list[str], place: tuple[float, float, float, float]
) -> list[Markup]:
    side, y, high, scale = place
    parts = []
    for s, value in enumerate(picture.values[k]):
        length = max(float(value) * scale, 0.0) if value == value else 0.0
        x, hint = side - length if s == 0 else svg.WIDTH - side, svg.tooltip(picture.hint(k, s))
        parts.append(svg.rectangle(x, y + 1, length, high - 2, hint, fill=looks[s]))
    return parts
