"""Old homes answer with a warning, and hand out the very same classes."""

import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as dc
from discreet import moved

SOURCE = Path(dc.__file__).parent


@pytest.fixture
def fresh():
    """Old homes as they are before anybody has asked for one, and no trace of them afterwards."""
    kept = {name: sys.modules.pop(name) for name in moved.NEW_HOMES if name in sys.modules}
    yield
    for name in moved.NEW_HOMES:
        sys.modules.pop(name, None)
        above, _, own = name.rpartition(".")
        vars(sys.modules.get(above, sys)).pop(own, None)  # an import leaves a name in its package
    sys.modules.update(kept)


@pytest.mark.parametrize("old", sorted(moved.NEW_HOMES.keys() - moved.PACKAGES))
def test_an_old_home_says_where_things_are(old, fresh):
    homes = moved.NEW_HOMES[old]
    with pytest.deprecated_call(match=f"{re.escape(old)} has moved to {re.escape(homes[0])}"):
        module = importlib.import_module(old)
    for home in homes:
        new = importlib.import_module(home)
        own = [name for name, what in vars(new).items() if getattr(what, "__module__", "") == home]
        own = [name for name in own if not name.startswith("__")]
        for name in own:
            assert getattr(module, name) is getattr(new, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize(
    ("home", "name"),
    [
        ("discreet.design.table", "Table"),
        ("discreet.design.release", "Release"),
        ("discreet.design.release", "Trial"),
        ("discreet.microdata.microdata", "Microdata"),
        ("discreet.microdata.open", "open"),
        ("discreet.microdata.secret", "Secret"),
        ("discreet.protect.suppress.suppress", "Suppress"),
    ],
)
def test_public_names_of_version_0_2_are_found(home, name, fresh):
    with pytest.deprecated_call():
        module = importlib.import_module(home)
    assert getattr(module, name) is getattr(dc, name)


@pytest.mark.parametrize("name", moved.TOP_NAMES)
def test_a_name_that_left_the_top_says_where_it_is(name):
    home = moved.TOP_NAMES[name]
    with pytest.deprecated_call(match=f"discreet.{name} has moved to {home}.{name}"):
        found = getattr(dc, name)
    assert found is getattr(importlib.import_module(home), name)
    assert name not in dc.__all__


PROGRAM = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
from discreet.assess import plots
from discreet.assess.measure import Score
from discreet.synthesize.safety import UnsafeRowsError
import discreet as dc
table = dc.Table.from_counts({"a": ["x", "y"], "n": [1, 2]}, count="n", margins="a")
release = dc.Release(table.design, table.z, dc.tables.statement.Statement())
assert dc.assess(table, release)["false-zeros"].value == 0
"""


def test_functions_that_were_packages_can_still_be_called():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_pickle_of_version_0_2_opens(fresh):
    text = b"cdiscreet.design.release\nCellStatus\n."  # as a pickle names a class
    with pytest.deprecated_call():
        found = pickle.loads(text)
    assert found.suppressed == 1


def test_nothing_of_ours_imports_from_an_old_home():
    names = "|".join(map(re.escape, moved.NEW_HOMES))
    old = re.compile(rf"(?:from|import) (?:{names})\b(?! import (?:assess|synthesize)\b)")
    files = [p for p in SOURCE.rglob("*.py") if p.name != "moved.py"]
    assert [p for p in files if old.search(p.read_text())] == []
