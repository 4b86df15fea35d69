"""Pages of files say what the server's pages say; their figures are sums of the Parquet file."""

import json
import shutil
from collections import Counter

import duckdb
import pytest

from discreet.serve.static.build import write_site
from tests.serve.static.asking import NODE, Client, difference
from tests.serve.static.questions import Questions
from tests.serve.static.sites import server_of, static_site

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

FAULTS = {
    "rounding": (
        "numbers.js",
        "const text = size.toFixed(decimals);",
        "const text = (Math.floor(size * 10 ** decimals) / 10 ** decimals).toFixed(decimals);",
    ),
    "a slot off by one": (
        "cells.js",
        "* shape[dimension] + place) * inner;",
        "* shape[dimension] + ((place + 1) % shape[dimension])) * inner;",
    ),
    "a dropped rule": ("policy.js", "    this.check_size(question);\n", ""),
    "escaping": (
        "runtime.js",
        "export const shown = (value) => escape(value).text;",
        "export const shown = (value) => String(value);",
    ),
}


@pytest.fixture(scope="module")
def site():
    return static_site()


@pytest.fixture(scope="module")
def server(site):
    return server_of(site)


@pytest.fixture(scope="module")
def out(site, tmp_path_factory):
    folder = tmp_path_factory.mktemp("static")
    write_site(site, folder, parquet=True)
    return folder


@pytest.fixture
def asked(out):
    client = Client(out)
    yield client
    client.close()


def differences(site, server, client, n, seed):
    asked = Questions(site.datasets, seed).some(n)
    return [d for a, lang in asked if (d := difference(server, client, site, a, lang)) is not None]


def test_random_pages_equal_the_servers(site, server, asked):
    assert differences(site, server, asked, 300, seed=1) == []


def test_the_catalogue_and_wrong_paths_equal_the_servers(site, server, asked):
    paths = ("/", "/about", "/?query=small+COUNTRY", "/?query=nothing&topic=x", "/d/nobody/table?")
    for lang in ("en", "nb"):
        for path in paths:
            assert difference(server, asked, site, path, lang) is None


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, site, server, out, tmp_path):
    name, right, wrong = FAULTS[fault]
    shutil.copytree(out, tmp_path / "out")
    path = tmp_path / "out" / json.loads((out / "site.json").read_text())["app"] / name
    text = path.read_text(encoding="utf-8")
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    client = Client(tmp_path / "out")
    try:
        assert differences(site, server, client, 120, seed=2)
    finally:
        client.close()


def test_figures_are_sums_of_the_parquet_file(out, asked):
    told = json.loads((out / "site.json").read_text())
    rules = json.loads((out / told["site"]).read_text())
    file = out / rules["datasets"]["once"]["parquet"]
    sums = duckdb.sql(
        f"select region, age, sex, sum(count) from '{file}' group by cube (region, age, sex)"
    ).fetchall()
    page = asked.ask("/d/once/table?rows=region[leaves]&columns=age&columns=sex&totals=1")
    shown = Counter(v for v in page["figures"]["values"] if v)
    assert shown == Counter(int(v) for *_, v in sums)


def test_the_same_release_gives_the_same_bytes(site, out, tmp_path):
    write_site(static_site(), tmp_path, parquet=True)
    files = {p.relative_to(out) for p in out.rglob("*") if p.is_file()}
    assert files == {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()}
    assert all((out / p).read_bytes() == (tmp_path / p).read_bytes() for p in files)
