"""Colours of series, told apart by lightness and pattern as well as by hue."""

from __future__ import annotations

from markupsafe import Markup

from discreet.serve.web.charts.picture import Picture
from discreet.serve.web.charts.svg import FONT, WIDTH, rectangle, shortened, tag, text, width_of

OTHERS = ("#c65d00", "#3b9a8f", "#6a2c7d", "#8f7a00", "#5c5c5c")
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


def colours(accent: str) -> tuple[str, ...]:
    """The colours of the series, the accent first."""
    return (accent, *OTHERS)


def fills(picture: Picture) -> tuple[list[str], list[Markup]]:
    """For each series its fill, and the patterns these need."""
    shades = colours(picture.accent)[: len(picture.series)]
    named = [shade if k == 0 else f"url(#pattern-{k})" for k, shade in enumerate(shades)]
    patterns = [_pattern(k, shade) for k, shade in enumerate(shades) if k > 0]
    return named, [tag("defs", *patterns)] if patterns else []


def legend(picture: Picture, looks: list[str], y: float = 0.0) -> tuple[list[Markup], float]:
    """Names of the series in lines, each behind its fill; and how high they stand."""
    parts: list[Markup] = []
    x, top = 0.0, y
    for name, look in zip(picture.series, looks, strict=True):
        shown = shortened(name, WIDTH - 30)
        if x > 0 and x + 20 + width_of(shown) > WIDTH:
            x, top = 0.0, top + 20
        parts.append(rectangle(x, top + 2, 13.0, 13.0, fill=look))
        parts.append(text(x + 19, top + FONT, shown))
        x += 19 + width_of(shown) + 18
    return parts, top + 28 - y


def _pattern(k: int, colour: str) -> Markup:
    return tag(
        "pattern",
        rectangle(0.0, 0.0, 8.0, 8.0, fill=colour),
        tag("path", d=_TILES[k], stroke="#fff", stroke_width=1.3, stroke_opacity=0.6, fill="none"),
        id=f"pattern-{k}",
        width=8.0,
        height=8.0,
        patternUnits="userSpaceOnUse",
    )
