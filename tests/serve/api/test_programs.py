"""Program text and saved queries return the table that the page shows."""

import csv
import io
import subprocess

import pytest

from discreet.cli import main
from discreet.release.formats.write import writer_named
from discreet.serve.api.saved import SavedQuery, replay_by_site
from discreet.serve.app import make_app
from discreet.serve.query import Query
from discreet.serve.run import serving

ROOT = "/api/v1/datasets/once"
QUERIES = [
    "rows=region&columns=sex",
    "rows=region[county]&columns=age&where.sex=F",
    "rows=age&group.region=a|N|S&rows=region[part]",
    "rows=age&pick.age=65%2B&show=column",
]


@pytest.fixture(scope="module")
def server(site):
    with serving(make_app(site)) as address:
        yield address.rstrip("/")


def snippets(client, query):
    listed = client.get(f"{ROOT}/snippets?{query}").json()["snippets"]
    return {one["name"]: one["text"] for one in listed}


def table(client, query):
    return client.get(f"{ROOT}/table?{query}").json()


def figures(rows, columns):
    return {tuple(row[c] for c in columns[:-2]): row[columns[-2]] for row in rows}


@pytest.mark.parametrize("query", QUERIES)
def test_the_python_text_returns_the_table(client, server, query):
    text = snippets(client, query)["Python"].replace("http://here", server)
    namespace = {}
    exec(text, namespace)
    frame, found = namespace["table"], table(client, query)
    expected = {tuple(row[:-2]): row[-2] for row in found["cells"]}
    rows = figures(frame.to_dict("records"), found["columns"])
    assert rows.keys() == expected.keys()
    for codes, value in rows.items():
        assert value == expected[codes] or (expected[codes] is None and value != value)


@pytest.mark.parametrize("query", QUERIES)
def test_the_curl_text_returns_the_table(client, server, query, tmp_path):
    text = snippets(client, query)["curl"].replace("http://here", server)
    subprocess.run(["bash", "-c", text], cwd=tmp_path, check=True)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    found = table(client, query)
    expected = {tuple(row[:-2]): row[-2] for row in found["cells"]}
    for codes, value in figures(rows, found["columns"]).items():
        assert value == "" if expected[codes] is None else float(value) == expected[codes]
    assert len(rows) == len(expected)


def test_the_r_text_asks_for_the_same_address(client):
    made = snippets(client, QUERIES[1])
    address = made["Python"].partition('url = "')[2].partition('"')[0]
    assert address in made["R"]
    assert address in made["curl"]


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return stop.value.code


def test_a_saved_query_is_replayed_from_a_site_that_answers(client, server, tmp_path, capsys):
    path, out = tmp_path / "query.toml", tmp_path / "table.csv"
    text = client.get(f"{ROOT}/query.toml?{QUERIES[1]}").text
    path.write_text(text.replace("http://here", server))
    assert run("replay", path, "--out", out) == 0
    assert "Small country" in capsys.readouterr().out
    asked = client.get(f"{ROOT}/table?{QUERIES[1]}&format=csv", headers={"Host": server[7:]})
    assert out.read_bytes() == asked.content
    assert run("replay", path) == 0
    assert capsys.readouterr().out == out.read_text()
    assert run("replay", path, "--url", server, "--out", tmp_path / "t.px") == 0


def test_a_refused_query_says_why(server, tmp_path, capsys):
    path = tmp_path / "query.toml"
    saved = SavedQuery(server, "once", "2026", "", Query.parse("rows=agee"))
    path.write_text(saved.text)
    assert run("replay", path) == 2
    assert "There is no variable or level 'agee'" in capsys.readouterr().err


def test_a_site_in_this_process_makes_the_same_file(client, site):
    saved = SavedQuery("http://here", "once", "2026", "", Query.parse(QUERIES[0]))
    for name in ("csv", "px", "xlsx", "json-stat"):
        asked = client.get(f"{ROOT}/table?{QUERIES[0]}&format={name}").content
        assert replay_by_site(saved, site, writer_named(name)) == asked


@pytest.mark.parametrize(
    "query", [*QUERIES, "rows=a&fold.a=x&layer.b=c&layers=b&chart=bars&sort=-T"]
)
def test_a_saved_query_is_read_as_it_was_written(query):
    saved = SavedQuery("https://x.example", "once", "1", 'a "title"', Query.parse(query))
    assert SavedQuery.parse(saved.text) == saved


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows = 1", "unknown entry|needs version"),
        ("version = 1", "needs version"),
        ("version = 2\ndataset = 'a'", "needs version"),
        ("version = 1\ndataset = 'a'\n[query]\nrows = [1]", "must hold texts"),
        ("version = 1\ndataset = 'a'\nquery = 3", "must be a section"),
        ("version =", "not valid TOML"),
    ],
)
def test_a_file_that_is_no_saved_query_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        SavedQuery.parse(text)


def test_a_table_comes_from_one_place(tmp_path, capsys):
    path = tmp_path / "query.toml"
    path.write_text(SavedQuery("", "once", "1", "", Query.parse("rows=age")).text)
    assert run("replay", path) == 2
    assert "begins with https://" in capsys.readouterr().err
    assert run("replay", path, "--site", "site.toml", "--url", "http://a") == 2
    assert run("replay", path, "--url", "http://127.0.0.1:9") == 2
    assert "does not answer" in capsys.readouterr().err
