"""What other packages register: one file and one line for each kind, and what may go wrong."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet import registry
from discreet.errors import ParameterError, PluginError, UnknownNameError

EXAMPLE = Path(__file__).parent / "plugins"
SOURCE = Path(registry.__file__).parents[1]


def install(site, name, entry_points):
    """A distribution as an installer leaves it."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the example package."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE / "discreet_example", folder / "discreet_example")
    install(folder, "discreet-example", (EXAMPLE / "entry_points.txt").read_text())
    return folder


def python(site, *arguments, cwd=None):
    """A new process in which the packages of the folder are installed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE), str(site)])}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


USE = """
import discreet as dc
from discreet import registry
from discreet.publication import Choice, Publication
from discreet.testing import check_fitter, check_method

secret = dc.Secret(b"a secret that is made for tests only")
data = dc.open("memory://people", id="id", secret=secret, name="people")
table = data.tabulate("a*b", engine="copying")
from discreet_example.copying import CopyingEngine
assert CopyingEngine.groupings > 0

release = table.protect("coin", p=0.4)
assert 0 < abs(release.z - table.z).max() <= 1
assert "probability 0.4" in release.statement.text
replayed = Publication("a*b", Choice("coin", {"p": 0.4}), Choice("halving")).run(table)
assert replayed.fit_result.is_converged
cell_key = registry.build("method", {"name": "cell-key", "matrix": {"name": "coin", "p": 0.4}})
assert cell_key.law.parameters == {"p": 0.4}
assert registry.build("method", "cell-key", {"matrix": "coin", "p": 0.4}).law == cell_key.law

found = dc.assess(table, release)
assert found["changed-cells"].value == (release.z != table.z).mean()
compared = dc.compare(table, ["coin:p=0.4", "drop-add"], fitters="halving", replicates=2, seed=1)
assert {"coin p=0.4", "drop-add"} <= set(compared.frame["label"].to_pylist())

assert dc.Suppress("even(80)").pattern(table).primary.any()
check_method("coin", draws=2_000)
check_fitter(registry.build("fitter", "halving"), table.design)


attacked = dc.attack(table, release, ["largest:most=2"])["largest"]
assert attacked.tally.claims == 2
assert "largest" in dc.attack(table, release)

written = release.write("table.lines").read_text().split()
assert sorted(map(int, written)) == sorted(release.z.tolist())
table.save("table.parquet")

records = {"x": list(range(40)), "y": [float(k * k % 17) for k in range(40)]}
made = dc.synthesize(records, "y ~ x", "twice", simulate=True, seed=1)
assert dc.assess(records, made)["more-records"].value == 1
"""
KINDS = """
for kind, built_in in registry.KINDS.items():
    if len(registry.names(kind)) > len(built_in):
        print(kind)
"""


@pytest.mark.slow
def test_one_file_and_one_line_register_one_of_each_kind(site, tmp_path):
    kinds = python(site, "-c", USE + KINDS, cwd=tmp_path)
    assert kinds.splitlines() == list(registry.KINDS)
    command = ("-m", "discreet.cli", "compare", "table.parquet", "--method", "coin:p=0.4")
    options = ("--fitter", "halving", "--measure", "changed-cells", "--replicates", "2")
    assert "changed-cells" in python(site, *command, *options, cwd=tmp_path)
    command = ("-m", "discreet.cli", "protect", "table.parquet", "--method", "coin", "-s", "p=0.4")
    assert "probability 0.4" in python(site, *command, "--out", "release.csv", cwd=tmp_path)


LINES = """
from configparser import ConfigParser
from discreet import registry

entries = ConfigParser()
entries.read({path!r})
groups = {{f"discreet.{{registry.group_of(kind)}}": kind for kind in registry.KINDS}}
for group in entries.sections():
    for name, target in entries[group].items():
        registry.KINDS[groups[group]][name] = target
"""


@pytest.mark.slow
def test_a_line_in_the_registry_does_the_same(tmp_path):
    lines = LINES.format(path=str(EXAMPLE / "entry_points.txt"))
    assert python(EXAMPLE, "-c", lines + USE + KINDS, cwd=tmp_path) == ""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs distributions with the given entry points for the time of a test."""
    monkeypatch.syspath_prepend(tmp_path)
    registry.plugin_entries.cache_clear()

    def add(name, *lines, group="matrices"):
        install(tmp_path, name, f"[discreet.{group}]\n" + "\n".join(lines))
        importlib.invalidate_caches()
        registry.plugin_entries.cache_clear()

    yield add
    registry.plugin_entries.cache_clear()


