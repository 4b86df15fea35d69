"""Old homes answer with a warning, and hand out the very same classes."""

import importlib
import pickle
import re
import sys
from pathlib import Path

import pytest

import discreet as dc
from discreet import moved

SOURCE = Path(dc.__file__).parent


@pytest.fixture
def fresh():
    """Old homes as they are before anybody has asked for one."""
    kept = {name: sys.modules.pop(name) for name in moved.NEW_HOMES if name in sys.modules}
    yield
    for name in moved.NEW_HOMES:
        sys.modules.pop(name, None)
    sys.modules.update(kept)


@pytest.mark.parametrize("old", moved.NEW_HOMES)
def test_an_old_home_says_where_things_are(old, fresh):
    homes = moved.NEW_HOMES[old]
    with pytest.deprecated_call(match=f"{re.escape(old)} has moved to {re.escape(homes[0])}"):
        module = importlib.import_module(old)
    for home in homes:
        new = importlib.import_module(home)
        own = [name for name, what in vars(new).items() if getattr(what, "__module__", "") == home]
        for name in own:
            assert getattr(module, name) is getattr(new, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize(
    ("home", "name"),
    [
        ("discreet.facade.table", "Table"),
        ("discreet.facade.release", "Release"),
        ("discreet.facade.release", "Trial"),
        ("discreet.facade.microdata", "Microdata"),
        ("discreet.facade.microdata", "open"),
        ("discreet.design.storage", "read_table"),
        ("discreet.tables.keys", "KeyConvention"),
    ],
)
def test_public_names_of_version_0_2_are_found(home, name, fresh):
    with pytest.deprecated_call():
        module = importlib.import_module(home)
    assert getattr(module, name) is getattr(dc, name)


def test_a_pickle_of_version_0_2_opens(fresh):
    text = b"cdiscreet.design.release\nCellStatus\n."  # as a pickle names a class
    with pytest.deprecated_call():
        found = pickle.loads(text)
    assert found.suppressed == 1


def test_nothing_of_ours_imports_from_an_old_home():
    old = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in moved.NEW_HOMES))
    files = [p for p in SOURCE.rglob("*.py") if p.name != "moved.py"]
    assert [p for p in files if old.search(p.read_text())] == []
