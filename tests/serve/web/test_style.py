"""Colours that carry text meet WCAG AA, and the sheet names no colour that is not there."""

import re
from pathlib import Path

import pytest

import discreet.serve.web
from discreet.serve.web import drawing
from discreet.serve.web.drawing import contrast, mix, readable, style_of

STATIC = Path(discreet.serve.web.__file__).parent / "static"
STYLE = (STATIC / "style.css").read_text(encoding="utf-8")
DAY, NIGHT = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part))
    for part in (STYLE.partition("@media")[0], STYLE.partition("@media")[2].partition("/*")[0])
)
PAIRS = [
    *(("ink", ground) for ground in ("page", "sheet", "tint", "tint-strong", "warn-tint")),
    *(("soft", ground) for ground in ("page", "sheet", "tint")),
    *(("accent", ground) for ground in ("page", "sheet", "tint")),
    *(("on-accent", ground) for ground in ("accent", "accent-dark")),
    *((text, ground) for text in ("ink", "soft") for ground in ("sum", "lead")),
    ("sub", "sheet"),
    ("warn", "sheet"),
    ("warn", "warn-tint"),
]
SCHEMES = pytest.mark.parametrize("colours", [DAY, NIGHT], ids=["day", "night"])


def test_the_measure_is_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@SCHEMES
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_can_be_read(colours, text, ground):
    assert contrast(colours[text], colours[ground]) >= 4.5


@SCHEMES
@pytest.mark.parametrize("ground", ["page", "sheet", "tint"])
def test_focus_can_be_seen(colours, ground):
    assert contrast(colours["focus"], colours[ground]) >= 3


def test_every_colour_that_is_used_is_defined_by_day_and_by_night():
    assert set(re.findall(r"var\(--([\w-]+)\)", STYLE)) <= DAY.keys()
    assert DAY.keys() == NIGHT.keys()
    assert NIGHT["sheet"] == drawing.NIGHT
    loose = re.sub(r"--[\w-]+: #\w+;", "", STYLE.partition("@media print")[0])
    assert not re.findall(r"#[0-9a-f]{3,6}\b", loose)


@pytest.mark.parametrize("accent", ["#1f5f99", "#ffee00", "#ffffff", "#e30613", "#000000"])
def test_every_accent_that_an_office_chooses_can_be_read(accent):
    for part, colours in zip(style_of(accent).split("@media"), (DAY, NIGHT), strict=True):
        shades = dict(re.findall(r"--([\w-]+):(#[0-9a-f]{6});", part))
        assert shades.keys() <= colours.keys()
        for ground in (shades["tint"], colours["sheet"], colours["page"], colours["on-accent"]):
            assert contrast(shades["accent"], ground) >= 4.5
        assert contrast(shades["accent-dark"], colours["on-accent"]) >= 4.5
        assert contrast(colours["ink"], shades["tint-strong"]) >= 4.5


def test_a_dark_accent_stays_as_it_is():
    assert readable("#1f5f99") == "#1f5f99"
    assert mix("#000000", "#ffffff", 0.5) == "#808080"


def test_nothing_is_fetched_from_elsewhere_and_scripts_are_small():
    script = (STATIC / "builder.js").read_text(encoding="utf-8")
    assert "http" not in STYLE + script
    assert "@import" not in STYLE
    assert len(script) < 30_000
