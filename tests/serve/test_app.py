"""Every route: what it answers, what it refuses, and what it never says."""

import csv
import io
import itertools
import json
import logging
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from discreet import __version__
from discreet.design.hierarchy import Hierarchy
from discreet.errors import DataError, EngineError
from discreet.recipe import Choice
from discreet.serve.app import make_app
from discreet.serve.guard import HEADERS, LONGEST_QUERY
from discreet.serve.layout import HIDDEN, laid_out
from discreet.serve.request import TableRequest
from discreet.serve.settings import Settings
from discreet.serve.source import RecipeSource
from tests.serve.client import Client
from tests.serve.records import RECIPE, Records, small_country

QUERY = "rows=region&rows=sex&columns=age"
PAGES = ["/", f"/table?{QUERY}", "/table?rows=sex", "/nowhere", "/table", "/table?rows=x"]
PAPERS = [f"/table.json?{QUERY}", f"/table.csv?{QUERY}", "/limits.json", "/health"]
REFUSED = ["/table.json", "/table.csv?rows=x", "/nowhere.json"]


class Page(HTMLParser):
    """The parts of a page that tests look at."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.cells, self._open, self.words = [], [], None, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, data):
        self.words.append(data)
        if self._open == "td":
            self.cells[-1] += data.strip()

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


# What the pages say


def test_the_front_page_offers_every_variable_at_every_level(client, source):
    page = Page(client.get("/").text)
    assert len(page.all("select")) == 3
    values = {o["value"] for o in page.all("option")}
    assert values == {"", *(d.name for v in source.variables for d in v.details)}
    labels = {label["for"] for label in page.all("label")}
    assert labels == {select["id"] for select in page.all("select")}
    assert source.statement.plain in client.get("/").text
    assert source.statement.text not in client.get("/").text


def test_what_the_front_page_suggests_can_be_shown(client):
    chosen = [o["value"] for o in Page(client.get("/").text).all("option") if "selected" in o]
    assert chosen == ["region[part]", "sex"]
    assert client.get("/table", params={"rows": chosen}).status_code == 200


def test_the_table_page_shows_the_release_and_nothing_else(client, source):
    request = TableRequest.checked(source, Settings(), ["region", "sex"], ["age"])
    release = source.release(request.margins)
    response = client.get(f"/table?{QUERY}")
    assert response.status_code == 200
    page = Page(response.text)
    grid = laid_out(release, request)
    assert page.cells == [text for group in grid.groups for row in group for text in row.cells]
    for step in release.statement.steps:
        for parameter in step.parameters:
            assert f"<dt>{parameter}</dt>" in response.text


def test_visitors_read_plain_words_first_and_methodologists_everything_below(client, source):
    statement, text = source.statement, client.get(f"/table?{QUERY}").text
    assert statement.plain.startswith("Each figure was changed by a small random amount.")
    heading = text.index("For methodologists")
    assert text.index(statement.plain) < heading
    for sentence in statement.sentences:
        assert text.index(sentence.text, heading) > heading
    for word in ("key", "noise", "variance", "perturb"):
        assert word not in statement.plain


def test_the_table_page_can_be_read_by_everybody(client):
    page = Page(client.get(f"/table?{QUERY}").text)
    assert all(th.get("scope") in ("row", "col", "rowgroup", "colgroup") for th in page.all("th"))
    assert len(page.all("caption")) == 1
    assert page.all("html")[0]["lang"] == "en"
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    inside = {a["href"][1:] for a in page.all("a") if a["href"].startswith("#")}
    assert inside <= set(ids)
    assert "main" in inside
    region = next(attrs for _, attrs in page.tags if attrs.get("role") == "region")
    assert region["tabindex"] == "0"
    assert region["aria-labelledby"] in ids


def test_csv_and_json_hold_the_cells_of_the_release(client, source):
    request = TableRequest.checked(source, Settings(), ["region", "sex"], ["age"])
    release = source.release(request.margins).to_arrow()
    found = client.get(f"/table.json?{QUERY}").json()
    assert found["columns"] == release.column_names == ["region", "age", "sex", "count"]
    assert found["cells"] == [list(row.values()) for row in release.to_pylist()]
    response = client.get(f"/table.csv?{QUERY}")
    header, *rows = csv.reader(io.StringIO(response.text))
    assert header == found["columns"]
    assert [[*row[:-1], int(row[-1])] for row in rows] == found["cells"]
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="region-age-sex.csv"' in response.headers["content-disposition"]


def test_the_json_twin_explains_the_table(client, source):
    found = client.get("/table.json?rows=region[part]&columns=sex").json()
    assert found["title"] == "Region (part) by sex"
    assert found["statement"]["text"] == source.statement.text
    assert found["statement"]["version"] == __version__
    assert found["statement"]["plain"] == source.statement.plain
    assert found["unit"] == "count"
    data, protect = found["statement"]["steps"]
    assert (data["name"], data["parameters"]["edition"]) == ("data", "1")
    assert protect["parameters"]["D"] == 5
    region = found["variables"][0]
    assert (region["name"], region["detail"]) == ("region", "region[part]")
    assert region["codes"][1] == {"code": "N", "label": "North", "depth": 1}
    for link in found["links"].values():
        assert client.get(f"/{link}").status_code == 200


def test_limits_and_health(client):
    limits = client.get("/limits.json").json()
    assert (limits["max_variables"], limits["max_cells"]) == (3, 10_000)
    assert limits["variables"][0]["details"][0] == {"name": "region", "cells": 12}
    assert client.get("/health").json() == {"status": "ok", "version": __version__}


def test_the_schema_names_the_routes_and_no_page_loads_it_from_elsewhere(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/table", "/table.csv", "/table.json", "/limits.json", "/health"} <= paths.keys()
    for path in ("/docs", "/redoc"):
        assert client.get(path).status_code == 404


def test_cells_below_the_threshold_are_empty_in_json_and_csv_and_a_symbol_on_the_page(records):
    hiding = Choice("cell-key", {"D": 5, "V": 3, "js": 2, "threshold": 25})
    client = Client(make_app(RecipeSource(replace(RECIPE, method=hiding), records)))
    response = client.get(f"/table.json?{QUERY}")
    assert response.status_code == 200
    found = response.json()
    assert found["columns"] == ["region", "age", "sex", "count", "status"]
    by_status = {}
    for *_, count, status in found["cells"]:
        by_status.setdefault(status, set()).add(count)
    assert by_status.keys() == {"published", "below_threshold"}
    assert by_status["below_threshold"] == {None}
    assert min(by_status["published"]) >= 25
    _, *rows = csv.reader(io.StringIO(client.get(f"/table.csv?{QUERY}").text))
    assert {count for *_, count, status in rows if status == "below threshold"} == {""}
    page = client.get(f"/table?{QUERY}").text
    assert HIDDEN in Page(page).cells
    assert "Figures below 25 are not shown." in page


# What holds for every answer


@pytest.mark.parametrize("path", [*PAGES, *PAPERS, *REFUSED, "/static/style.css", "/openapi.json"])
def test_every_answer_has_the_security_headers(client, path):
    response = client.get(path)
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", PAGES)
def test_pages_load_nothing_from_elsewhere_and_nothing_inline(client, path):
    page = Page(client.get(path).text)
    loaded = [a.get("src") or a.get("href") for t, a in page.tags if t in ("link", "script", "img")]
    assert loaded
    for url in loaded:
        assert url.startswith("/static/")
        assert client.get(url).status_code == 200
    for tag, attrs in page.tags:
        assert "style" not in attrs
        assert not any(name.startswith("on") for name in attrs)
        assert tag != "style"
        if tag == "a":
            assert attrs["href"].startswith(("/", "#"))


def test_the_same_question_has_the_same_answer_to_the_byte(records):
    paths = [f"/table{twin}?{QUERY}" for twin in ("", ".csv", ".json")]
    one, other = (Client(make_app(RecipeSource(RECIPE, records))) for _ in range(2))
    for path in paths:
        assert one.get(path).content == one.get(path).content == other.get(path).content


def test_the_order_of_variables_does_not_change_a_value(client):
    names = ["region", "age", "sex"]
    answers = set()
    for order in itertools.permutations(names):
        for split in range(4):
            query = {"rows": order[:split], "columns": order[split:]}
            answers.add(client.get("/table.csv", params=query).content)
    assert len(answers) == 1


def test_the_same_cell_is_the_same_in_every_table(client):
    def by_cell(query):
        found = client.get(f"/table.json?{query}").json()
        totals = {"ALL", "Total", "T"}
        for *codes, count in found["cells"]:
            yield frozenset(c for c in codes if c not in totals), count

    large = dict(by_cell(QUERY))
    for query in ("rows=region", "rows=sex&columns=age", "rows=region[county]&columns=sex"):
        for cell, count in by_cell(query):
            assert large[cell] == count


def test_links_respect_the_path_the_site_is_mounted_at(source):
    client = Client(make_app(source), root_path="/tables")
    page = Page(client.get("/tables/table?rows=sex").text)
    targets = [a["href"] for a in page.all("a")] + [page.all("form")[0]["action"]]
    assert all(target.startswith(("/tables/", "#")) for target in targets)


# What is refused


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/table.json", 400, "no_variables"),
        ("/table.json?rows=&columns=", 400, "no_variables"),
        ("/table.json?rows=regoin", 400, "unknown_name"),
        ("/table.csv?rows=sex&columns=sex", 400, "repeated_variable"),
        ("/table.json?rows=sex&weight=1", 400, "unknown_parameter"),
        ("/nowhere.json", 404, "not_found"),
        (f"/table.json?rows={'x' * LONGEST_QUERY}", 414, "too_long"),
    ],
)
def test_errors_have_one_shape(client, path, status, code):
    response = client.get(path)
    assert response.status_code == status
    assert response.json().keys() == {"error"}
    error = response.json()["error"]
    assert error.keys() == {"code", "message", "what_is_allowed"}
    assert error["code"] == code
    assert all(error.values())


def test_limits_are_the_hosts_choice(source):
    client = Client(make_app(source, Settings(max_variables=2, max_cells=20)))
    many = client.get(f"/table.json?{QUERY}").json()["error"]
    assert (many["code"], many["what_is_allowed"]) == (
        "too_many_variables",
        "Between 1 and 2 variables in one table.",
    )
    large = client.get("/table.json?rows=region&columns=age").json()["error"]
    assert large["code"] == "too_many_cells"
    assert "At most 20 cells" in large["what_is_allowed"]
    assert len(Page(client.get("/").text).all("select")) == 2


def test_one_variable_at_most_leaves_one_choice(source):
    client = Client(make_app(source, Settings(max_variables=1)))
    page = Page(client.get("/").text)
    assert [select["name"] for select in page.all("select")] == ["rows"]


def test_a_refused_page_says_what_is_allowed(client):
    response = client.get("/table?rows=regoin")
    assert response.status_code == 400
    assert response.headers["content-type"].startswith("text/html")
    assert "Did you mean &#39;region&#39;?" in response.text
    assert "region[county]" in response.text


def test_pages_can_only_be_read(client):
    response = client.request("POST", "/table.json")
    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/"])
def test_only_assets_are_served_as_files(client, path):
    assert client.get(path).status_code in (404, 405)


def test_an_address_is_written_one_way(client):
    response = client.get("/table/?rows=sex", headers={"host": "elsewhere.example"})
    assert response.status_code == 404
    assert "location" not in response.headers


# Hostile input

NASTY = "<script>alert(1)</script>\"'{{7*7}}"


@pytest.mark.parametrize(
    "name", [NASTY, "'; drop table people; --", "\x00", "‮abc", "%00", "a" * 900]
)
def test_nothing_a_visitor_sends_becomes_markup(client, name):
    for path in ("/table", "/table.json", "/table.csv"):
        response = client.get(path, params={"rows": name})
        assert response.status_code == 400
        assert "<script>alert" not in response.text or path != "/table"
        assert "49" not in response.text
    assert client.get("/table", params={name: "sex"}).status_code == 400


@pytest.mark.parametrize("host", ["[", "a b", "x:y:z", ""])
@pytest.mark.parametrize("path", ["/", "/table?rows=sex", "/table?rows=x", "/nowhere"])
def test_a_broken_host_header_breaks_nothing(client, host, path):
    response = client.get(path, headers={"host": host})
    assert response.status_code in (200, 400, 404)
    assert "Content-Security-Policy" in response.headers


def test_names_codes_and_labels_of_the_data_are_escaped():
    tree = Hierarchy("T", {NASTY: "T", '"><img src=x onerror=alert(2)>': "T"}, {NASTY: f"L{NASTY}"})
    records = Records({"<b>v</b>": tree.leaves, "w\"'": ("&lt;", "2")}, {"<b>v</b>": tree})
    recipe = RECIPE.of([("<b>v</b>", "w\"'")])
    client = Client(make_app(RecipeSource(recipe, records), Settings(title="<i>t</i>")))
    for path in ("/", "/table"):
        params = {"rows": "<b>v</b>", "columns": "w\"'"} if path == "/table" else {}
        response = client.get(path, params=params)
        assert response.status_code == 200
        tags = {tag for tag, _ in Page(response.text).tags}
        assert not tags & {"b", "i"}
        assert "<script>alert" not in response.text
        assert "<img src=x" not in response.text
    response = client.get("/table.csv", params=params)
    assert re.search(r'filename="[A-Za-z0-9_-]+\.csv"', response.headers["content-disposition"])


# What is never said

TRUTH = "918273"


class Broken:
    """A source that fails with a true count in its message."""

    def __init__(self, source, error):
        self.variables, self.statement, self.error = source.variables, source.statement, error

    def release(self, margins):
        raise self.error


@pytest.mark.parametrize(
    "error",
    [RuntimeError(f"cell has {TRUTH}"), DataError(f"count {TRUTH}"), EngineError(TRUTH)],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("path", ["/table", "/table.json", "/table.csv"])
def test_failures_tell_nobody_anything(source, error, path, caplog, capsys):
    client = Client(make_app(Broken(source, error)))
    with caplog.at_level(logging.DEBUG):
        response = client.get(f"{path}?rows=sex")
    assert response.status_code == 500
    for name in HEADERS:
        assert name in response.headers
    printed = capsys.readouterr()
    for said in (response.text, caplog.text, printed.out, printed.err):
        assert TRUTH not in said
        assert "Traceback" not in said
    assert type(error).__name__ in caplog.text
    assert type(error).__name__ not in response.text


def test_true_counts_are_nowhere_in_what_is_served(caplog):
    records = small_country()
    scale = 10_007
    records.frame["n"] = records.frame["n"] * scale  # true counts that cannot be met by chance
    source = RecipeSource(RECIPE, records)
    request = TableRequest.checked(source, Settings(), ["region", "sex"], ["age"])
    truth = RECIPE.of(request.margins).tabulate(records).z
    released = source.release(request.margins).z
    changed = truth[truth != released]
    assert len(changed) > 100
    client = Client(make_app(source))
    with caplog.at_level(logging.DEBUG):
        said = [client.get(f"/table{twin}?{QUERY}").text for twin in ("", ".csv", ".json")]
    numbers = {
        int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", "\n".join([*said, caplog.text]))
    }
    assert set(released.tolist()) <= numbers
    secret = set(changed.tolist()) - set(released.tolist())
    assert secret
    assert not secret & numbers


def test_keys_are_nowhere_in_what_is_served(client, records):
    said = client.get(f"/table.json?{QUERY}").text + client.get(f"/table?{QUERY}").text
    for key in records.frame["key"].tolist():
        assert key == 0 or str(key) not in said


def test_json_never_holds_what_json_cannot(client):
    text = client.get(f"/table.json?{QUERY}").text
    json.loads(text, parse_constant=lambda name: pytest.fail(name))
