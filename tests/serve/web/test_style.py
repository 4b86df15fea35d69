"""Colours that carry text meet WCAG AA, and the sheet names no colour that is not there."""

import re
from pathlib import Path

import pytest

import discreet.serve.web
from discreet.serve.web.drawing import contrast, mix, readable, style_of

STATIC = Path(discreet.serve.web.__file__).parent / "static"
STYLE = (STATIC / "style.css").read_text(encoding="utf-8")
COLOURS = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", STYLE))
PAIRS = [
    *(("ink", ground) for ground in ("page", "sheet", "tint", "tint-strong", "warn-tint")),
    *(("soft", ground) for ground in ("page", "sheet", "tint")),
    *(("accent", ground) for ground in ("page", "sheet", "tint")),
    *(("sheet", ground) for ground in ("accent", "accent-dark")),
    ("warn", "sheet"),
]


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


@pytest.mark.parametrize("accent", ["#1f5f99", "#ffee00", "#ffffff", "#e30613", "#000000"])
def test_every_accent_that_an_office_chooses_can_be_read(accent):
    shades = dict(re.findall(r"--([\w-]+):(#[0-9a-f]{6});", style_of(accent)))
    assert shades.keys() <= COLOURS.keys()
    assert contrast(shades["accent"], shades["tint"]) >= 4.5
    assert contrast(shades["accent"], "#ffffff") >= 4.5
    assert contrast(COLOURS["ink"], shades["tint-strong"]) >= 4.5


def test_a_dark_accent_stays_as_it_is():
    assert readable("#1f5f99") == "#1f5f99"
    assert mix("#000000", "#ffffff", 0.5) == "#808080"


def test_nothing_is_fetched_from_elsewhere_and_scripts_are_small():
    script = (STATIC / "builder.js").read_text(encoding="utf-8")
    assert "http" not in STYLE + script
    assert "@import" not in STYLE
    assert len(script) < 30_000
