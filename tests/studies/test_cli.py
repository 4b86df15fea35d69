"""`discreet study`."""

import json

import pytest

from discreet.cli import main
from discreet.studies import catalogue
from discreet.studies.model import Figure, PrintedTable, Study


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
        return Study("toy", "A toy", "Nobody", (PrintedTable("Table 1", "Toys", figures),))

    module.run, module.value = run, 0.5
    monkeypatch.setitem(sys.modules, "toy_study", module)
    monkeypatch.setattr(catalogue, "STUDIES", {"toy": ("toy_study", "About toys")})
    return module


def test_list(capsys):
    assert call("list") == 0
    text = capsys.readouterr().out
    assert all(name in text for name in catalogue.STUDIES)
    assert call("list", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)["studies"]) == set(catalogue.STUDIES)


def test_run_writes_a_page(toy, tmp_path, capsys):
    folder = tmp_path / "pages"
    assert call("run", "toy", "--folder", folder, "--replicates", 7, "--seed", 3) == 0
    assert (toy.seen.replicates, toy.seen.seed, toy.seen.data) == (7, 3, None)
    text = capsys.readouterr().out
    assert "Table 1. Toys" in text
    assert [p.name for p in folder.iterdir()] == ["toy.html"]


def test_a_figure_outside_its_tolerance_is_exit_code_one(toy, tmp_path, capsys):
    toy.value = 0.7
    assert call("run", "all", "--folder", tmp_path) == 1
    assert "OUTSIDE" in capsys.readouterr().out
    assert call("run", "all", "--folder", tmp_path, "--json") == 1
    (found,) = json.loads(capsys.readouterr().out)["studies"]
    assert found["failures"] == ["Table 1, r, c: printed 0.5, computed 0.70"]
    assert found["tables"]["Table 1"][0]["computed"] == 0.7


def test_names_that_are_missing_or_unknown(capsys):
    assert call("run") == 2
    assert "three-approaches" in capsys.readouterr().err
    assert call("run", "three-aproaches") == 2
    assert "Did you mean 'three-approaches'" in capsys.readouterr().err
    assert call("dance") == 2
