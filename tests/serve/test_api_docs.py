"""What the page on interfaces prints runs against the demo as it stands there."""

import csv
import io
import re
import subprocess
from pathlib import Path

import pytest

from discreet.serve import load_site, make_app, serving
from tests.commands import run

PAGE = (Path(__file__).parents[2] / "docs" / "http_interface.md").read_text(encoding="utf-8")
OFFICE = "https://tables.office.example"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
CURL = [text for kind, text in BLOCKS if not kind and text.startswith("curl") and OFFICE in text]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo with few people, at an address."""
    folder = tmp_path_factory.mktemp("demo")
    assert run("demo", "--persons", "3000", "--folder", str(folder), "--no-serve") == 0
    assert run("build", str(folder / "site.toml"), "--only", "census") == 0
    with serving(make_app(load_site(folder / "site.toml"))) as address:
        yield address.rstrip("/")


@pytest.mark.parametrize("command", CURL)
def test_a_call_of_the_page_returns_a_table(demo, command):
    line = command.replace(OFFICE, demo).replace("curl ", "curl --fail --silent --show-error ", 1)
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = list(csv.reader(io.StringIO(done.stdout)))
    assert len(rows) > 3
    assert len({len(row) for row in rows}) == 1


def test_the_client_of_the_page_returns_a_table(demo):
    (text,) = [text for _, text in BLOCKS if "from pxweb import" in text]
    *before, last = text.replace(OFFICE, demo).strip().partition("api.get_table_data")
    namespace = {}
    exec(f"{''.join(before[:1])}\nrows = api.get_table_data{last}", namespace)
    assert {row["Sex"] for row in namespace["rows"]} == {"Female", "Male"}


def test_the_saved_query_of_the_page_is_replayed(demo, tmp_path, capsys):
    (text,) = [text for kind, text in BLOCKS if kind == "toml" and "version = 1" in text]
    path = tmp_path / "query.toml"
    path.write_text(text.replace(OFFICE, demo))
    assert run("replay", str(path)) == 0
    assert capsys.readouterr().out.startswith('"region","sex","count"\n')


def test_the_page_prints_calls():
    assert len(CURL) >= 2
