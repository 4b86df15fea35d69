"""The flow of the package is the order of its folders: nothing imports what lies above it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "discreet"
LAYERS = [
    {"arrays", "errors", "randomness", "progress", "files", "registry", "plugins"}
    | {"accounting", "digests", "processes"},
    {"design"},
    {"ledger"},
    {"solve"},
    {"microdata", "tabulate", "noise", "demo"},
    {"protect"},
    {"release", "synthesize"},
    {"assess"},
    {"recipe", "testing"},
    {"serve"},
    {"cli"},
]
# A table and a release offer what is made of them as methods; they are imported when called.
DOORS = {
    ("design/release.py", "discreet.solve.fit"),
    ("design/table.py", "discreet.protect.publish"),
    ("design/table.py", "discreet.protect.simulate"),
    ("design/release.py", "discreet.release.fitting"),
    ("design/release.py", "discreet.release.tabulate"),
    ("design/release.py", "discreet.release.sums"),
    ("design/release.py", "discreet.release.microdata"),
    ("design/release.py", "discreet.release.rounding"),
    ("design/release.py", "discreet.release.uncertainty"),
    ("design/release.py", "discreet.release.files"),
    ("design/release.py", "discreet.release.formats"),
    ("design/storage.py", "discreet.release.files"),
}
LEVEL = {name: height for height, layer in enumerate(LAYERS) for name in layer}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def modules():
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_nothing_imports_from_above(path):
    place = path.relative_to(SOURCE)
    own = place.parts[0].removesuffix(".py")
    assert own in LEVEL, f"{own} has no place in the layers"
    for module in imports(path):
        parts = module.split(".")
        assert parts[0] != "discreet_studies", f"{place} imports {module}, a package of its own"
        if parts[0] != "discreet" or len(parts) < 2 or parts[1] not in LEVEL:
            continue
        if (place.as_posix(), ".".join(parts[:3])) in DOORS:
            continue
        assert LEVEL[parts[1]] <= LEVEL[own], f"{place} imports {module} from above"


def test_what_a_design_can_do_is_asked_of_the_design():
    asks = re.compile(r"isinstance\([^)]*Design\b")
    outside = [p for p in modules() if p.relative_to(SOURCE).parts[0] != "design"]
    assert [p.relative_to(SOURCE) for p in outside if asks.search(p.read_text())] == []


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
    assert set(discreet.__all__) == {*discreet._HOME, *discreet._MODULES, "__version__"}


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
