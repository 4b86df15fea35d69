"""Protocol 1 of PxWeb, asked by R as its package `pxweb` asks, and by hand."""

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest

from discreet.serve import AccountsConfig, Office, Policy, Query, SiteConfig, make_app, serving
from tests.serve.client import Client
from tests.serve.sites import small_site

ROOT = "/api/v1/en"
TABLE = f"{ROOT}/tables/once"
INSTALL = "The tests need R: sudo apt-get install r-base-core r-cran-httr r-cran-jsonlite"


def select(client, query, form="json", path=TABLE):
    parts = [{"code": c, "selection": s} for c, s in query.items()]
    body = {"query": parts, "response": {"format": form}}
    return client.request("POST", path, json=body)


def item(*values):
    return {"filter": "item", "values": list(values)}


ALL = {"filter": "all", "values": ["*"]}


def figures(site, address):
    cube = site.dataset("once").answer(Query.parse(address)).cube
    rows, columns = cube.axes
    return {
        (row, column): int(cube.values[rows.place(row), columns.place(column)])
        for row in rows.codes
        for column in columns.codes
    }


@pytest.fixture(scope="module")
def r_console(site):
    """What R found when it asked a running site."""
    script = Path(__file__).with_name("protocol_1.R")
    with serving(make_app(site)) as address:
        try:
            command = ["Rscript", "--vanilla", str(script), f"{address}api/v1/en"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        except FileNotFoundError:
            pytest.fail(INSTALL)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_r_finds_the_tables_and_their_variables(r_console):
    databases, tables = r_console["levels"]
    assert databases == [{"id": "tables", "type": "l", "text": "Small site"}]
    assert [(t["id"], t["type"]) for t in tables] == [("once", "t"), ("live", "t")]
    assert r_console["variables"] == ["region", "age", "sex", "Tid", "ContentsCode"]
    assert r_console["time"] == [False, False, False, True, False]
    assert set(r_console["limits"]) == {"maxValues", "maxCells", "maxCalls", "timeWindow", "CORS"}


def test_r_gets_the_figures_of_the_pages(r_console, site):
    found = figures(site, "rows=region&columns=sex")
    expected = {codes: value for codes, value in found.items() if codes[1] != "T"}
    assert {(r["region"], r["sex"]): r["count"] for r in r_console["json"]} == expected
    assert {r["Tid"] for r in r_console["json"]} == {"2026"}
    assert r_console["stat"] == list(expected.values())
    assert r_console["size"] == [12, 2, 1, 1]
    assert [row["Count"] for row in r_console["csv"]] == list(expected.values())
    assert r_console["level"] == [{"region": "N1", "count": found["N1", "T"]}]


def test_r_is_told_what_is_wrong(r_console):
    assert r_console["status"] == 400
    assert "nowhere" in r_console["error"]


@pytest.mark.parametrize(
    ("selection", "codes"),
    [
        (item("F"), ["F"]),
        (item("m", "f"), ["F", "M"]),
        (ALL, ["T", "F", "M"]),
        ({"filter": "all", "values": ["F*"]}, ["F"]),
        ({"filter": "all", "values": []}, ["T", "F", "M"]),
        ({"filter": "top", "values": ["2"]}, ["T", "F"]),
        ({"filter": "top", "values": 1}, ["T"]),
    ],
)
def test_filters_choose_codes(client, selection, codes):
    found = select(client, {"SEX": selection}).json()
    assert [row["key"] for row in found["data"]] == [[code] for code in codes]


@pytest.mark.parametrize("kind", ["agg", "vs"])
@pytest.mark.parametrize("name", ["agg_once_region_part", "AGG_once_region_part.agg"])
def test_levels_are_aggregations(client, kind, name):
    chosen = {"filter": f"{kind}:{name}", "values": ["N", "S"]}
    found = select(client, {"region": chosen}).json()
    assert [row["key"] for row in found["data"]] == [["N"], ["S"]]


@pytest.mark.parametrize("form", ["json", "json-stat", "json-stat2", "csv", "px", "xlsx"])
def test_every_format_has_the_same_figures(client, form):
    query = {"region": item("N", "S"), "sex": ALL}
    answer = select(client, query, form)
    assert answer.status_code == 200
    expected = select(client, query, "json-stat2").json()["value"]
    if form == "json":
        assert [int(row["values"][0]) for row in answer.json()["data"]] == expected
    elif form == "json-stat":
        found = answer.json()["dataset"]
        assert found["value"] == expected
        assert found["dimension"]["id"] == ["region", "sex", "ContentsCode"]
        assert found["dimension"]["role"] == {"metric": ["ContentsCode"]}
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert [int(row["Count"]) for row in rows] == expected
    elif form == "px":
        data = answer.text.partition("DATA=\n")[2].rstrip("; \n").split()
        assert [int(v) for v in data] == expected


def test_nothing_asked_is_one_figure(client):
    assert len(select(client, {}).json()["data"]) == 1


def test_metadata_come_in_the_language_of_the_path(client):
    found = client.get("/api/v1/nb/tables/once").json()
    assert found["variables"][-1]["text"] == "statistikkvariabel"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/xx/", 404),
        ("/api/v1/en/nothing", 404),
        ("/api/v1/en/tables/nothing", 404),
        ("/api/v1/en/tables/once/more", 404),
        ("/api/v1/en", 200),
        ("/api/v1/en/tables", 200),
        ("/api/v1/en/tables/ONCE?config", 200),
    ],
)
def test_addresses_lead_somewhere_or_are_404(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    assert ("error" in answer.json()) == (status == 404)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", b'{"query": 3}', b'{"query": [{"code": "sex"}]}',
        b'{"query": [{"code": "x", "selection": {"filter": "item", "values": []}}]}',
        b'{"query": [{"code": "sex", "selection": {"filter": "some", "values": []}}]}',
        b'{"query": [{"code": "sex", "selection": {"filter": "vs:none", "values": ["F"]}}]}',
        b'{"query": [{"code": "sex", "selection": {"filter": "top", "values": ["x"]}}]}',
        b'{"query": [], "response": {"format": "doc"}}',
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_words(client, body):
    answer = client.request("POST", TABLE, content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_limits_are_kept():
    client = Client(make_app(small_site(Policy(max_cells=20))))
    assert client.get(f"{ROOT}/?config").json()["maxCells"] == 20
    refused = select(client, {"region": ALL, "sex": ALL})
    assert refused.status_code == 403
    assert "20 cells" in refused.json()["error"]
    config = SiteConfig(accounts=AccountsConfig(rate=0.01, burst=1))
    limited = Client(make_app(small_site(), Office(config)))
    assert [limited.get(f"{ROOT}/").status_code for _ in range(2)] == [200, 429]


def test_pages_of_others_may_send_queries(client):
    found = client.request("OPTIONS", TABLE)
    assert found.headers["access-control-allow-origin"] == "*"
    assert client.get(f"{ROOT}/?config").json()["CORS"]
