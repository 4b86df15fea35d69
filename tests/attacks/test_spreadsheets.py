"""Files and pages that strangers open: formulas among codes, and cells that are not shown."""

import csv
import io
import json
from dataclasses import replace

import pytest

import discreet as dc
from discreet import Hierarchy
from discreet.publication import Choice
from discreet.release import Cube, Options
from discreet.release.formats.csv import CsvWriter
from discreet.serve import Dataset, DatasetInfo, LiveSource, Site, SiteConfig, make_app
from tests.attacks.victims import PTABLE
from tests.serve.client import Client
from tests.serve.records import RECIPE, Records, small_country

EVIL = [
    '=HYPERLINK("http://evil","click")',
    "=1+1",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
]
HARMLESS = ["-5", "+65", "-1.5", "1e3", "-1e3", "a=b", "5-9", "north", "'quoted"]


def to_csv(release):
    return CsvWriter().write(Cube.of(release), Options())


def served(recipe, records):
    """Requests to a site of one data set, `small`."""
    dataset = Dataset("small", DatasetInfo(), LiveSource(recipe, records))
    return Client(make_app(Site(SiteConfig(), {"small": dataset})))


def rows_of(content):
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def released(name="code"):
    codes = [*EVIL, *HARMLESS]
    frame = {name: codes, "n": [50] * len(codes), "k": list(range(7, 7 + len(codes)))}
    return dc.Table.from_counts(frame, "n", [(name,)], key="k").protect(dc.CellKey(PTABLE))


def test_no_cell_of_a_csv_file_runs():
    release = released()
    header, *rows = rows_of(to_csv(release))
    shown = {code for code, _ in rows}
    assert {"'" + code for code in EVIL} <= shown
    assert set(HARMLESS) <= shown
    assert not [code for code in shown if code[0] in "=@\t\r\n"]
    assert [int(count) for _, count in rows] == release.z.tolist()
    assert header == ["code", "count"]


@pytest.mark.parametrize("name", ["=cmd()", "@a", "-x"])
def test_no_name_of_a_column_runs(name):
    assert rows_of(to_csv(released(name)))[0][0] == "'" + name


def test_as_the_engine_writes_them_they_would_run():
    """The control: the codes as they are in the release."""
    codes = released().to_arrow().column("code").to_pylist()
    assert [code for code in codes if code[0] in "=@\t\r\n"]


def test_negative_numbers_stay_numbers():
    table = dc.Table.from_counts(
        {"a": ["x", "y"], "n": [0, 0]}, "n", "a", declared=True, name="empty"
    )
    while True:
        release = table.protect(dc.DiscreteLaplace(0.05, nonnegative=False))
        if (release.z < 0).any():
            break
    assert sorted(int(count) for _, count in rows_of(to_csv(release))[1:]) == sorted(release.z)


def test_codes_of_the_table_builder_do_not_run_either():
    tree = Hierarchy("ALL", dict.fromkeys(["=1+1", "@a", "-1"], "ALL"))
    records = Records({"code": tree.leaves}, {"code": tree})
    client = served(replace(RECIPE, margins="code"), records)
    rows = rows_of(client.get("/d/small/table.csv?rows=code").content)
    assert {row[0] for row in rows[1:]} >= {"'=1+1", "'@a", "-1"}


# Cells that are not shown


@pytest.fixture(scope="module")
def hiding():
    method = Choice("cell-key", {"D": 5, "V": 3, "js": 2, "threshold": 25})
    return served(replace(RECIPE, method=method), small_country())


QUERIES = ["rows=region&rows=sex&columns=age", "rows=age", "rows=region"]


@pytest.mark.parametrize("query", QUERIES)
def test_the_json_of_a_table_with_hidden_cells_is_an_answer(hiding, query):
    answer = hiding.get(f"/d/small/table.json?{query}")
    assert answer.status_code == 200
    json.loads(answer.text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    cells = hidden_and_shown(hiding, query)
    assert min(value for value, _ in cells if value is not None) >= 25
    hidden = {status for value, status in cells if value is None}
    assert hidden <= {"below threshold"}
    assert hidden or query != QUERIES[0]
    assert hiding.get(f"/d/small/table?{query}").status_code == 200


def hidden_and_shown(client, query):
    """The value, if there is one, and the status of every cell."""
    content = client.get(f"/d/small/table.csv?{query}").content
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    return [(int(r["count"]) if r["count"] else None, r.get("status", "")) for r in rows]
