"""What charts are drawn from: a table's figures, colours, and elements of SVG."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from markupsafe import Markup, escape

from discreet.arrays import Real
from discreet.release.cube import CubeAxis
from discreet.release.formats.columns import decimals_of
from discreet.release.layout import Combination, TableLayout
from discreet.serve.web.grid import leaves
from discreet.serve.web.texts import Numbers
from discreet.tables.protected import CellStatus

JOINED = " · "
WHITE = "#ffffff"
NIGHT = "#182027"
"""The ground of tables where the system is dark; `--sheet` of the style sheet."""
LEAST_CONTRAST = 4.5
"""What WCAG 2.2 AA asks of text."""
WIDTH = 420.0
"""The width of every chart in its own units; pages scale it."""
FONT = 13.0
LINE = 14.0
"""From one line of a name to the next."""
SLANTED = 110.0
"""The longest slanted name."""
_CHARACTER = 7.3  # mean width of a character at that size
_WIDE = "%mwMW"
INK, SOFT, GRID = "#1a242d", "#51606d", "#dfe5e9"
Attribute = str | float | None
OTHER_COLOURS = ("#c65d00", "#3b9a8f", "#6a2c7d", "#8f7a00", "#5c5c5c")
"""Colours after the accent; each has a contrast of 3 or more with white."""
DASHES = ("", "7 4", "2 3", "10 3 2 3", "5 2", "1 4")
MARKERS = ("circle", "square", "diamond", "triangle", "ring", "cross")
MOST_SERIES = 6
_TILES = (
    "",
    "M0 8 8 0M-2 2 2 -2M6 10 10 6",
    "M2 2h2v2h-2zM6 6h2v2h-2z",
    "M0 2h8M0 6h8",
    "M2 0v8M6 0v8",
    "M0 0 8 8M0 8 8 0",
)
"""White strokes over each colour; the first series is plain."""


@dataclass(frozen=True, eq=False)
class ChartData:
    """What is drawn.

    Attributes:
      categories: The rows of the table without sums of others.
      series: The columns without sums of others; one without a name where there are none.
      values: Categories × series, not a number where no value is shown.
      title: What the chart shows.
      description: What it says, for those who do not see it.
      numbers: How numbers are written.
      decimals: With how many decimals.
      is_share: Whether values are percentages.
      accent: The colour of the first series.
      n_rows: Variables in rows.
    """

    categories: tuple[str, ...]
    series: tuple[str, ...]
    values: Real
    title: str
    numbers: Numbers
    decimals: int
    description: str = ""
    is_share: bool = False
    accent: str = "#0b5563"
    n_rows: int = 1

    @cached_property  # a heat map asks for every field: 4 of 24 ms with 1,200 fields
    def largest(self) -> float:
        """The largest value that is shown; zero where there is none."""
        finite = self.values[np.isfinite(self.values)]
        return float(finite.max(initial=0.0))

    def cell_name(self, k: int, s: int, *, between: str = ": ") -> str:
        """A category and a series, where it has a name."""
        return between.join(part for part in (self.categories[k], self.series[s]) if part)

    def hint(self, k: int, s: int) -> str:
        """What a pointer shows over a value."""
        return f"{self.cell_name(k, s)}: {self.format(float(self.values[k, s]))}"

    def format(self, value: float) -> str:
        """A value for readers."""
        if np.isnan(value):
            return "–"
        if self.is_share:
            return self.numbers.in_percent(value, self.decimals)
        return self.numbers.format(value, self.decimals)

    def tick(self, value: float, step: float) -> str:
        """A value on an axis."""
        return replace(self, decimals=0 if step >= 1 else 1 if step >= 0.1 else 2).format(value)

    def with_figures(self, has_gaps: bool) -> ChartData:
        """Categories and series that show some value: structural zeros take no place.

        Args:
          has_gaps: Whether categories without values stay between others.
        """
        shown = np.isfinite(self.values)
        if shown.all():
            return self
        rows, columns = np.flatnonzero(shown.any(1)), np.flatnonzero(shown.any(0))
        if has_gaps and len(rows):
            rows = np.arange(rows[0], rows[-1] + 1)
        return replace(
            self,
            categories=tuple(self.categories[k] for k in rows),
            series=tuple(self.series[s] for s in columns),
            values=self.values[np.ix_(rows, columns)],
        )

    def limit(self, most_categories: int, most_series: int) -> ChartData:
        """The data without categories and series beyond so many."""
        return replace(
            self,
            categories=self.categories[:most_categories],
            series=self.series[:most_series],
            values=self.values[:most_categories, :most_series],
        )


def chart_data(layout: TableLayout, numbers: Numbers, *, title: str, is_share: bool) -> ChartData:
    """What a chart shows of a table: what sums up others that are shown is left out."""
    rows = _finest(layout.rows, layout.row_axes)
    columns = _finest(layout.columns, layout.column_axes)
    is_drawn = layout.is_shown & (layout.status != CellStatus.structural_zero)
    shown = np.where(is_drawn, layout.values.astype(np.float64), np.nan)
    decimals = 1 if is_share else decimals_of(shown)
    return ChartData(
        tuple(_joined_label(layout.rows[k]) for k in rows),
        tuple(_joined_label(layout.columns[k]) for k in columns),
        shown[np.ix_(rows, columns)],
        title,
        numbers,
        decimals,
        is_share=is_share,
        n_rows=len(layout.row_axes),
    )


def _finest(rows: Sequence[Combination], axes: Sequence[CubeAxis]) -> list[int]:
    """The rows that sum up no other one."""
    kept = [set(itertools.compress(axis.codes, leaves(axis.entries))) for axis in axes]
    return [
        place
        for place, entries in enumerate(rows)
        if all(e.code in codes for e, codes in zip(entries, kept, strict=True))
    ]


def _joined_label(entries: Combination) -> str:
    return JOINED.join(entry.label for entry in entries)


def style_of(accent: str) -> str:
    """The accent and its shades as a style sheet, by day and by night."""
    light, dark = _shades(readable(accent), WHITE), _shades(readable(accent, NIGHT), NIGHT)
    return f":root{{{light}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"


def _shades(strong: str, ground: str) -> str:
    """The accent, a stronger one, and two tints of the ground."""
    shades = {
        "accent": strong,
        "accent-dark": mix(strong, _opposite(ground), 0.3),
        "tint": mix(strong, ground, 0.92),
        "tint-strong": mix(strong, ground, 0.84),
    }
    return "".join(f"--{name}:{colour};" for name, colour in shades.items())


def _opposite(ground: str) -> str:
    return "#000000" if ground == WHITE else WHITE


def readable(colour: str, ground: str = WHITE) -> str:
    """The colour, moved away from the ground until it can be read there, and the ground on it."""
    for step in range(21):
        found = mix(colour, _opposite(ground), step / 20)
        if contrast(found, mix(found, ground, 0.92)) >= LEAST_CONTRAST:
            return found
    return _opposite(ground)


def mix(colour: str, other: str, share: float) -> str:
    """A colour with a share of another one."""
    pairs = zip(_red_green_blue(colour), _red_green_blue(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG defines it, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in _red_green_blue(colour)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _red_green_blue(colour: str) -> tuple[int, int, int]:
    digits = colour.removeprefix("#")
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


# Charts are the one markup that no template makes: every attribute of theirs is computed.
def tag(name: str, *inside: str, **attributes: Attribute) -> Markup:
    """An element; `stroke_width` stands for `stroke-width`, `class_` for `class`."""
    given = (
        f' {key.rstrip("_").replace("_", "-")}="{_attribute_text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    opened = f"<{name}{''.join(given)}"
    if not inside:
        return Markup(f"{opened}/>")
    return Markup(f"{opened}>{''.join(escape(part) for part in inside)}</{name}>")


def text_at(x: float, y: float, said: str, **attributes: Attribute) -> Markup:
    """A line of text; its baseline is at `y`."""
    return tag("text", said, x=x, y=y, **attributes)


def slanted_text(x: float, y: float, said: str, angle: int, **attributes: Attribute) -> Markup:
    """A line of text that is turned, cut where it would be longer than `SLANTED`."""
    turn = f"rotate({angle} {x:.1f} {y:.1f})"
    return text_at(x, y, shorten(said, SLANTED), transform=turn, **attributes)


def straight_line(x1: float, y1: float, x2: float, y2: float, **attributes: Attribute) -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **{"stroke": GRID, **attributes})


def rectangle(
    x: float, y: float, width: float, height: float, *inside: str, **attributes: Attribute
) -> Markup:
    """A rectangle; what is inside is its tooltip."""
    return tag("rect", *inside, x=x, y=y, width=width, height=height, **attributes)


def tooltip(said: str) -> Markup:
    """What a pointer shows over an element."""
    return tag("title", said)


def svg_document(title: str, description: str, height: float, parts: Iterable[str]) -> Markup:
    """A whole chart with its name and its description."""
    return tag(
        "svg",
        tag("title", title, id="chart-title"),
        tag("desc", description, id="chart-description"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_attribute_text(WIDTH)} {_attribute_text(height)}",
        role="img",
        aria_labelledby="chart-title chart-description",
        font_family="system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
        font_size=FONT,
        fill=INK,
    )


def width_of(said: str, size: float = FONT) -> float:
    """About how wide a text is."""
    wide = sum(character in _WIDE for character in said)
    return (len(said) + 0.6 * wide) * _CHARACTER * size / FONT


def shorten(said: str, width: float, size: float = FONT) -> str:
    """A text that is cut where it would be wider."""
    return _window(said, 0, max(int(width / (_CHARACTER * size / FONT)), 2))


def distinct_names(names: Sequence[str], width: float) -> list[str]:
    """Names that have room, each cut where it differs from those that begin alike."""
    most = max(int(width / _CHARACTER), 4)
    return _tell_apart(list(names), most, 0)


def _tell_apart(names: list[str], most: int, start: int) -> list[str]:
    """The names from a place on; where several then read alike, from the place where they part."""
    shown = [_window(name, start, most) for name in names]
    groups: dict[str, list[int]] = {}
    for k, text in enumerate(shown):
        groups.setdefault(text, []).append(k)
    for places in groups.values():
        alike = [names[k] for k in places]
        parting = len(os.path.commonprefix(alike))
        if len({*alike}) < 2 or parting <= start:
            continue
        word = alike[0].rfind(" ", 0, parting) + 1  # a name is cut between words if it can be
        begin = word if parting - word < most // 2 else parting - most // 2
        room = max(map(len, alike)) - most + 1  # from here on they are shown to their ends
        begin = min(begin, alike[0].find(" ", max(room, start)) + 1 or begin)
        for k, text in zip(places, _tell_apart(alike, most, max(begin, start + 1)), strict=True):
            shown[k] = text
    return shown


def _window(name: str, start: int, most: int) -> str:
    text = f"…{name[start:]}" if start else name
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def lines_of(said: str, width: float) -> list[str]:
    """A text in one line, or in two that each have room as far as possible."""
    if width_of(said) <= width or " " not in said:
        return [shorten(said, width)]
    words = said.split(" ")
    ends = [k for k in range(1, len(words)) if width_of(" ".join(words[:k])) <= width] or [1]
    first, second = " ".join(words[: ends[-1]]), " ".join(words[ends[-1] :])
    return [shorten(part, width) for part in (first.removesuffix(" ·"), second) if part]


def name_height(names: Iterable[str], width: float) -> float:
    """The height that names need, each in one line or two."""
    return max(len(lines_of(name, width)) for name in names) * LINE + 4


def row_label(x: float, middle: float, said: str, width: float) -> Markup:
    """The name of a row, which ends at `x`; in two lines where one has no room."""
    lines = lines_of(said, width)
    top = middle + FONT * 0.35 - (len(lines) - 1) * LINE / 2
    placed = [text_at(x, top + k * LINE, line, text_anchor="end") for k, line in enumerate(lines)]
    return Markup("").join(placed)


def _attribute_text(value: Attribute) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(escape(str(value)))


def series_colours(accent: str) -> tuple[str, ...]:
    """The colours of the series, the accent first."""
    return (accent, *OTHER_COLOURS)


def series_fills(data: ChartData) -> tuple[list[str], list[Markup]]:
    """For each series its fill, and the patterns these need."""
    shades = series_colours(data.accent)[: len(data.series)]
    named = [shade if k == 0 else f"url(#pattern-{k})" for k, shade in enumerate(shades)]
    patterns = [_stroke_pattern(k, shade) for k, shade in enumerate(shades) if k > 0]
    return named, [tag("defs", *patterns)] if patterns else []


def series_legend(data: ChartData, looks: list[str]) -> tuple[list[Markup], float]:
    """Names of the series in lines, each behind its fill; and how high they stand."""
    parts: list[Markup] = []
    x = top = 0.0
    for shown, look in zip(distinct_names(data.series, WIDTH - 30), looks, strict=True):
        if x > 0 and x + 20 + width_of(shown) > WIDTH:
            x, top = 0.0, top + 20
        parts.append(rectangle(x, top + 2, 13.0, 13.0, fill=look))
        parts.append(text_at(x + 19, top + FONT, shown))
        x += 19 + width_of(shown) + 18
    return parts, top + 28


def _stroke_pattern(k: int, colour: str) -> Markup:
    return tag(
        "pattern",
        rectangle(0.0, 0.0, 8.0, 8.0, fill=colour),
        tag("path", d=_TILES[k], stroke="#fff", stroke_width=1.3, stroke_opacity=0.6, fill="none"),
        id=f"pattern-{k}",
        width=8.0,
        height=8.0,
        patternUnits="userSpaceOnUse",
    )
