"""Colours that carry text meet WCAG AA, and the sheet names no colour that is not there."""

import re
from pathlib import Path

import pytest

import discreet.serve

STYLE = (Path(discreet.serve.__file__).parent / "static" / "style.css").read_text()
COLOURS = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", STYLE))
PAIRS = [
    *(("ink", ground) for ground in ("page", "sheet", "tint", "warn-tint")),
    *(("soft", ground) for ground in ("page", "sheet", "tint")),
    *(("accent", ground) for ground in ("page", "sheet", "tint")),
    *(("sheet", ground) for ground in ("accent", "accent-dark")),
    ("warn", "sheet"),
]


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_is_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_can_be_read(text, ground):
    assert contrast(COLOURS[text], COLOURS[ground]) >= 4.5


@pytest.mark.parametrize("ground", ["page", "sheet", "tint"])
def test_focus_can_be_seen(ground):
    assert contrast(COLOURS["focus"], COLOURS[ground]) >= 3


def test_every_colour_that_is_used_is_defined():
    assert set(re.findall(r"var\(--([\w-]+)\)", STYLE)) <= COLOURS.keys()
