"""Two files of the table builder touch records; everything else sees protected cubes alone."""

import ast
from pathlib import Path

import pytest

import discreet.serve

SERVE = Path(discreet.serve.__file__).parent
DOORS = {"data/live.py", "build.py"}
CONFIDENTIAL = (
    "discreet.records",
    "discreet.tabulate",
    "discreet.protect",
    "discreet.tables.truth",
    "discreet.facade.table",
    "discreet.facade.microdata",
    "discreet.facade.opening",
    "discreet.ledger",
    "discreet.demo",
    "ibis",
    "duckdb",
)


def imports(path):
    """What a file imports when it runs; imports for types alone do not count."""
    tree = ast.parse(path.read_text())
    for_types = [
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    ]
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def names(path):
    return path.relative_to(SERVE).as_posix()


def reaches(path):
    return sorted(m for m in imports(path) if m.startswith(CONFIDENTIAL))


@pytest.mark.parametrize("path", sorted(SERVE.rglob("*.py")), ids=names)
def test_nothing_but_the_doors_reaches_records(path):
    if names(path) not in DOORS:
        assert reaches(path) == []


def test_the_doors_do():
    """The control: the same look at the files that open records."""
    assert reaches(SERVE / "data/live.py")


@pytest.mark.parametrize("path", sorted(SERVE.rglob("*.py")), ids=names)
def test_only_the_doors_run_a_recipe(path):
    """Nothing else calls what makes a release of records, or counts them."""
    called = {
        node.func.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    if names(path) not in DOORS:
        assert not called & {"tabulate", "protect", "simulate"}
