"""Charts that the browser draws are the server's, sign by sign."""

import shutil
from dataclasses import replace

import pytest

from discreet.serve import texts
from discreet.serve.static.rules import text_rules
from discreet.serve.web.charts import CHARTS, draw_chart
from discreet.serve.web.drawing import chart_data, readable
from discreet.serve.web.grid import layout_of
from tests.serve.kernel.node import CLIENT, run_node
from tests.serve.kernel.random_cubes import REVIVED, RandomCubes, told

DRAWN = f"""
{REVIVED}
const {{ layout_of }} = await client("grid.js");
const {{ chart_data, readable }} = await client("drawing.js");
const {{ draw_chart }} = await client("charts.js");
const {{ Texts }} = await client("texts.js");
const languages = Object.fromEntries(data.texts.map((one) => [one.code, new Texts(one)]));
return data.asked.map((one) => {{
  const maps = {{ layer: new Map(), folded: new Map(Object.entries(one.view.folded)) }};
  const texts = languages[one.language];
  const view = {{ ...one.view, ...maps }};
  const layout = layout_of(revived(one.cube), one.n_rows, one.n_columns, view);
  const made = chart_data(layout, texts.numbers, {{ title: one.title, is_share: one.is_share }});
  const drawn = draw_chart(one.chart, made.changed({{ accent: readable(one.accent) }}), texts);
  return [String(drawn.svg), drawn.note];
}});
"""


def questions(n, seed, most=9):
    """Charts of random tables, as both sides are asked for them."""
    random = RandomCubes(seed)
    for _ in range(n):
        n_rows, n_columns = random.one_of((1, 1), (1, 0), (2, 1), (0, 1), (1, 2))
        cube = random.cube(n_rows + n_columns, most)
        yield {
            "cube": cube,
            "view": random.view(cube, n_rows),
            "n_rows": n_rows,
            "n_columns": n_columns,
            "chart": random.one_of(*CHARTS),
            "language": random.one_of("en", "nb"),
            "title": random.name(),
            "is_share": bool(random.draws.random() < 0.3),
            "accent": f"#{random.draws.integers(2**24):06x}",
        }


def drawn_here(asked):
    layout = layout_of(asked["cube"], asked["n_rows"], asked["n_columns"], asked["view"])
    said = texts(asked["language"])
    made = chart_data(layout, said.numbers, title=asked["title"], is_share=asked["is_share"])
    found = draw_chart(asked["chart"], replace(made, accent=readable(asked["accent"])), said)
    return [str(found.svg), found.note]


def drawn_there(asked, folder=CLIENT):
    plain = [
        {**one, "cube": told(one["cube"]), "view": vars(one["view"]) | {"layer": {}}}
        for one in asked
    ]
    languages = [text_rules(texts(code)) for code in ("en", "nb")]
    return run_node(DRAWN, {"texts": languages, "asked": plain}, folder=folder)


@pytest.mark.parametrize(("n", "most"), [(250, 6), (40, 70)])
def test_charts_are_those_of_the_server(n, most):
    asked = list(questions(n, seed=most, most=most))
    here, there = [drawn_here(one) for one in asked], drawn_there(asked)
    assert sum(bool(svg) for svg, _ in here) > n / 2
    wrong = [(h, t) for h, t in zip(here, there, strict=True) if h != t]
    assert wrong[:1] == []


def test_a_wrong_line_is_found(tmp_path):
    shutil.copytree(CLIENT, tmp_path, dirs_exist_ok=True)
    module = tmp_path / "charts.js"
    text = module.read_text(encoding="utf-8")
    assert "lowest + 15" in text
    module.write_text(text.replace("lowest + 15", "lowest + 14"), encoding="utf-8")
    asked = [one for one in questions(60, seed=1) if one["chart"] == "lines"]
    assert drawn_there(asked, tmp_path) != [drawn_here(one) for one in asked]
