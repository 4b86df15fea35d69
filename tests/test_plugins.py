"""What other packages register: one file and one line for each kind, and what may go wrong."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import plugins, registry
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
from discreet.recipe import Choice, Recipe
from discreet.testing import check_fitter, check_method

secret = dc.Secret(b"a secret that is made for tests only")
data = dc.open("memory://people", id="id", secret=secret, name="people")
table = data.tabulate("a*b", engine="copying")
from discreet_example.copying import CopyingEngine
assert CopyingEngine.groupings > 0

release = table.protect("coin", p=0.4)
assert 0 < abs(release.z - table.z).max() <= 1
assert "probability 0.4" in release.statement.text
replayed = Recipe("a*b", Choice("coin", {"p": 0.4}), Choice("halving")).run(table)
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


written = release.write("table.lines").read_text().split()
assert sorted(map(int, written)) == sorted(release.z.tolist())
table.save("table.parquet")
print(*(kind for kind in registry.KINDS if len(registry.names(kind)) > len(registry.KINDS[kind])))
"""


def test_one_file_and_one_line_register_one_of_each_kind(site, tmp_path):
    kinds = python(site, "-c", USE, cwd=tmp_path).split()
    tried = {"method", "fitter", "measure", "engine", "connection", "format", "matrix", "rule"}
    assert set(kinds) == tried
    command = ("-m", "discreet.cli", "compare", "table.parquet", "--method", "coin:p=0.4")
    options = ("--fitter", "halving", "--measure", "changed-cells", "--replicates", "2")
    assert "changed-cells" in python(site, *command, *options, cwd=tmp_path)
    command = ("-m", "discreet.cli", "protect", "table.parquet", "--method", "coin", "-s", "p=0.4")
    assert "probability 0.4" in python(site, *command, "--out", "release.csv", cwd=tmp_path)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs distributions with the given entry points for the time of a test."""
    monkeypatch.syspath_prepend(tmp_path)
    plugins.entries.cache_clear()

    def add(name, *lines):
        install(tmp_path, name, "[discreet.matrices]\n" + "\n".join(lines))
        importlib.invalidate_caches()
        plugins.entries.cache_clear()

    yield add
    plugins.entries.cache_clear()


WORKS = "works = discreet.noise.drop_add:drop_add"


def test_a_broken_plug_in_is_named_and_does_not_break_others(installed, caplog):
    installed("sound", WORKS)
    installed("unsound", "absent = nowhere.at_all:matrix", "misspelt = discreet.noise:dorp_add")
    assert registry.build("matrix", "works", {"cap": 3}).max_move == 3
    for name, why in (("absent", "No module named 'nowhere'"), ("misspelt", "dorp_add")):
        with pytest.raises(PluginError, match=f"plug-in 'unsound'.*{name}.*{why}"):
            registry.load("matrix", name)
    assert registry.working("matrix") == [*registry.MATRICES, "works"]
    assert "plug-in 'unsound'" in caplog.text
    assert "sound'" in caplog.text
    with pytest.raises(UnknownNameError, match="'works'"):
        registry.load("matrix", "work")


def test_built_in_names_stay_what_they_are(installed, caplog):
    installed("bold", "drop-add = discreet.noise.laplace:discrete_laplace", WORKS)
    assert registry.names("matrix") == [*registry.MATRICES, "works"]
    assert "plug-in 'bold' registers matrix 'drop-add', but that name is built in" in caplog.text
    assert registry.load("matrix", "drop-add").__name__ == "drop_add"


def test_a_name_that_two_plug_ins_register_means_neither(installed):
    installed("one", WORKS)
    installed("two", WORKS)
    with pytest.raises(PluginError, match=r"'(one|two)' and plug-in '(one|two)' both register"):
        registry.load("matrix", "works")


def test_built_in_names_are_loaded_without_a_look_at_plug_ins():
    plugins.entries.cache_clear()
    registry.build("method", "drop-add")
    assert plugins.entries.cache_info().misses == 0


def test_nested_data_needs_names():
    with pytest.raises(ParameterError, match='matrix as plain data needs a "name"'):
        registry.build("method", "cell-key", {"matrix": {"D": 5, "V": 3}})
