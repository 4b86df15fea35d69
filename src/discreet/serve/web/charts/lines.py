"""Lines over the rows, one for each column, named where they end."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup

from discreet.arrays import Real
from discreet.serve.web import drawing as palette
from discreet.serve.web import drawing as svg
from discreet.serve.web.drawing import ChartData
from discreet.serve.web.texts import nice_ticks

MOST_CATEGORIES, MOST_SERIES, MOST_MARKS = 120, palette.MOST_SERIES, 720
_HIGH = 240.0
_TOP = 10.0


def fits(picture: ChartData) -> bool:
    """Whether there are points to join."""
    return len(picture.categories) > 1


def draw(picture: ChartData) -> Markup:
    """The lines; a value that is not shown leaves a gap."""
    ticks = nice_ticks(picture.largest, 5)
    left = max(svg.width_of(picture.tick(value, ticks[1])) for value in ticks) + 10
    right = max(_room_for_names(picture), _room_for_slanted(picture, left))
    step = (svg.WIDTH - left - right) / (len(picture.categories) - 1)
    foot, names = _under(picture, left, step)
    scale = (_HIGH - _TOP) / ticks[-1]
    parts: list[Markup] = []
    for value in ticks:
        y = _HIGH - value * scale
        parts.append(svg.line(left, y, svg.WIDTH - right, y))
        said = picture.tick(value, ticks[1])
        parts.append(svg.text(left - 8, y + 4, said, text_anchor="end", fill=svg.SOFT))
    parts += names
    for s in range(len(picture.series)):
        parts += _line(picture, s, left, step, scale)
    parts += _line_names(picture, left + step * (len(picture.categories) - 1), scale)
    return svg.drawing(picture.title, picture.description, _HIGH + foot, parts)


def _room_for_names(picture: ChartData) -> float:
    longest = max(svg.width_of(name) for name in picture.series)
    return min(longest + 30, svg.WIDTH * 0.32) if longest else 14.0


def _room_for_slanted(picture: ChartData, left: float) -> float:
    """What the last name under the axis needs to the right of it."""
    longest = max(map(svg.width_of, picture.categories))
    is_level = longest + 8 <= (svg.WIDTH - left) / len(picture.categories) * 2
    return longest / 2 if is_level else min(longest, svg.SLANTED) * 0.72


def _under(picture: ChartData, left: float, step: float) -> tuple[float, list[Markup]]:
    """Names of the categories, as many as have room; slanted where they are long."""
    longest = max(map(svg.width_of, picture.categories))
    is_level = longest + 8 <= step * 2
    every = max(1, math.ceil(((longest + 8) if is_level else 20.0) / step))
    parts = []
    for k in range(0, len(picture.categories), every):
        x, y = left + k * step, _HIGH + 18
        name = picture.categories[k]
        if is_level:
            parts.append(svg.text(x, y, name, text_anchor="middle", fill=svg.SOFT))
        else:
            parts.append(svg.slanted(x, y - 4, name, 45, fill=svg.SOFT))
    return (28.0 if is_level else min(longest, svg.SLANTED) * 0.72 + 26), parts


def _line(picture: ChartData, s: int, left: float, step: float, scale: float) -> list[Markup]:
    colour = palette.colours(picture.accent)[s]
    points = [
        (left + k * step, _HIGH - float(value) * scale)
        for k, value in enumerate(picture.values[:, s])
    ]
    look = {"stroke_dasharray": palette.DASHES[s] or None, "stroke_linejoin": "round"}
    path = svg.tag("path", d=_path(points), fill="none", stroke=colour, stroke_width=2.5, **look)
    if len(points) > 30:
        return [path]
    hints = [svg.tooltip(picture.hint(k, s)) for k in range(len(points))]
    shown = [(x, y, hint) for (x, y), hint in zip(points, hints, strict=True) if not math.isnan(y)]
    return [path, *(_marker(s, x, y, colour, hint) for x, y, hint in shown)]


def _path(points: list[tuple[float, float]]) -> str:
    said, is_down = [], False
    for x, y in points:
        if math.isnan(y):
            is_down = False
            continue
        said.append(f"{'L' if is_down else 'M'}{x:.1f} {y:.1f}")
        is_down = True
    return "".join(said) or "M0 0"


def _marker(s: int, x: float, y: float, colour: str, hint: str) -> Markup:
    shape = palette.MARKERS[s]
    if shape in ("circle", "ring"):
        fill = colour if shape == "circle" else "#fff"
        return svg.tag(
            "circle", hint, cx=x, cy=y, r=3.5, fill=fill, stroke=colour, stroke_width=1.5
        )
    paths = {
        "square": f"M{x - 3.2:.1f} {y - 3.2:.1f}h6.4v6.4h-6.4z",
        "diamond": f"M{x:.1f} {y - 4.6:.1f}l4.6 4.6-4.6 4.6-4.6-4.6z",
        "triangle": f"M{x:.1f} {y - 4.4:.1f}l4.4 7.6h-8.8z",
        "cross": f"M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m0-7l-7 7",
    }
    return svg.tag("path", hint, d=paths[shape], fill=colour, stroke=colour, stroke_width=1.5)


def _line_names(picture: ChartData, x: float, scale: float) -> list[Markup]:
    """The names of the lines beside their last values, moved apart where they would touch."""
    if not any(picture.series):
        return []
    ends = [_last(picture.values[:, s]) for s in range(len(picture.series))]
    order = sorted(range(len(ends)), key=lambda s: -ends[s])
    parts, lowest = [], -math.inf
    for s in order:
        y = max(_HIGH - ends[s] * scale + 4, lowest + 15, _TOP + 4)
        lowest = y
        name = svg.shortened(picture.series[s], svg.WIDTH - x - 24)
        colour = palette.colours(picture.accent)[s]
        parts.append(_marker(s, x + 13, y - 4, colour, ""))
        parts.append(svg.text(x + 22, y, name))
    return parts


def _last(values: Real) -> float:
    shown = values[np.isfinite(values)]
    return float(shown[-1]) if len(shown) else 0.0
