"""Charts show the values of their table, and can be read without colours and without eyes."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from discreet.release import CubeAxis, CubeEntry
from discreet.serve import View, texts
from discreet.serve.web import drawing
from discreet.serve.web.charts import CHARTS, SHADES, draw_chart, shade_of
from discreet.serve.web.drawing import chart_data, contrast, distinct_names, width_of
from discreet.serve.web.grid import layout_of
from discreet.tables import CellStatus
from tests.serve.web.cubes import AGE, REGION, SEX, cube_of, hidden_at

SVG = "{http://www.w3.org/2000/svg}"
VALUES = np.array([[100, 60, 40], [60, 40, 20], [40, 30, 10], [20, 10, 10], [40, 20, 20]])


def picture(cube, n_rows=1, n_columns=1, view=None, **changes):
    layout = layout_of(cube, n_rows, n_columns, view or View())
    given = {"title": "Region by sex", "is_share": False, **changes}
    return chart_data(layout, texts("en").numbers, **given)


def chart(name, made):
    found = draw_chart(name, made, texts("en"))
    return (ET.fromstring(str(found.svg)) if found.svg else None), found.note


@pytest.fixture
def regions():
    return picture(cube_of(REGION, SEX, values=VALUES))


def test_sums_of_what_is_shown_are_not_drawn(regions):
    assert regions.categories == ("Upper north", "Lower north", "South")
    assert regions.series == ("Women", "Men")
    assert regions.values.tolist() == [[30, 10], [10, 10], [20, 20]]


def test_a_folded_region_is_drawn_in_place_of_its_parts():
    made = picture(cube_of(REGION, SEX, values=VALUES), view=View(folded={"region": ("N",)}))
    assert made.categories == ("North", "South")


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_has_a_name_and_a_description(regions, name):
    root, note = chart(name, regions)
    assert note == ""
    assert root.get("role") == "img"
    said = {
        root.find(f"{SVG}{tag}").get("id"): root.find(f"{SVG}{tag}").text
        for tag in ("title", "desc")
    }
    assert root.get("aria-labelledby").split() == list(said)
    assert said["chart-title"] == "Region by sex"
    assert "The largest value is 30 (Upper north, Women)" in said["chart-description"]
    assert "the smallest 10" in said["chart-description"]


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_in_a_chart_breaks_the_policy_for_content(regions, name):
    root, _ = chart(name, regions)
    for element in root.iter():
        assert "style" not in element.attrib
        assert not [key for key in element.attrib if key.startswith("on")]
        assert element.tag in {f"{SVG}{tag}" for tag in _ALLOWED}


_ALLOWED = ["svg", "title", "desc", "defs", "pattern", "rect", "path", "line", "text", "circle"]


def marks(root):
    """The drawn elements with a tooltip: what they stand for, and the element."""
    return {
        e.find(f"{SVG}title").text: e
        for e in root.iter()
        if e is not root and e.find(f"{SVG}title") is not None
    }


def test_bars_are_as_long_as_their_values(regions):
    root, _ = chart("bars", regions)
    lengths = {name: float(bar.get("width")) for name, bar in marks(root).items()}
    assert lengths["Upper north: Women: 30"] == pytest.approx(
        3 * lengths["Lower north: Women: 10"], rel=1e-3
    )
    assert lengths["South: Women: 20"] == lengths["South: Men: 20"]


@pytest.mark.parametrize("name", ["bars", "pyramid"])
@pytest.mark.parametrize("power", range(9))
def test_figures_under_an_axis_have_room(name, power):
    root, _ = chart(name, picture(cube_of(REGION, SEX, values=VALUES * 10**power)))
    under = [e for e in root.iter(f"{SVG}text") if set(e.text) <= {*"0123456789,."}]
    assert {under[0].text, under[-1].text} >= {"0"}
    foot = max(float(e.get("y")) for e in under)
    spans = set()
    for e in (e for e in under if float(e.get("y")) == foot):
        wide, x = width_of(e.text), float(e.get("x"))
        start = {"middle": x - wide / 2, "end": x - wide}.get(e.get("text-anchor"), x)
        spans.add((start, start + wide))
    spans = sorted(spans)
    assert len(spans) >= 2
    assert all(end < start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


def test_a_pyramid_has_one_side_for_each_column(regions):
    root, _ = chart("pyramid", regions)
    bars = marks(root)
    left, right = bars["Upper north: Women: 30"], bars["Upper north: Men: 10"]
    assert float(left.get("x")) + float(left.get("width")) < float(right.get("x"))
    assert float(left.get("width")) == pytest.approx(3 * float(right.get("width")), rel=1e-3)


def test_darker_fields_of_a_heat_map_have_larger_values(regions):
    root, _ = chart("heat", regions)
    shade = {name: field.get("fill") for name, field in marks(root).items()}
    assert shade["Upper north: Women: 30"] == SHADES[-1]
    found = [shade_of(value, 30.0) for value in range(31)]
    assert found == sorted(found)
    lightness = [contrast(colour, "#ffffff") for colour in SHADES]
    assert lightness == sorted(lightness)


def test_a_line_has_a_gap_where_nothing_is_shown():
    cube = hidden_at(cube_of(REGION, SEX, values=VALUES), 3, 1)
    root, _ = chart("lines", picture(cube))
    women, men = [p.get("d") for p in root.iter(f"{SVG}path") if p.get("fill") == "none"]
    assert women.count("M") == 2
    assert men.count("M") == 1
    assert "Lower north: Women: 10" not in marks(root)


@pytest.mark.parametrize("status", [CellStatus.suppressed, CellStatus.structural_zero])
@pytest.mark.parametrize("name", CHARTS)
def test_no_chart_tells_a_value_that_the_table_hides(name, status):
    values = VALUES.copy()
    values[3, 1] = 987654
    cube = hidden_at(cube_of(REGION, SEX, values=values), 3, 1, status=status)
    found = draw_chart(name, picture(cube), texts("en"))
    assert "987" not in str(found.svg).replace(",", "")


def test_a_pyramid_says_what_it_needs():
    root, note = chart("pyramid", picture(cube_of(REGION, AGE, SEX), 1, 2))
    assert root is None
    assert note.startswith("A pyramid needs one variable in rows")


def test_a_chart_without_values_is_not_drawn():
    status = np.full((5, 3), CellStatus.suppressed, dtype=np.int8)
    root, note = chart("bars", picture(cube_of(REGION, SEX, status=status)))
    assert root is None
    assert note == "There is no value to draw."


def test_a_chart_says_what_it_leaves_out(regions):
    many = 50
    values = np.tile(regions.values[0], (many, 1))
    made = replace(regions, categories=tuple(map(str, range(many))), values=values)
    _, note = chart("bars", made)
    assert note.startswith("The chart shows the first 36 of 50 rows.")


def test_labels_are_escaped(regions):
    made = replace(regions, categories=("<script>alert(1)</script>", "&", "'\""))
    for name in CHARTS:
        assert "<script>" not in str(draw_chart(name, made, texts("en")).svg)


def test_series_differ_from_paper_and_have_patterns():
    for colour in drawing.OTHER_COLOURS:
        assert contrast(colour, "#ffffff") >= 3
    assert len(set(drawing.DASHES)) == len(set(drawing.MARKERS)) == drawing.MOST_SERIES
    assert len(drawing.series_colours("#1f5f99")) == drawing.MOST_SERIES


def test_long_names_take_two_lines_and_keep_both_ends():
    assert drawing.lines_of("Short", 100) == ["Short"]
    assert drawing.lines_of("Younger than 15 · Female", 130) == ["Younger than 15", "Female"]
    assert drawing.lines_of("Donaudampfschifffahrt", 50) == ["Donau…"]
    for line in drawing.lines_of("One very long name of a place that nobody can read", 100):
        assert drawing.width_of(line) <= 110


LONG = [f"Manufacture of food, beverages and other products of kind {k:03}" for k in range(300)]


@pytest.mark.parametrize("width", [80.0, 110.0, 260.0])
def test_long_names_that_begin_alike_are_told_apart(width):
    shown = distinct_names([*LONG, "Mining", "Manufacture of food"], width)
    assert len({*shown}) == 302
    assert all(width_of(name) <= width * 1.2 for name in shown)
    assert distinct_names(["Mining", "Trade"], width) == ["Mining", "Trade"]


def test_names_that_are_equal_stay_equal():
    assert distinct_names([LONG[0], LONG[0]], 100.0)[0] == distinct_names([LONG[0]], 100.0)[0]


@pytest.mark.parametrize("kind", ["bars", "heat"])
def test_no_two_rows_of_a_chart_have_one_name(kind):
    entries = [CubeEntry("T", "Total", 0, is_sum=True)]
    entries += [CubeEntry(f"{k}", label, 1, is_sum=False) for k, label in enumerate(LONG[:40])]
    cube = cube_of(CubeAxis("kind", "Kind", tuple(entries)))
    drawn, _ = chart(kind, picture(cube, 1, 0))
    texts = [text.text for text in drawn.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
    ends = [text for text in texts if text[-4:-3] == " " and text[-3:].isdigit()]
    assert len(ends) == len({*ends}) == 40
