"""Templates in JavaScript draw what Jinja draws."""

import json
import subprocess
from importlib.resources import files

import pytest
from jinja2 import DictLoader, Environment, StrictUndefined

from discreet.errors import DataError
from discreet.serve.static.compiler import compile_templates
from tests.serve.static.asking import NODE

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

BASE = """<title>{% block title %}{% endblock %}Site</title>
<main class="{% block shape %}reading{% endblock %}">
  {% block main %}{% endblock %}
</main>
"""
MACROS = """{% set signs = {"up": "^", "down": "v"} %}
{% macro sign(name, label="", is_on=false) -%}
<b{% if is_on %} class="on"{% endif %}>{{ signs[name] }}{{ label }}</b>
{%- endmacro %}
{% macro named(entry) %}{{ entry[1] | upper }} & {{ entry[0] }}{% endmacro %}
"""
PAGE = """{% extends "base.html" %}
{% from "macros.html" import sign, named %}
{% block title %}{{ title }} · {% endblock %}
{% block main %}
{% set first, last = names[0], names[-1] %}
{{ sign("up", label="<" ~ first ~ ">", is_on=n > 1) }}
{{ sign("down", last) }}{{ named(["x<", "y"]) }}
{% for name in names if name != "b" %}
  {{ loop.index }}/{{ loop.length }} {{ name }}{{ "" if loop.last else ", " }}
{% else %}
  none
{% endfor %}
{% for a, b in pairs.items() %}{{ a }}={{ b | join(", ") }};{% endfor %}
{% for x in nothing %}{{ x }}{% else %}empty{% endfor %}
{% if "a" in names and not nothing %}in{% elif n %}n{% else %}out{% endif %}
{% if answer is defined and answer %}answer{% endif %}
{% include "part.html" %}
{{ pairs.get("zz", "usual") }} {{ [n, 8] | min }} {{ [n - 1, 0] | max }} {{ "ab" * 2 }}
{{ "{} of {all}".format(n, all=7) }} {{ yes }} {{ none_ }}
{{ {true: "yes", false: "no"}[yes] if yes is boolean else 1 }}
{{ names | join("</td><td>" | safe) }} {{ {"q": "å b&c", "t": ""} | urlencode }}
{{ (["z"] + names) | length }} {{ rows | rejectattr(0, "equalto", "k") | list | length }}
{{ title[:1] | upper }}{{ title[1:] }} {{ ".a.b" | replace(".", "-") }} {{ "wide" if n > 5 }}|
{% endblock %}
"""
PART = '{% set inner = n + 1 %}<p lang="{{ title }}">{{ inner }} {{ first }}</p>\n'
GIVEN = {
    "title": 'a "quoted" <title>',
    "names": ["å", "b", "<c>"],
    "n": 3,
    "pairs": {"k": ["1", "2"], "10": ["x"], "2": []},
    "nothing": [],
    "rows": [["k", "1"], ["m", "2"]],
    "yes": True,
    "none_": None,
}


def environment(**sources):
    """Jinja as the pages use it."""
    return Environment(
        loader=DictLoader({f"{name}.html": text for name, text in sources.items()}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def drawn_by_node(folder, jinja, names, file, given):
    client = files("discreet.serve") / "client"
    for name in ("runtime.js", "python.js", "strings.js"):
        (folder / name).write_bytes((client / name).read_bytes())
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "templates.js").write_text(compile_templates(jinja, names), encoding="utf-8")
    told = {k: {"map": list(v.items())} if isinstance(v, dict) else v for k, v in given.items()}
    command = [NODE, "tests/serve/static/render.mjs", str(folder), file]
    done = subprocess.run(command, input=json.dumps(told), capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_construct_of_our_templates_is_drawn_alike(tmp_path):
    sources = {"base": BASE, "macros": MACROS, "page": PAGE, "part": PART}
    jinja = environment(**sources)
    here = drawn_by_node(tmp_path, jinja, sources, "page.html", GIVEN)
    assert here == jinja.get_template("page.html").render(GIVEN)


def test_a_name_that_is_not_defined_is_a_fault_and_no_empty_text(tmp_path):
    jinja = environment(page="{{ nobody }}")
    with pytest.raises(AssertionError, match="nobody is not defined"):
        drawn_by_node(tmp_path, jinja, ["page"], "page.html", {})


@pytest.mark.parametrize(
    ("text", "kind"),
    [("{{ 2 ** 3 }}", "Pow"), ("{% do 1 %}", "ExprStmt"), ("{{ 1 < 2 < 3 }}", "Compare")],
)
def test_what_cannot_be_written_is_refused_with_its_place(text, kind):
    jinja = environment(page=f"a\n{text}")
    jinja.add_extension("jinja2.ext.do")
    with pytest.raises(DataError, match=rf"page.html, line 2: .* {kind}"):
        compile_templates(jinja, ["page"])
