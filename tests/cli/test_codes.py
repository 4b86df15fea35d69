"""`discreet codes` drafts code lists that a person reviews."""

import json
import tomllib

import pandas as pd
import pytest
import typer

import discreet as dc
from discreet.cli.custody import codes
from discreet.errors import ParameterError

ROWS = pd.DataFrame(
    {
        "number": range(40),
        "sex": ["f", "m"] * 20,
        "age": [1, 2, 10, None] * 10,
        "town": [f"T{i % 5}" for i in range(40)],
        "w": [1.5] * 40,
    }
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("people.csv", index=False)
    return tmp_path


def run(*arguments):
    app = typer.Typer()
    app.command()(codes)
    return app(args=[str(a) for a in arguments], standalone_mode=False)


def test_the_draft_is_a_file_of_its_owner_that_opens_the_records(folder, capsys):
    run("people.csv", "--id", "number", "--weight", "w", "--out", "codes.toml")
    shown = capsys.readouterr().out
    assert "review every code" in shown
    assert "number is the id" in shown
    assert (folder / "codes.toml").stat().st_mode & 0o777 == 0o600
    content = tomllib.loads((folder / "codes.toml").read_text())
    assert list(content) == ["sex", "age", "town"]
    table = dc.open("people.csv", codes="codes.toml").tabulate("sex*town")
    assert all(axis.declared for axis in table.design.axes)


def test_columns_with_many_codes_are_left_out(folder, capsys):
    run("people.csv", "--out", "codes.toml", "--max-codes", 4, "--json")
    summary = json.loads(capsys.readouterr().out)
    assert summary["listed"] == ["sex", "age", "w"]
    assert "more than 4 codes" in summary["skipped"]["town"]
    assert "'town' has more than 4 codes" in (folder / "codes.toml").read_text()


def test_a_reviewed_file_is_not_overwritten(folder):
    (folder / "codes.toml").write_text("# reviewed\n")
    with pytest.raises(ParameterError, match=r"codes\.toml exists"):
        run("people.csv", "--out", "codes.toml")
    assert (folder / "codes.toml").read_text() == "# reviewed\n"
