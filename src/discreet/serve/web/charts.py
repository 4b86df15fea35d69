"""Charts beside a table, drawn as SVG: bars, lines, a heat map and an age–sex pyramid.

`CHARTS` lists them by the name that an address uses. Colours are told apart by lightness and
patterns as well, so that charts can be read on paper and by colour-blind people.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from discreet.serve.web.drawing import (
    DASHES,
    FONT,
    GRID,
    INK,
    MARKERS,
    MOST_SERIES,
    SLANTED,
    SOFT,
    WIDTH,
    ChartData,
    distinct_names,
    name_height,
    rectangle,
    row_label,
    series_colours,
    series_fills,
    series_legend,
    slanted_text,
    straight_line,
    svg_document,
    tag,
    text_at,
    tooltip,
    width_of,
)
from discreet.serve.web.texts import Texts, nice_ticks

_BAR = 13.0  # a bar among others; a lone bar is half as high again
_AXIS_FOOT = 26.0
_LINES_FOOT = 240.0
_LINES_TOP = 10.0
SHADES = ("#f1f5f9", "#d3e3ee", "#a9cbe0", "#6fa8ca", "#3a7fab", "#17557f", "#0a3050")
"""Light to dark; each differs from the next in lightness, so that grey paper keeps the order."""
_DARK_FROM = 4  # shades on which writing is white
_FIELD_HEIGHT = 24.0
_SMALL_FONT = 11.0
_KEY_FOOT = 40.0
_TWO_LINES = 1.6  # widths of a line that two lines hold, since words do not fill them
_PYRAMID_TOP = 28.0


@dataclass(frozen=True)
class ChartKind:
    """A chart by what it draws, what has room in it, and which tables fit it.

    Attributes:
      draw: Draws what has room.
      most_categories: Most rows of a table that are drawn.
      most_series: Most columns.
      most_marks: Most cells.
      fits: Whether a table can be drawn; every one with rows if absent.
      has_gaps: Whether rows without figures keep their place between others, as on a scale.
    """

    draw: Callable[[ChartData], Markup]
    most_categories: int
    most_series: int
    most_marks: int
    fits: Callable[[ChartData], bool] = lambda data: bool(data.categories)
    has_gaps: bool = False


@dataclass(frozen=True)
class DrawnChart:
    """A chart on a page.

    Attributes:
      svg: The drawing; empty where the table does not fit the chart.
      note: What is left out of it, or why there is none.
    """

    svg: Markup
    note: str = ""


def draw_chart(name: str, data: ChartData, texts: Texts) -> DrawnChart:
    """The chart of this name, or what it would need."""
    kind, said = CHARTS[name], texts.chart
    if not kind.fits(data):
        return DrawnChart(Markup(""), getattr(said.needs, name))
    if not np.isfinite(data.values).any():
        return DrawnChart(Markup(""), said.nothing_shown)
    drawn = data.with_figures(kind.has_gaps)
    series = min(len(drawn.series), kind.most_series)
    most = min(kind.most_categories, max(kind.most_marks // max(series, 1), 1))
    # Rows in front may have figures in later columns only: what is left is looked at again.
    limited = drawn.limit(most, series).with_figures(kind.has_gaps)
    if not kind.fits(limited):
        return DrawnChart(Markup(""), said.nothing_shown)
    described = replace(limited, description=_description(name, limited, texts))
    sizes = [
        ("rows", len(limited.categories), len(data.categories)),
        ("columns", len(limited.series), len(data.series)),
    ]
    left_out = [said.left_out.format(n=n, all=texts.count(w, m)) for w, n, m in sizes if n < m]
    return DrawnChart(kind.draw(described), " ".join(left_out))


def _description(name: str, data: ChartData, texts: Texts) -> str:
    """The chart in words: how much it shows, and between which values."""
    said, values = texts.chart, data.values
    high = np.unravel_index(np.nanargmax(values), values.shape)
    low = np.unravel_index(np.nanargmin(values), values.shape)
    described: str = said.description.format(
        kind=getattr(said.kinds, name),
        rows=texts.count("rows", len(data.categories)),
        columns=texts.count("columns", len(data.series)),
        most=data.format(float(values[high])),
        most_at=data.cell_name(*map(int, high), between=", "),
        least=data.format(float(values[low])),
        least_at=data.cell_name(*map(int, low), between=", "),
    )
    return described


def _draw_bars(data: ChartData) -> Markup:
    """The bars, with values behind them where there is one bar for each row."""
    is_lone = len(data.series) == 1
    looks, patterns = series_fills(data)
    head, top = ([], 4.0) if is_lone else series_legend(data, looks)
    left = min(max(map(width_of, data.categories)) + 10, WIDTH * 0.4)
    thick = _BAR * 1.5 if is_lone else _BAR
    names = distinct_names(data.categories, _TWO_LINES * (left - 10))
    group = max(thick * len(data.series) + (8 if is_lone else 10), name_height(names, left - 10))
    height = top + group * len(data.categories) + _AXIS_FOOT
    ticks = nice_ticks(data.largest)
    room = width_of(data.format(data.largest)) + 8 if is_lone else 14.0
    scale = (WIDTH - left - room) / ticks[-1]
    parts = [*patterns, *head]
    told = _told_ticks(data, ticks, scale)
    for value in ticks:
        x = left + value * scale
        parts.append(straight_line(x, top, x, height - _AXIS_FOOT))
        anchor = "start" if value == 0 else "end" if value == ticks[-1] else "middle"
        if value in told:
            parts.append(text_at(x, height - 8, told[value], text_anchor=anchor, fill=SOFT))
    for k, name in enumerate(names):
        y = top + k * group + (group - thick * len(data.series)) / 2
        middle = y + thick * len(data.series) / 2
        parts.append(row_label(left - 8, middle, name, left - 10))
        for s, value in enumerate(data.values[k].tolist()):
            length, bar_top = _bar_length(value, scale), y + s * thick
            hint = tooltip(data.hint(k, s))
            parts.append(rectangle(left, bar_top, length, thick - 1.5, hint, fill=looks[s]))
            if is_lone:
                said, line = data.format(value), bar_top + thick * 0.5 + 4
                parts.append(text_at(left + length + 6, line, said, fill=SOFT))
    return svg_document(data.title, data.description, height, parts)


def _told_ticks(data: ChartData, ticks: Sequence[float], scale: float) -> dict[float, str]:
    """The texts under an axis: each, every second, or those at the ends, as they have room."""
    last, step = len(ticks) - 1, ticks[1] * scale
    needed = 1.5 * width_of(data.tick(ticks[-1], ticks[1])) + 6  # the last ends where its line is
    every = 1 if step >= needed else 2 if 2 * step >= needed else last
    shown = [value for k, value in enumerate(ticks) if (last - k) % every == 0 or k == 0]
    return {value: data.tick(value, ticks[1]) for value in shown}


def _bar_length(value: float, scale: float) -> float:
    """A bar for a value; none for one that is negative after noise, or not shown."""
    return 0.0 if math.isnan(value) else max(value * scale, 0.0)


def _draw_lines(data: ChartData) -> Markup:
    """The lines; a value that is not shown leaves a gap."""
    ticks = nice_ticks(data.largest, 5)
    left = max(width_of(data.tick(value, ticks[1])) for value in ticks) + 10
    longest_series = max(map(width_of, data.series))
    right = min(longest_series + 30, WIDTH * 0.32) if longest_series else 14.0
    longest = max(map(width_of, data.categories))
    is_level = longest + 8 <= (WIDTH - left) / len(data.categories) * 2
    # The last name under the axis stands out to the right of it.
    right = max(right, longest / 2 if is_level else min(longest, SLANTED) * 0.72)
    step = (WIDTH - left - right) / (len(data.categories) - 1)
    foot, names = _names_under(data, left, step)
    scale = (_LINES_FOOT - _LINES_TOP) / ticks[-1]
    parts: list[Markup] = []
    for value in ticks:
        y = _LINES_FOOT - value * scale
        parts.append(straight_line(left, y, WIDTH - right, y))
        said = data.tick(value, ticks[1])
        parts.append(text_at(left - 8, y + 4, said, text_anchor="end", fill=SOFT))
    parts += names
    for s in range(len(data.series)):
        parts += _one_line(data, s, left, step, scale)
    parts += _line_names(data, left + step * (len(data.categories) - 1), scale)
    return svg_document(data.title, data.description, _LINES_FOOT + foot, parts)


def _names_under(data: ChartData, left: float, step: float) -> tuple[float, list[Markup]]:
    """Names of the categories, as many as have room; slanted where they are long."""
    longest = max(map(width_of, data.categories))
    is_level = longest + 8 <= step * 2
    every = max(1, math.ceil(((longest + 8) if is_level else 20.0) / step))
    parts, shown = [], distinct_names(data.categories, SLANTED)
    for k in range(0, len(data.categories), every):
        x, y = left + k * step, _LINES_FOOT + 18
        name = shown[k]
        if is_level:
            parts.append(text_at(x, y, data.categories[k], text_anchor="middle", fill=SOFT))
        else:
            parts.append(slanted_text(x, y - 4, name, 45, fill=SOFT))
    return (28.0 if is_level else min(longest, SLANTED) * 0.72 + 26), parts


def _one_line(data: ChartData, s: int, left: float, step: float, scale: float) -> list[Markup]:
    colour = series_colours(data.accent)[s]
    points = [
        (left + k * step, _LINES_FOOT - float(value) * scale)
        for k, value in enumerate(data.values[:, s])
    ]
    look = {"stroke_dasharray": DASHES[s] or None, "stroke_linejoin": "round"}
    drawn, is_down = "", False
    for x, y in points:
        is_gap = math.isnan(y)
        drawn += "" if is_gap else f"{'L' if is_down else 'M'}{x:.1f} {y:.1f}"
        is_down = not is_gap
    path = tag("path", d=drawn or "M0 0", fill="none", stroke=colour, stroke_width=2.5, **look)
    if len(points) > 30:
        return [path]
    hints = [tooltip(data.hint(k, s)) for k in range(len(points))]
    shown = [(x, y, hint) for (x, y), hint in zip(points, hints, strict=True) if not math.isnan(y)]
    return [path, *(_marker(s, x, y, colour, hint) for x, y, hint in shown)]


def _marker(s: int, x: float, y: float, colour: str, hint: str) -> Markup:
    shape = MARKERS[s]
    if shape in ("circle", "ring"):
        fill = colour if shape == "circle" else "#fff"
        return tag("circle", hint, cx=x, cy=y, r=3.5, fill=fill, stroke=colour, stroke_width=1.5)
    paths = {
        "square": f"M{x - 3.2:.1f} {y - 3.2:.1f}h6.4v6.4h-6.4z",
        "diamond": f"M{x:.1f} {y - 4.6:.1f}l4.6 4.6-4.6 4.6-4.6-4.6z",
        "triangle": f"M{x:.1f} {y - 4.4:.1f}l4.4 7.6h-8.8z",
        "cross": f"M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m0-7l-7 7",
    }
    return tag("path", hint, d=paths[shape], fill=colour, stroke=colour, stroke_width=1.5)


def _line_names(data: ChartData, x: float, scale: float) -> list[Markup]:
    """The names of the lines beside their last values, moved apart where they would touch."""
    if not any(data.series):
        return []
    lines = (values[np.isfinite(values)] for values in data.values.T)
    ends = [float(shown[-1]) if len(shown) else 0.0 for shown in lines]
    order = sorted(range(len(ends)), key=lambda s: -ends[s])
    parts, lowest = [], -math.inf
    names = distinct_names(data.series, WIDTH - x - 24)
    for s in order:
        y = max(_LINES_FOOT - ends[s] * scale + 4, lowest + 15, _LINES_TOP + 4)
        lowest = y
        colour = series_colours(data.accent)[s]
        parts.append(_marker(s, x + 13, y - 4, colour, ""))
        parts.append(text_at(x + 22, y, names[s]))
    return parts


def _draw_heat(data: ChartData) -> Markup:
    """The fields under the names of the columns, and what the shades stand for."""
    left = min(max(map(width_of, data.categories)) + 10, WIDTH * 0.38)
    longest, wide = max(map(width_of, data.series)), (WIDTH - left) / len(data.series)
    if longest + 6 > wide:  # slanted names need room beside the last one
        wide = (WIDTH - left - min(longest, SLANTED) * 0.6) / len(data.series)
    top, parts = _names_over(data, left, wide)
    widest = max(width_of(data.format(float(value))) for value in data.values.ravel())
    has_room = widest * _SMALL_FONT / FONT + 4 <= wide
    names = distinct_names(data.categories, _TWO_LINES * (left - 10))
    high = max(_FIELD_HEIGHT, name_height(names, left - 10))
    for k, name in enumerate(names):
        y = top + k * high
        parts.append(row_label(left - 8, y + high / 2, name, left - 10))
        for s in range(len(data.series)):
            parts += _field(data, k, s, (left + s * wide, y, wide, high), has_room)
    bottom = top + high * len(data.categories)
    parts += _shade_key(data, left, bottom)
    return svg_document(data.title, data.description, bottom + _KEY_FOOT, parts)


def shade_of(value: float, largest: float) -> int:
    """Which shade stands for a value."""
    if not largest > 0 or math.isnan(value):
        return 0
    return min(max(int(value / largest * len(SHADES)), 0), len(SHADES) - 1)


def _names_over(data: ChartData, left: float, wide: float) -> tuple[float, list[Markup]]:
    longest = max(map(width_of, data.series))
    if not longest:
        return 6.0, []
    is_level = longest + 6 <= wide
    height = 22.0 if is_level else min(longest, SLANTED) * 0.72 + 20
    parts, shown = [], distinct_names(data.series, SLANTED)
    for s, series in enumerate(data.series if is_level else shown):
        x = left + (s + 0.5) * wide
        if is_level:
            parts.append(text_at(x, 15.0, series, text_anchor="middle"))
        else:
            parts.append(slanted_text(x, height - 6, series, -45))
    return height, parts


def _field(
    data: ChartData, k: int, s: int, place: tuple[float, float, float, float], has_room: bool
) -> list[Markup]:
    x, y, wide, high = place
    value = float(data.values[k, s])
    shade = shade_of(value, data.largest)
    hint = tooltip(data.hint(k, s))
    fill = "#fff" if math.isnan(value) else SHADES[shade]
    edge = GRID if math.isnan(value) else "#fff"
    parts = [rectangle(x, y, wide, high, hint, fill=fill, stroke=edge)]
    if has_room:
        ink = "#fff" if shade >= _DARK_FROM else INK
        look = {"text_anchor": "middle", "fill": ink, "pointer_events": "none"}
        x, y, said = x + wide / 2, y + high / 2 + 4, data.format(value)
        parts.append(text_at(x, y, said, **look, font_size=_SMALL_FONT))
    return parts


def _shade_key(data: ChartData, left: float, bottom: float) -> list[Markup]:
    wide = (WIDTH - left) / len(SHADES)
    y = bottom + 10
    parts = [rectangle(left + k * wide, y, wide, 8.0, fill=shade) for k, shade in enumerate(SHADES)]
    least, most = data.format(0.0), data.format(data.largest)
    parts.append(text_at(left, y + 22, least, fill=SOFT, font_size=_SMALL_FONT))
    parts.append(text_at(WIDTH, y + 22, most, fill=SOFT, font_size=_SMALL_FONT, text_anchor="end"))
    return parts


def _draw_pyramid(data: ChartData) -> Markup:
    """The pyramid; the last row is at the top, as ages are drawn."""
    high = 16.0 if len(data.categories) <= 40 else 8.0
    every = 1 if high > 12 else 5
    shown = data.categories[::every]
    middle = min(max(map(width_of, shown)) + 16, WIDTH * 0.34)
    side = (WIDTH - middle) / 2
    ticks = nice_ticks(data.largest, 3)
    scale = (side - 4) / ticks[-1]
    height = _PYRAMID_TOP + high * len(data.categories) + _AXIS_FOOT
    looks, patterns = series_fills(data)
    left, right = distinct_names(data.series, side)
    names = distinct_names(data.categories, middle - 10)
    parts = [
        *patterns,
        text_at(side, 16.0, left, text_anchor="end", font_weight="600"),
        text_at(WIDTH - side, 16.0, right, font_weight="600"),
    ]
    told = _told_ticks(data, ticks, scale)
    for value, is_left in itertools.product(ticks, (True, False)):
        x = side - value * scale if is_left else WIDTH - side + value * scale
        anchor = ("start" if is_left else "end") if value == ticks[-1] else "middle"
        parts.append(straight_line(x, _PYRAMID_TOP - 4, x, height - _AXIS_FOOT))
        if value in told:
            parts.append(text_at(x, height - 8, told[value], text_anchor=anchor, fill=SOFT))
    for k in range(len(data.categories)):
        place = len(data.categories) - 1 - k
        y = _PYRAMID_TOP + k * high
        if place % every == 0:
            parts.append(text_at(WIDTH / 2, y + high / 2 + 4, names[place], text_anchor="middle"))
        for s, value in enumerate(data.values[place].tolist()):
            length, hint = _bar_length(value, scale), tooltip(data.hint(place, s))
            x = side - length if s == 0 else WIDTH - side
            parts.append(rectangle(x, y + 1, length, high - 2, hint, fill=looks[s]))
    return svg_document(data.title, data.description, height, parts)


CHARTS = {
    "bars": ChartKind(_draw_bars, 40, MOST_SERIES, 72),
    "lines": ChartKind(
        _draw_lines, 120, MOST_SERIES, 720, lambda data: len(data.categories) > 1, has_gaps=True
    ),
    "heat": ChartKind(_draw_heat, 60, 24, 1440),
    "pyramid": ChartKind(
        _draw_pyramid,
        110,
        2,
        220,
        lambda data: len(data.series) == 2 and data.n_rows == 1 and len(data.categories) > 1,
    ),
}
"""The charts by name."""
