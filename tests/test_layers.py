"""The flow of the package is the order of its folders: nothing imports what lies above it."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "discreet"
LAYERS = [
    {"arrays", "display", "errors", "files", "progress", "registry"}
    | {"arrow_memory", "arrow_values", "columns", "delimited", "frames", "parquet"}
    | {"accounting", "digests", "lazy", "moved", "randomness", "signatures"},
    {"design"},
    {"solve", "tables"},
    {"ledger"},
    {"records", "noise", "rules"},
    {"protect"},
    {"suppress"},
    {"release"},
    {"synthesis"},
    {"facade", "demo"},
    {"assessment"},
    {"attacks"},
    {"publication", "testing"},
    {"serve"},
    {"cli"},
]
LEVEL = {name: height for height, layer in enumerate(LAYERS) for name in layer}
GUESTS: dict[str, str] = {}
SIDE_BY_SIDE = [("solve", "tables"), ("tables", "solve")]
"""Rooms of one floor that know nothing of each other."""
REASONS = ("start-up time", "optional package")
"""Why one of our modules may be imported inside a function; the reason stands on its line."""


def modules():
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def name_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def trees():
    """Every file, parsed: by the one worker that asks for it."""
    return {path: ast.parse(path.read_text()) for path in modules()}


NAMES = {name_of(path): path for path in modules()}


def imports(path):
    """Modules that a file imports, also inside functions and for types alone."""
    for node in ast.walk(trees()[path]):
        yield from imported(node)


def imported(node):
    if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)


def room_of(module):
    """The room of one of our modules, `None` for others."""
    parts = module.split(".")
    within = "/".join(parts[1:])
    for folder, floor in GUESTS.items():
        if within == folder or within.startswith(f"{folder}/"):
            return floor
    return parts[1] if parts[0] == "discreet" and len(parts) > 1 and parts[1] in LEVEL else None


@pytest.mark.parametrize("room", sorted(LEVEL))
def test_nothing_imports_from_above(room):
    faults = []
    for path in trees():
        if room_of(name_of(path)) != room:
            continue
        for module in imports(path):
            if module.split(".")[0] == "discreet_studies":
                faults.append(f"{path.relative_to(SOURCE)} imports {module}, a package of its own")
            other = room_of(module)
            if other is None:
                continue
            if LEVEL[other] > LEVEL[room] or (room, other) in SIDE_BY_SIDE:
                faults.append(f"{path.relative_to(SOURCE)} imports {module}")
    assert faults == []


def test_every_file_has_a_place():
    assert [name_of(path) for path in trees() if room_of(name_of(path)) is None] == []


def running(tree):
    """The nodes of a file without imports for types alone, which never run."""
    skipped = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    return [node for node in ast.walk(tree) if id(node) not in skipped]


def targets(node):
    """Our modules that an import loads; `from discreet.design import formula` means the module."""
    if isinstance(node, ast.ImportFrom) and node.module:
        whole = [f"{node.module}.{alias.name}" for alias in node.names]
        return {name if name in NAMES else node.module for name in whole} & NAMES.keys()
    return set(imported(node)) & NAMES.keys()


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions count as well."""
    edges = {
        name_of(path): {m for n in running(tree) for m in targets(n)} - {name_of(path)}
        for path, tree in trees().items()
    }
    while free := [name for name, others in edges.items() if not others & edges.keys()]:
        for name in free:
            del edges[name]
    assert sorted(edges) == []


def lazy_imports():
    """Our own modules that are imported inside functions, with the lines that say so."""
    for path, tree in trees().items():
        lines = path.read_text().splitlines()
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        inside = {
            id(node): node
            for function in ast.walk(tree)
            if isinstance(function, functions)
            for node in ast.walk(function)
        }
        for node in inside.values():
            ours = [m for m in imported(node) if m.split(".")[0] == "discreet"]
            if ours:
                yield path, ours[0], "\n".join(lines[node.lineno - 1 : node.end_lineno])


def test_imports_inside_functions_have_a_reason():
    silent = [
        f"{path.relative_to(SOURCE)}: {module}"
        for path, module, text in lazy_imports()
        if not any(f"# {reason}" in text for reason in REASONS)
    ]
    assert silent == []


def test_what_a_design_can_do_is_asked_of_the_design():
    asks = re.compile(r"isinstance\([^)]*Design\b")
    outside = [p for p in modules() if p.relative_to(SOURCE).parts[0] != "design"]
    assert [p.relative_to(SOURCE) for p in outside if asks.search(p.read_text())] == []


DEEP = re.compile(r"^ *from (discreet(?:\.\w+){2,}) import (\([^)]*\)|.*)$", re.MULTILINE)
MOST_FILES = 5


def test_what_many_tests_need_stands_at_the_door_of_its_room():
    """Names that few tests need are those of one file; of others a recut would break all tests."""
    files = {}
    for path in Path(__file__).parent.rglob("*.py"):
        for module, names in DEEP.findall(path.read_text()):
            for name in re.findall(r"\w+", re.sub(r" as \w+|#.*", "", names)):
                files.setdefault((module, name), set()).add(path)
    many = {
        f"{module}.{name}"
        for (module, name), found in files.items()
        if len(found) > MOST_FILES and not module.endswith(f".{name}")
    }
    assert many - NAMES.keys() == set()


HEAVY = ["numba", "ibis", "duckdb", "scipy", "highspy", "opendp", "pyspark", "fastapi", "altair"]
HEAVY += ["pandas", "polars", "pyarrow", "narwhals", "typer", "rich", "pysdmx", "formulaic"]


def test_importing_the_package_is_light():
    program = (
        "import sys, discreet; from discreet import Table, Design, Hierarchy, Release, margins;"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_public_name_loads():
    import discreet

    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    assert set(discreet.__all__) <= {*discreet._HOMES, "__version__"}


BARE = ["duckdb", "ibis", "opendp", "pyarrow", "pandas", "polars", "narwhals", "cupy"]


def test_designs_and_fits_need_neither_databases_nor_frames():
    """Machines with graphics processors often have numerical packages alone."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({BARE!r}));"
        "import pkgutil, importlib, discreet.design, discreet.solve;"
        "[importlib.import_module(m.name) for p in (discreet.design, discreet.solve)"
        " for m in pkgutil.walk_packages(p.__path__, p.__name__ + '.')];"
        "import discreet as dc; d = dc.Design.product({'a': 2, 'b': 3}, 'a + b');"
        "print(dc.LogLinear()(d, d.aggregate([1, 2, 3, 4, 5, 6])).require().status.name)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "converged", done.stderr
