"""The site's colours: one accent from the site's file, and the shades that follow from it."""

from __future__ import annotations

WHITE = "#ffffff"
LEAST_CONTRAST = 4.5
"""What WCAG 2.2 AA asks of text."""


def style_of(accent: str) -> str:
    """The accent and its shades as a style sheet."""
    strong = readable(accent)
    shades = {
        "accent": strong,
        "accent-dark": mixed(strong, "#000000", 0.3),
        "tint": mixed(strong, WHITE, 0.92),
        "tint-strong": mixed(strong, WHITE, 0.84),
    }
    entries = "".join(f"--{name}:{colour};" for name, colour in shades.items())
    return f":root{{{entries}}}\n"


def readable(colour: str) -> str:
    """The colour, darkened until white text on it, and it on white, can be read."""
    for step in range(21):
        found = mixed(colour, "#000000", step / 20)
        if contrast(found, mixed(found, WHITE, 0.92)) >= LEAST_CONTRAST:
            return found
    return "#000000"


def mixed(colour: str, other: str, share: float) -> str:
    """A colour with a share of another one."""
    pairs = zip(_parts(colour), _parts(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG defines it, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [part / 255 for part in _parts(colour)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _parts(colour: str) -> tuple[int, int, int]:
    digits = colour.removeprefix("#")
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
