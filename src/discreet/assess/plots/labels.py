"""Names of points that do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 460, 340
"""Size of a picture in pixels."""
_LINE, _LETTER, _STEP = 13.0, 6.2, 2.0
_FIRST = {"left": 9.0, "right": -7.0}


class Text(NamedTuple):
    """A text at a point; its `side` is the end that touches the point."""

    name: str
    risk: float
    utility: float
    side: str


def apart(texts: Sequence[Text], across: Sequence[float], up: Sequence[float]) -> list[Text]:
    """The texts a little off their points, moved down where they would cover each other.

    Args:
      texts: Texts at their points.
      across: Ends of the horizontal axis.
      up: Ends of the vertical axis.
    """
    pixel = (up[1] - up[0]) / HEIGHT
    placed: list[tuple[float, float, float]] = []
    found = []
    for text in sorted(texts, key=lambda t: -t.utility):
        left, right = _ends(text, across)
        top = (up[1] - text.utility) / pixel + _FIRST[text.side]
        while any(abs(top - y) < _LINE and left < r and right > x for x, r, y in placed):
            top += _STEP
        placed.append((left, right, top))
        found.append(text._replace(utility=up[1] - top * pixel))
    return found


def _ends(text: Text, across: Sequence[float]) -> tuple[float, float]:
    """Where the text begins and ends, in pixels."""
    at = (text.risk - across[0]) / (across[1] - across[0]) * WIDTH
    length = _LETTER * len(text.name)
    return (at, at + length) if text.side == "left" else (at - length, at)