WORKS = "works = discreet.noise.pram:drop_add"


def test_a_broken_plug_in_is_named_and_does_not_break_others(installed):
    installed("sound", WORKS)
    installed("unsound", "absent = nowhere.at_all:matrix", "misspelt = discreet.noise:dorp_add")
    assert registry.build("matrix", "works", {"cap": 3}).max_move == 3
    for name, why in (("absent", "No module named 'nowhere'"), ("misspelt", "dorp_add")):
        with pytest.raises(PluginError, match=f"plug-in 'unsound'.*{name}.*{why}"):
            registry.load("matrix", name)
    with pytest.raises(UnknownNameError, match="'works'"):
        registry.load("matrix", "work")


FAULTY = """
class Fine:
    name, title, ending, media_type = "fine", "Fine", ".fine", "text/plain"
    def write(self, cube, options=None):
        return b"fine"

class NoEnding:
    name, title, media_type = "x", "X", "text/plain"
    def write(self, cube, options=None):
        return b""

class Asks(Fine):
    def __init__(self, needed):
        self.needed = needed

class Raises(Fine):
    def __init__(self):
        raise RuntimeError("not today")

class Measure:
    name, kind = "odd", "risk"
    def __call__(self, table, release):
        raise ValueError("not this table")

class Silent(Measure):
    def __call__(self, table, release):
        return None

made = Fine()
"""
OPTIONAL = """
from dataclasses import dataclass
from discreet.assessment.measure import EVERYTHING, Score

@dataclass(frozen=True)
class Above:
    least: float = 3
    name, kind = "above", "utility"
    def __call__(self, table, release):
        return Score(self.name, self.least, self.kind, EVERYTHING, "lower")
"""
FORMATS = {
    "made": "a class or function was expected",
    "NoEnding": "it has no ending",
    "Asks": "needs a value of needed",
    "Raises": "RuntimeError: not today",
    "absent": "AttributeError",
}


@pytest.fixture
def release():
    design = dc.Design.product({"row": 3, "col": 3}, "row*col")
    table = dc.Table.from_inner(design, np.array([3, 11, 32, 30, 1, 9, 13, 8, 12]))
    return table, table.with_secret(dc.Secret.demo()).protect("small-count-rounding")


@pytest.mark.parametrize("name", FORMATS)
def test_a_faulty_format_is_named_and_others_are_written(
    name, installed, tmp_path, caplog, release
):
    (tmp_path / "faulty_formats.py").write_text(FAULTY)
    installed("sound", "fine = faulty_formats:Fine", group="formats")
    installed("unsound", f"faulty = faulty_formats:{name}", group="formats")
    assert release[1].write(tmp_path / "p.csv").read_bytes()
    assert release[1].write(tmp_path / "p.fine").read_bytes() == b"fine"
    assert "plug-in 'unsound' does not give its format 'faulty'" in caplog.text
    assert FORMATS[name] in caplog.text
    assert "'sound'" not in caplog.text


@pytest.mark.parametrize("name", ["made", "Asks", "Raises", "Measure", "Silent"])
def test_a_faulty_measure_is_named_and_others_are_taken(name, installed, tmp_path, caplog, release):
    (tmp_path / "faulty_measures.py").write_text(FAULTY)
    installed("unsound", f"faulty = faulty_measures:{name}", group="measures")
    found = dc.assess(*release)
    assert len(found) > 10
    reasons = " ".join(skipped.reason for skipped in found.skipped)
    assert "plug-in 'unsound'" in caplog.text + reasons
    assert dc.assess(*release, ["unchanged-cells"])["unchanged-cells"].value >= 0


