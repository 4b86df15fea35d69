"""Small pieces of SVG as text; everything that is put into one is escaped."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

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


def tag(name: str, *inside: str, **attributes: Attribute) -> Markup:
    """An element; `stroke_width` stands for `stroke-width`, `class_` for `class`."""
    given = (
        f' {key.rstrip("_").replace("_", "-")}="{_written(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    opened = f"<{name}{''.join(given)}"
    if not inside:
        return Markup(f"{opened}/>")
    return Markup(f"{opened}>{''.join(escape(part) for part in inside)}</{name}>")


def text(x: float, y: float, said: str, **attributes: Attribute) -> Markup:
    """A line of text; its baseline is at `y`."""
    return tag("text", said, x=x, y=y, **attributes)


def slanted(x: float, y: float, said: str, angle: int, **attributes: Attribute) -> Markup:
    """A line of text that is turned, cut where it would be longer than `SLANTED`."""
    turn = f"rotate({angle} {x:.1f} {y:.1f})"
    return text(x, y, shortened(said, SLANTED), transform=turn, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Attribute) -> Markup:
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


def drawing(title: str, description: str, height: float, parts: Iterable[str]) -> Markup:
    """A whole chart with its name and its description."""
    return tag(
        "svg",
        tag("title", title, id="chart-title"),
        tag("desc", description, id="chart-description"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_written(WIDTH)} {_written(height)}",
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


def shortened(said: str, width: float, size: float = FONT) -> str:
    """A text that is cut where it would be wider."""
    most = max(int(width / (_CHARACTER * size / FONT)), 2)
    return said if len(said) <= most else f"{said[: most - 1].rstrip()}…"


def lines_of(said: str, width: float) -> list[str]:
    """A text in one line, or in two that each have room as far as possible."""
    if width_of(said) <= width or " " not in said:
        return [shortened(said, width)]
    words = said.split(" ")
    ends = [k for k in range(1, len(words)) if width_of(" ".join(words[:k])) <= width] or [1]
    first, second = " ".join(words[: ends[-1]]), " ".join(words[ends[-1] :])
    return [shortened(part, width) for part in (first.removesuffix(" ·"), second) if part]


def name_height(names: Iterable[str], width: float) -> float:
    """The height that names need, each in one line or two."""
    return max(len(lines_of(name, width)) for name in names) * LINE + 4


def label(x: float, middle: float, said: str, width: float) -> Markup:
    """The name of a row, which ends at `x`; in two lines where one has no room."""
    lines = lines_of(said, width)
    top = middle + FONT * 0.35 - (len(lines) - 1) * LINE / 2
    placed = [text(x, top + k * LINE, line, text_anchor="end") for k, line in enumerate(lines)]
    return Markup("").join(placed)


def _written(value: Attribute) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(escape(str(value)))
