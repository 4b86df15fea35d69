"""The tool that changes formulas: its list must fit the sources."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("mutants", ROOT / "tools" / "mutants.py")


@pytest.fixture(scope="module")
def tool():
    import sys

    module = importlib.util.module_from_spec(SPEC)
    sys.modules["mutants"] = module
    SPEC.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


def test_every_formula_occurs_once_and_every_test_exists(tool):
    assert len(tool.MUTANTS) >= 24
    for mutant in tool.MUTANTS:
        paths = {mutant.path(package.parent) for package in tool.PACKAGES}
        (text,) = (path.read_text(encoding="utf-8") for path in paths if path.exists())
        assert text.count(mutant.old) == 1, mutant.name
        assert mutant.old != mutant.new
        files = [word for word in mutant.tests.split() if word.startswith("tests/")]
        assert all((ROOT / file).exists() for file in files)


def test_a_survivor_is_reported(tool, monkeypatch, capsys):
    survivor = tool.Mutant("harmless", "discreet_studies/__init__.py", '"""', "'''", "tests/none")
    monkeypatch.setattr(tool, "MUTANTS", (survivor,))
    monkeypatch.setattr(tool, "_passes", lambda sources, tests: True)
    monkeypatch.setattr(tool, "_dies", lambda sources, mutant: False)
    assert tool.main([]) == 1
    assert "1 mutants, 1 survivors" in capsys.readouterr().out