@pytest.mark.parametrize(
    ("name", "why"),
    [("Measure", "ValueError: not this table"), ("Silent", "a Score was expected, not NoneType")],
)
def test_a_measure_that_fails_stops_only_who_asked_for_it(name, why, installed, tmp_path, release):
    (tmp_path / f"failing_{name}.py").write_text(FAULTY)
    installed("unsound", f"faulty = failing_{name}:{name}", group="measures")
    table = release[0]
    found = dc.compare(table, ["drop-add"], measures="all", replicates=2, seed=1)
    notes = {row["measure"]: row["note"] for row in found.frame.to_pylist()}
    assert len([measure for measure, note in notes.items() if note is None]) > 10
    assert "plug-in 'unsound' does not give its measure 'faulty'" in notes["odd"]
    assert why in notes["odd"]
    for ask in (
        lambda: dc.compare(table, ["drop-add"], measures=["faulty"], replicates=2, seed=1),
        lambda: dc.compare(table, ["drop-add"], measures="faulty", replicates=2, seed=1),
        lambda: dc.assess(*release, ["unchanged-cells", "faulty"]),
    ):
        with pytest.raises(PluginError, match=f"plug-in 'unsound'.*'faulty'.*{why}"):
            ask()


def test_options_reach_the_measures_of_plug_ins(installed, tmp_path, release):
    (tmp_path / "threshold_measure.py").write_text(OPTIONAL)
    installed("sound", "above = threshold_measure:Above", group="measures")
    assert dc.assess(*release, ["above:least=9"])["above"].value == 9
    assert dc.assess(*release, ["above"], least=7)["above"].value == 7
    assert dc.assess(*release, least=8)["above"].value == 8


def test_a_method_that_is_no_class_or_cannot_be_made_names_its_plug_in(
    installed, tmp_path, release
):
    (tmp_path / "faulty_methods.py").write_text(FAULTY)
    lines = ("made = faulty_methods:made", "raises = faulty_methods:Raises")
    installed("unsound", *lines, group="methods")
    for name in ("made", "raises"):
        with pytest.raises(PluginError, match=f"plug-in 'unsound'.*'{name}'"):
            release[0].protect(name)


def test_a_plug_in_that_leaves_the_program_does_not(installed, tmp_path):
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)")
    installed("unsound", "leaves = leaving:matrix")
    with pytest.raises(PluginError, match="plug-in 'unsound'.*SystemExit"):
        registry.load("matrix", "leaves")


def test_rules_of_plug_ins_may_have_digits_in_their_names(installed):
    lines = ("rule_2 = discreet.rules.counts:Threshold", "gone2 = nowhere:Rule")
    installed("other", *lines, group="rules")
    assert dc.Suppress("rule_2(4)").rules == (dc.rules.Threshold(4),)
    with pytest.raises(PluginError, match="plug-in 'other'.*gone2"):
        dc.Suppress("gone2(80)")


def test_built_in_names_stay_what_they_are(installed, caplog):
    installed("bold", "drop-add = discreet.noise.pram:discrete_laplace", WORKS)
    assert registry.names("matrix") == [*registry.MATRICES, "works"]
    assert "plug-in 'bold' registers matrix 'drop-add', but that name is built in" in caplog.text
    assert registry.load("matrix", "drop-add").__name__ == "drop_add"


def test_a_name_that_two_plug_ins_register_means_neither(installed):
    installed("one", WORKS)
    installed("two", WORKS)
    with pytest.raises(PluginError, match=r"'(one|two)' and plug-in '(one|two)' both register"):
        registry.load("matrix", "works")


def call(*arguments):
    """The command line as it is built with what is installed; its exit code."""
    from discreet.cli import app, main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "app", app.build_app())
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
    return stop.value.code


def test_a_command_of_another_package(installed, tmp_path, capsys):
    (tmp_path / "greeting.py").write_text("def greet(name: str) -> None:\n    print('Hei', name)\n")
    installed("polite", "greet = greeting:greet", "broken = nowhere:at_all", group="commands")
    assert call("greet", "Kari") == 0
    assert "Hei Kari" in capsys.readouterr().out
    assert call("broken", "--help") == 2
    assert "plug-in 'polite' does not give its command 'broken'" in capsys.readouterr().err


def test_built_in_names_are_loaded_without_a_look_at_plug_ins():
    registry.plugin_entries.cache_clear()
    registry.build("method", "drop-add")
    assert registry.plugin_entries.cache_info().misses == 0


def test_nested_data_needs_names():
    with pytest.raises(ParameterError, match='matrix as plain data needs a "name"'):
        registry.build("method", "cell-key", {"matrix": {"D": 5, "V": 3}})
