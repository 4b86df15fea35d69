"""`discreet study`."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import discreet
from discreet import registry
from discreet.cli import app, main
from discreet_studies import catalogue
from discreet_studies.model import Figure, PrintedTable, Study

ROOT = Path(__file__).parents[2]


def call(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["study", *map(str, arguments)])
    return stop.value.code


@pytest.fixture
def toy(monkeypatch):
    """A study that computes what it is told to."""
    import sys
    import types

    module = types.ModuleType("toy_study")

    def run(options):
        module.seen = options
        figures = (Figure("r", "c", "0.5", module.value, 0.05),)
        tables = (PrintedTable("Table 1", "Toys", figures),)
        return Study("toy", "A toy", "Nobody", tables, is_confidential=module.is_confidential)

    module.run, module.value, module.is_confidential = run, 0.5, False
    monkeypatch.setitem(sys.modules, "toy_study", module)
    monkeypatch.setattr(
        catalogue,
        "STUDIES",
        {"toy": catalogue.Entry("toy_study", "About toys", "Nobody (2000). Toys.")},
    )
    return module


@pytest.mark.parametrize("arguments", [(), ("list",), ("--help",), ("run", "all", "--seed", "2")])
def test_without_the_package_it_is_named(arguments, monkeypatch, capsys):
    monkeypatch.setattr(registry, "plugin_entries", lambda kind, built_in: {})
    monkeypatch.setattr(app, "app", app.build_app())
    assert call(*arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "`pip install discreet-studies`" in line


def test_list(capsys):
    assert call("list") == 0
    text = capsys.readouterr().out
    lines = dict(zip(catalogue.STUDIES, text.splitlines(), strict=True))
    assert all(line.startswith(name) for name, line in lines.items())
    assert len({line.index(catalogue.STUDIES[name].about) for name, line in lines.items()}) == 1
    assert call("list", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)["studies"]) == set(catalogue.STUDIES)


def test_run_writes_a_page(toy, tmp_path, capsys):
    folder = tmp_path / "pages"
    assert call("run", "toy", "--folder", folder, "--replicates", 7, "--seed", 3) == 0
    assert (toy.seen.replicates, toy.seen.seed, toy.seen.data) == (7, 3, None)
    text = capsys.readouterr().out
    assert "Table 1. Toys" in text
    assert [p.name for p in folder.iterdir()] == ["toy.html"]


def test_a_page_says_how_it_was_made(toy, tmp_path, capsys):
    assert call("run", "toy", "--folder", tmp_path, "--replicates", 7, "--seed", 3) == 0
    page, text = (tmp_path / "toy.html").read_text(), capsys.readouterr().out
    for said in (
        "Nobody (2000). Toys.",
        "discreet study run toy --replicates 7 --seed 3",
        discreet.__version__,
        datetime.now(UTC).date().isoformat(),
    ):
        assert said in page
        assert said in text
    assert call("run", "toy", "--folder", tmp_path, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["studies"]
    assert found["origin"]["seed"] == 1


def test_papers_are_those_of_the_bibliography_and_no_two_pages_have_one_title():
    listed = (ROOT / "docs" / "references.md").read_text().replace("*", "")
    for entry in catalogue.STUDIES.values():
        title = entry.reference.split("). ")[1].split(". ")[0]
        assert title in listed, entry.reference
    sources = (ROOT / "studies" / "src").rglob("*.py")
    titles = [
        "".join(re.findall(r'"([^"]*)"', found))
        for path in sources
        for found in re.findall(r"        title=([^,]*),\n        source=", path.read_text())
    ]
    assert len(titles) == len(set(titles)) == len(catalogue.STUDIES)


def test_a_figure_outside_its_tolerance_is_exit_code_one(toy, tmp_path, capsys):
    toy.value = 0.7
    assert call("run", "all", "--folder", tmp_path) == 1
    assert "OUTSIDE" in capsys.readouterr().out
    assert call("run", "all", "--folder", tmp_path, "--json") == 1
    (found,) = json.loads(capsys.readouterr().out)["studies"]
    assert found["failures"] == ["Table 1, r, c: printed 0.5, computed 0.70"]
    assert found["tables"]["Table 1"][0]["computed"] == 0.7


@pytest.mark.parametrize("is_confidential", [True, False])
def test_true_counts_are_marked_wherever_they_are_shown(toy, tmp_path, capsys, is_confidential):
    toy.is_confidential = is_confidential
    assert call("run", "toy", "--folder", tmp_path) == 0
    assert capsys.readouterr().out.startswith("Confidential.") is is_confidential
    assert call("run", "toy", "--folder", tmp_path, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["studies"]
    assert found["confidential"] is is_confidential


def test_records_that_a_study_would_not_use_are_refused(toy, tmp_path, capsys):
    assert call("run", "toy", "--folder", tmp_path, "--data", "people.csv") == 2
    assert "'toy' takes no records; data= is for inner-frequencies" in capsys.readouterr().err
    assert call("run", "toy", "--folder", tmp_path, "--by", "a*b") == 2
    assert "give data=" in capsys.readouterr().err


def test_names_that_are_missing_or_unknown(capsys):
    assert call("run") == 2
    assert "three-approaches" in capsys.readouterr().err
    assert call("run", "three-aproaches") == 2
    assert "Did you mean 'three-approaches'" in capsys.readouterr().err
    assert call("dance") == 2
