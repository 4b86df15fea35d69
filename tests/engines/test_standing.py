"""The page on databases says which engines pass, and others are refused by name."""

import json
import logging
import sys
from pathlib import Path

import ibis
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import EngineError, MissingDependencyError
from discreet.records.backend import REFUSED, TESTED, check_standing
from discreet.testing import ALL_CASES, check_engine
from tests.commands import run

PAGE = Path(__file__).parents[2] / "docs" / "databases.md"
FRAME = pa.table({"id": [1, 2, 3, 4], "a": list("xxyy"), "w": [1.0, 2, 3, 4]})


# Those that SQLite counts wrongly; its 47 others take eight seconds.
OF_SQLITE = (
    "int64", "uint8", "uint16", "uint64", "contributions by numbers", "value that is a word",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wrong", "cases"), [("sqlite", 6, OF_SQLITE), ("polars", 23, None)]
)
def test_refused_engines_fail_as_often_as_is_said(name, wrong, cases):
    with pytest.raises(EngineError, match=f"^{wrong} cases were counted wrongly"):
        check_engine(getattr(ibis, name).connect(), cases=cases)
    assert REFUSED[name].startswith(f"{wrong} of {len(ALL_CASES)} cases")


def test_records_in_a_refused_engine_are_not_opened():
    records = ibis.sqlite.connect().create_table("people", FRAME)
    with pytest.raises(EngineError, match="sqlite are refused: 6 of 53"):
        dc.open(records)


def test_an_engine_that_nobody_tried_is_said_to_be_untested(caplog):
    class Other:
        name = "snowflake"

    with caplog.at_level(logging.WARNING, "discreet"):
        check_standing(Other())
    assert "snowflake is untested" in caplog.text


def test_the_page_lists_them_all():
    page = PAGE.read_text(encoding="utf-8")
    for name in TESTED:
        assert f"| `{name}` | {len(ALL_CASES)} of {len(ALL_CASES)} |" in page
    for name, reason in REFUSED.items():
        assert f"| `{name}` | refused: {reason} |" in page


def test_everything_of_the_core_works_without_ibis(monkeypatch, tmp_path):
    """Each module that was ours is loaded already; Ibis itself cannot be."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name == "ibis" or name.startswith("ibis.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "ibis", None)
    people = dc.open(FRAME, id="id", weight="w", secret="k.secret")
    table = people.recode(a={"x": "z"}).tabulate("a")
    assert table.protect("cell-key", unit="count").z.shape == table.z.shape
    people.write_keys("keys.parquet")
    dc.open(FRAME, keys="keys.parquet").tabulate("a")
    assert dc.open(FRAME).tabulate("a", value="w", contributor="id").contributions is not None
    with pytest.raises(MissingDependencyError, match=r"discreet\[postgres\]"):
        dc.open("postgresql:///census::people")


def test_the_command_runs_the_battery(capsys, monkeypatch):
    """The whole of it; tests/tabulate runs each case on DuckDB, so three of them do here."""
    asked = []

    def some(backend, **given):
        asked.append((backend.name, given))
        return check_engine(backend, cases=list(ALL_CASES)[:3])

    monkeypatch.setattr("discreet.testing.check_engine", some)
    assert run("check", "engine", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert asked == [("duckdb", {})]
    assert found["passed"] == list(ALL_CASES)[:3]
    assert run("check", "engine", "nowhere://user:password@host/x") == 2
    assert "password" not in capsys.readouterr().err.replace("password'", "")


def test_the_installation_is_told(capsys):
    assert run("check", "install", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["packages"]["core"]["duckdb"][0].isdigit()


def test_a_site_is_checked_before_it_is_served(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("check", "site", "site.toml") == 2
    assert run("check", "data") == 2
