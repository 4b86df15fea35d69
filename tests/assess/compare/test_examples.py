"""Examples in docstrings say what happens."""

import doctest
import importlib
from pathlib import Path

import pytest

import discreet.assessment

ROOT = Path(discreet.assessment.__file__).parent
MODULES = sorted(
    ".".join(("discreet.assessment", *path.relative_to(ROOT).with_suffix("").parts))
    for folder in ("compare", "plots", "report")
    for path in (ROOT / folder).glob("*.py")
    if ">>>" in path.read_text()
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_hold(module):
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert failed == 0
    assert tried > 0
