"""Program text and saved queries return the table that the page shows."""

import csv
import io
import os
import subprocess

import pytest

from discreet.release import writer_named
from discreet.serve import (
    AccountsConfig,
    Office,
    OfficeDatabase,
    Query,
    Role,
    SiteConfig,
    add_token,
    make_app,
    serving,
)
from discreet.serve.api.saved import SavedQuery, replay_by_site
from tests.commands import run
from tests.serve.client import Client
from tests.serve.sites import small_site

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


def run_r(text, **environment):
    """The cells that a program in R reads, as CSV."""
    script = f"{text}write.csv(table, row.names = FALSE, na = '')\n"
    command = ["Rscript", "--vanilla", "-e", script]
    found = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert found.returncode == 0, found.stderr
    return list(csv.DictReader(io.StringIO(found.stdout)))


def test_the_r_text_returns_the_table(client, server):
    query = QUERIES[1]
    rows = run_r(snippets(client, query)["R"].replace("http://here", server))
    found = table(client, query)
    expected = {tuple(row[:-2]): row[-2] for row in found["cells"]}
    read = figures(rows, found["columns"])
    assert {codes: float(value) for codes, value in read.items()} == expected


@pytest.fixture
def with_accounts(tmp_path):
    """A site that answers tokens: its application and a token."""
    store = OfficeDatabase(tmp_path / "office.db")
    accounts = AccountsConfig(who="tokens")
    office = Office(SiteConfig(accounts=accounts), store)
    token = add_token(store, "ann", Role.viewer)
    yield make_app(small_site(accounts=accounts), office), token
    office.close()
    store.close()


def test_programs_of_a_site_with_accounts_carry_a_token(with_accounts, tmp_path, monkeypatch):
    app, token = with_accounts
    headers = {"Authorization": f"Bearer {token}"}
    listed = Client(app).get(f"{ROOT}/snippets?{QUERIES[0]}", headers=headers).json()["snippets"]
    texts = {one["name"]: one["text"] for one in listed}
    assert not any(token in text for text in texts.values())
    monkeypatch.setenv("DISCREET_TOKEN", token)
    with serving(app) as address:
        made = {name: t.replace("http://here", address[:-1]) for name, t in texts.items()}
        namespace = {}
        exec(made["Python"], namespace)
        rows = run_r(made["R"])
        subprocess.run(["bash", "-c", made["curl"]], cwd=tmp_path, check=True)
    counts = namespace["table"]["count"].tolist()
    assert [int(row["count"]) for row in rows] == counts
    text = (tmp_path / "table.csv").read_text()
    assert [int(row["count"]) for row in csv.DictReader(io.StringIO(text))] == counts


def test_programs_without_a_token_are_told_to_bring_one(with_accounts):
    client = Client(with_accounts[0])
    for path in ("/d/once/table.csv?rows=sex", f"{ROOT}/table?rows=sex", "/api/v1/en/tables"):
        answer = client.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    page = client.get("/d/once/table.csv?rows=sex", headers={"Accept": "text/html,*/*"})
    assert page.status_code == 303  # a person in a browser signs in


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
