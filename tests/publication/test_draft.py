"""A first publication runs as it is written, whatever the records look like."""

import re

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import ParameterError
from discreet.facade import read_release
from discreet.publication import Publication
from discreet.publication.rules import Gate
from tests.publication.office import CODES, records, run

TREE = "part,region\nA,N\nA,S\nB,W\n"


def plain(folder):
    records(1).to_csv(folder / "people.csv", index=False)
    return ["Region by age", "Region by sex"]


def without_ids(folder):
    records(1).drop(columns="id").to_csv(folder / "people.csv", index=False)
    return ["Region by age", "Region by sex"]


def german(folder):
    frame = records(1).assign(Umsatz=np.arange(900) / 4)
    frame = frame.rename(columns={"age": "Alter in Jahren"})
    frame.to_csv(folder / "people.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    return ["Region by Alter in Jahren", "Region by sex"]


def with_gaps(folder):
    frame = records(1)
    frame.loc[::7, "age"] = None
    frame.to_csv(folder / "people.csv", index=False)
    return ["Region by age", "Region by sex"]


def lists(folder):
    records(1).to_csv(folder / "people.csv", index=False)
    (folder / "codes.toml").write_text(CODES)
    return ["Region by age", "Region by sex"]


def hierarchy(folder):
    records(1).to_csv(folder / "people.csv", index=False)
    (folder / "region.csv").write_text(TREE)
    (folder / "codes.toml").write_text('region = {hierarchy = "region.csv"}\n')
    return ["Region by age", "Region by sex"]


def deep_hierarchy(folder):
    frame = records(1).assign(region=[f"m{k % 90:02}" for k in range(900)])
    frame.to_csv(folder / "people.csv", index=False)
    rows = [f"p{k // 30},m{k:02}\n" for k in range(90)]
    (folder / "region.csv").write_text("".join(["province,town\n", *rows]))
    (folder / "codes.toml").write_text('region = {hierarchy = "region.csv"}\n')
    return ["Region (province) by age", "Region (province) by sex"]


def alone(folder):
    records(1)[["id", "sex"]].to_csv(folder / "people.csv", index=False)
    return ["Sex"]


CASES = (plain, without_ids, german, with_gaps, lists, hierarchy, deep_hierarchy, alone)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_draft_runs_as_it_is_written(case, tmp_path, monkeypatch, capsys):
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path)
    names = case(tmp_path / "in")
    codes = ("--codes", "in/codes.toml") if (tmp_path / "in" / "codes.toml").exists() else ()
    drafted = ("publish", "--draft", "in/people.csv", *codes, "in/first.toml")
    assert run(*drafted) == 0, capsys.readouterr().err
    assert run(*drafted) == 2, "a file that is there stays"
    assert [*Publication.read("in/first.toml").margins] == names
    assert run("publish", "in/first.toml") == 0, capsys.readouterr().err
    release = read_release("in/published/1/release.parquet")
    assert [*release.tables] == names
    assert release.z.dtype.kind == "i"
    assert (tmp_path / "in" / "published" / "1" / "people.xlsx").is_file()


def test_periods_of_the_records_become_editions(tmp_path, monkeypatch, capsys):
    """Ids come again in the second year; nobody may stand in a table twice."""
    monkeypatch.chdir(tmp_path)
    second = records(2).assign(id=records(1)["id"], Year=2026)
    pd.concat([records(1).assign(Year=2025), second]).to_csv("people.csv", index=False)
    assert run("publish", "--draft", "people.csv", "first.toml") == 0
    plan = Publication.read("first.toml")
    assert [plan.data["time"], plan.data["id"]] == ["Year", "id"]
    assert [*plan.margins] == ["Region by age", "Region by sex"]
    with (tmp_path / "first.toml").open("a", encoding="utf-8") as file:
        file.write('[gate]\nattack = "off"\n')
    assert run("publish", "first.toml") == 0, capsys.readouterr().err
    for year in ("2025", "2026"):
        release = read_release(f"published/{year}/release.parquet")
        assert abs(release.z[release.design.position({})] - 900) < 30


def test_a_column_of_time_with_a_code_list_is_no_variable_of_tables(tmp_path, monkeypatch, capsys):
    """Code lists as `discreet codes` drafts them have all periods in them."""
    monkeypatch.chdir(tmp_path)
    both = [records(k).assign(year=2024 + k) for k in (1, 2)]
    pd.concat(both).to_csv("people.csv", index=False)
    assert run("codes", "people.csv", "--out", "codes.toml") == 0
    assert run("publish", "--draft", "people.csv", "--codes", "codes.toml", "first.toml") == 0
    plan = Publication.read("first.toml")
    assert plan.data["time"] == "year"
    assert [*plan.margins] == ["Region by age", "Region by sex"]
    assert plan.margins["Region by age"] == "region*age"
    crossed = plan.to_dict()
    crossed["tables"]["Region by age"]["margins"] = "year*region*age"
    with pytest.raises(ParameterError, match="'year', which tells periods.*Leave it out"):
        Publication.from_dict(crossed)
    del crossed["data"]["time"]
    crossed["publication"]["time"] = "year"
    with pytest.raises(ParameterError, match="'year', which tells periods"):
        Publication.from_dict(crossed)


def test_what_a_draft_has_for_the_taking_can_be_taken(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plain(tmp_path)
    assert run("publish", "--draft", "people.csv", "first.toml") == 0
    text = (tmp_path / "first.toml").read_text(encoding="utf-8")
    entry = re.compile(r"^# ((\w+ = |\[gate).*)$", re.MULTILINE)
    taken = [name for name, _ in entry.findall(text)]
    assert len(taken) == 11
    every_one = entry.sub(r"\1", text)
    (tmp_path / "first.toml").write_text(every_one, encoding="utf-8")
    made = Publication.read("first.toml")
    assert made.outlet.licence == "CC BY 4.0"
    assert made.data["time"] == "year"
    assert made.gate == Gate()


def test_an_old_recipe_becomes_a_publication_that_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plain(tmp_path)
    (tmp_path / "region.csv").write_text(TREE)
    recipe = '[tabulate]\nmargins = "region*age"\nhierarchies = {region = "region.csv"}\n'
    (tmp_path / "recipe.toml").write_text(recipe + '[protect]\nmethod = "drop-add:share=0.1"\n')
    old = ("run", "recipe.toml", "people.csv", "--out", "r.csv")
    assert run(*old) == 2
    told = capsys.readouterr().err
    assert "discreet publish --convert recipe.toml --draft people.csv publication.toml" in told
    assert run("publish", "--convert", "recipe.toml", "publication.toml") == 2
    assert "--draft people.csv" in capsys.readouterr().err
    command = ("publish", "--convert", "recipe.toml", "--draft", "people.csv", "publication.toml")
    assert run(*command) == 0
    made, asked = Publication.read("publication.toml"), Publication.read("recipe.toml")
    assert (made.margins, made.method, made.fitter) == (asked.margins, asked.method, asked.fitter)
    assert run("publish", "publication.toml") == 0, capsys.readouterr().err
    data = dc.open("people.csv", id="id", secret="keys.secret")
    expected = asked.run(data)
    assert np.array_equal(read_release("published/1/release.parquet").z, expected.z)
    assert "B" in set(pd.read_csv("published/1/region-by-age.csv")["region"])
