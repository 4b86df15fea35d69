"""Pages of files say what the server's pages say; their figures are sums of the Parquet file."""

import json
import re
import shutil

import pytest

from discreet.serve import Query, write_site
from tests.serve.static.asking import ENDINGS, NODE, Client, difference, file_difference, served
from tests.serve.static.parquet_sums import ParquetSums
from tests.serve.static.questions import Questions
from tests.serve.static.sites import odd_site, server_of, static_site

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

FAULTS = {
    "rounding": (
        "const text = size.toFixed(decimals);",
        "const text = (Math.floor(size * 10 ** decimals) / 10 ** decimals).toFixed(decimals);",
    ),
    "a slot off by one": (
        "const from = (o * shape[dimension] + place) * inner;",
        "const from = (o * shape[dimension] + ((place + 1) % shape[dimension])) * inner;",
    ),
    "a dropped rule": ("    this.check_size(question);\n", ""),
    "escaping": (
        "const shown = (value) => escape(value).text;",
        "const shown = (value) => String(value);",
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


def first_difference(site, server, client, n, seed, sums=None):
    for address, lang in Questions(site.datasets, seed).some(n):
        if found := difference(server, client, site, address, lang, sums):
            return found
    return None


def test_random_pages_equal_the_servers_and_their_figures_duckdb_s_sums(site, server, asked, out):
    assert first_difference(site, server, asked, 300, 1, ParquetSums(out)) is None


def test_files_that_the_browser_makes_are_those_of_the_server(site, server, asked):
    whole = {name: d for name, d in site.datasets.items() if name != "decimals"}
    for k, (address, lang) in enumerate(Questions(whole, 4).some(150)):
        ending = ENDINGS[k % len(ENDINGS)]
        assert file_difference(server, asked, address, lang, ending) is None


@pytest.mark.parametrize("ending", [".px", ".xlsx"])
def test_a_fault_of_a_file_is_found(site, server, out, tmp_path, ending):
    """What files say beside their figures comes from elsewhere than what pages say."""
    client = planted(out, tmp_path, "licence: dataset.about.licence,", 'licence: "",')
    try:
        address = "/d/once/table?rows=region&columns=sex"
        assert file_difference(server, client, address, "en", ending)
    finally:
        client.close()


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A site of odd names and figures, its server, and its files."""
    made, folder = odd_site(), tmp_path_factory.mktemp("odd")
    write_site(made, folder, parquet=True)
    client = Client(folder)
    yield made, server_of(made), client, folder
    client.close()


def test_odd_names_and_figures_are_answered_alike(odd):
    made, server, client, folder = odd
    sums = ParquetSums(folder)
    for k, (address, lang) in enumerate(Questions(made.datasets, 3).some(40)):
        assert difference(server, client, made, address, lang, sums) is None
        assert file_difference(server, client, address, lang, ENDINGS[k % 5]) is None


@pytest.mark.parametrize(
    ("asked", "figures"),
    [
        ("rows=place&where.constructor=1", "–"),
        ("rows=place&where.constructor=1&where.constructor=01", "[0-9]"),
        ("rows=constructor&columns=place&where.constructor=1&where.constructor=01", "[0-9]"),
        ("rows=constructor&columns=place&group.constructor=One%7C1%7C01", "[0-9]"),
    ],
)
def test_what_can_never_occur_adds_nothing_to_a_sum(odd, asked, figures):
    made, server, client, _ = odd
    address = f"/d/odd/table?{asked}"
    assert difference(server, client, made, address, "en") is None
    response, _ = served(server, address, "en")
    assert response.status_code == 200
    assert re.match(figures, re.findall("<td>(.*?)</td>", response.text)[-1])


def test_a_very_long_word_is_refused(asked):
    """A page must not stand still over a link that somebody made up."""
    for word in ("x" * 100_000, "region" * 16_000):
        found = asked.ask(f"/d/once/table?rows={word}")
        assert found["status"] == 400
        assert "There is no variable or level" in found["html"]


def test_the_catalogue_and_wrong_paths_equal_the_servers(site, server, asked):
    paths = ("/", "/about", "/?query=small+COUNTRY", "/?query=nothing&topic=x", "/d/nobody/table?")
    for lang in ("en", "nb"):
        for path in paths:
            assert difference(server, asked, site, path, lang) is None


def test_neither_says_that_a_category_exists_which_is_not_on_offer(site, server, asked):
    """A group may be called what a town is called, where towns are not on offer."""
    address = "/d/coarse/table?rows=region%5Bcounty%5D&group.region=N1-1%7CN1"
    assert difference(server, asked, site, address, "en") is None
    assert "unreadable" not in server.get(address).text
    assert server.get(address).status_code == 200


def planted(out, tmp_path, right, wrong):
    """The client on a copy of the files, with a fault of its own."""
    shutil.copytree(out, tmp_path / "out")
    path = tmp_path / "out" / json.loads((out / "site.json").read_text())["client"][0]
    text = path.read_text(encoding="utf-8")
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    return Client(tmp_path / "out")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, site, server, out, tmp_path):
    client = planted(out, tmp_path, *FAULTS[fault])
    try:
        assert first_difference(site, server, client, 120, seed=2)
    finally:
        client.close()


def test_a_figure_that_is_no_sum_of_the_parquet_file_is_found(site, out):
    dataset, query = site.dataset("once"), Query.parse("rows=region&columns=age")
    answer, sums = dataset.answer(query), ParquetSums(out)
    assert sums.difference(dataset, answer) is None
    answer.cube.values[2, 1] += 1
    assert "in place of DuckDB's" in sums.difference(dataset, answer)


def test_the_same_release_gives_the_same_bytes(site, out, tmp_path):
    write_site(static_site(), tmp_path, parquet=True)
    files = {p.relative_to(out) for p in out.rglob("*") if p.is_file()}
    assert files == {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()}
    assert all((out / p).read_bytes() == (tmp_path / p).read_bytes() for p in files)
