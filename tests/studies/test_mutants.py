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
    assert len(tool.MUTANTS) >= 110
    paths = [path for package in tool.PACKAGES for path in package.rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    for mutant in tool.MUTANTS:
        assert text.count(mutant.old) == 1, mutant.name
        assert mutant.old != mutant.new
        files = [word for word in mutant.tests.split() if word.startswith("tests/")]
        assert all((ROOT / file).exists() for file in files)


def test_a_survivor_is_reported(tool, monkeypatch, capsys):
    survivor = tool.Mutant("harmless", '"""', "'''", "tests/none")
    monkeypatch.setattr(tool, "MUTANTS", (survivor,))
    monkeypatch.setattr(tool, "_passes", lambda sources, tests: True)
    monkeypatch.setattr(tool, "_dies", lambda sources, mutant: False)
    assert tool.main([]) == 1
    assert "1 mutants, 1 survivors" in capsys.readouterr().out


def test_the_file_of_a_formula_is_found(tool, tmp_path):
    (tmp_path / "one.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("x = 2\ny = 2\n")
    assert tool.place_of(tool.Mutant("", "x = 1", "", ""), tmp_path).name == "one.py"
    for text in ("x = ", "z = "):
        with pytest.raises(SystemExit, match="must occur once"):
            tool.place_of(tool.Mutant("", text, "", ""), tmp_path)
