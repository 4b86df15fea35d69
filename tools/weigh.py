"""What an installation weighs, core and extras: writes the table of docs/installation.md.

Sizes are those of the installed files of each distribution and of all that it needs, in this
environment. `python tools/weigh.py` prints the table, `--write` puts it into the page. `--clean`
installs the wheel of `make release` into new environments, and writes what these weigh.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "installation.md"
DEPENDENCIES = ROOT / "docs" / "dependencies.md"
BEGIN, END = "<!-- {} -->\n", "<!-- end of {} -->"
EXTRAS = {
    "": "tables, methods, fits, files in CSV and Parquet",
    "arrow": "tables of pyarrow, Arrow files, object stores",
    "private": "differentially private noise and budgets",
    "synthesis": "synthetic records by formulas",
    "serve": "the table builder",
    "xlsx": "Excel files out",
    "files": "Excel, SPSS, SAS and Stata files in",
    "postgres": "records in PostgreSQL",
    "spark": "records in Spark, which needs a Java runtime besides",
    "plot": "pictures",
    "sdmx": "SDMX code lists",
    "sign": "signatures of sites that are files",
    "ibis": "any other engine that Ibis knows",
}


SETS = {"pip install discreet": "discreet", "pip install 'discreet[arrow]'": "discreet[arrow]"}
"""What is installed in clean environments."""
_FIRST = """
import time
begun = time.process_time()
import discreet as dc
loaded = time.process_time()
dc.open({"sex": ["f", "m"] * 50, "age": list("abcde") * 20}).tabulate("sex*age")
print(loaded - begun, time.process_time() - begun)
"""


def closure(name: str, extra: str = "", seen: frozenset[str] = frozenset()) -> frozenset[str]:
    """Names of all distributions that one needs, with an extra, itself included."""
    mark = f"{name}[{extra}]"
    if mark in seen:
        return seen
    seen |= {mark}
    for text in _needs(name, extra):
        need = Requirement(text)
        if need.marker is None or need.marker.evaluate({"extra": extra}):
            for each in ("", *need.extras):
                seen = closure(_plain(need.name), each, seen)
    return seen


def weigh(names: frozenset[str]) -> tuple[int, float]:
    """How many distributions these are, and their MB on disk."""
    found = {name.split("[")[0] for name in names} - {"discreet"}
    return len(found), sum(map(_size, found)) / 1e6


def table() -> str:
    """The table of the page, in Markdown."""
    core = closure("discreet")
    lines = ["| you want | install | packages | MB |", "|---|---|---|---|"]
    for extra, what in EXTRAS.items():
        more = closure("discreet", extra) - (core if extra else frozenset())
        some = {n.split("[")[0] for n in core} if extra else set()
        count, size = weigh(frozenset(n for n in more if n.split("[")[0] not in some))
        name, sign = (f"discreet[{extra}]", "+") if extra else ("discreet", "")
        lines.append(f"| {what} | `pip install '{name}'` | {sign}{count} | {sign}{size:,.0f} |")
    return "\n".join(lines) + "\n"


def packages() -> str:
    """The weight of each package of the core, in Markdown; those below a megabyte together."""
    names = {name.split("[")[0] for name in closure("discreet")} - {"discreet"}
    sizes = sorted(((_size(name) / 1e6, name) for name in names), reverse=True)
    large = [(size, name) for size, name in sizes if size >= 1]
    small = [size for size, _ in sizes if size < 1]
    lines = ["| package of the core | MB |", "|---|---|"]
    lines += [f"| {name} | {size:,.0f} |" for size, name in large]
    lines += [f"| {len(small)} others | {sum(small):,.1f} |"]
    return "\n".join(lines) + "\n"


def what_each_brings(page: str) -> str:
    """The page on dependencies with the MB that would fall away with each row of the core."""
    core = {name.split("[")[0] for name in closure("discreet")} - {"discreet"}
    direct = {_plain(Requirement(text).name) for text in _needs("discreet", "")}

    def row(found: re.Match[str]) -> str:
        mine = {_plain(name) for name in found[1].split(", ")}
        others = (closure(name) for name in direct - mine)
        kept = {name.split("[")[0] for names in others for name in names}
        return f"| {found[1]} | {found[2]} | {weigh(frozenset(core - kept))[1]:,.0f} |"

    head, rest = page.split("## What makes the weight")
    head = re.sub(r"^\| ([\w, -]+) \| ([^|\n]+) \| [\d,]+ \|", row, head, flags=re.MULTILINE)
    return f"{head}## What makes the weight{rest}"


def weigh_clean() -> str:
    """The weight and the first seconds of new environments with the wheel alone, in Markdown."""
    head = (
        "installed",
        "packages",
        "MB",
        "compiled by Python, MB",
        "`import discreet`, s",
        "first table, s",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, wanted in SETS.items():
        with tempfile.TemporaryDirectory() as folder:
            lines.append(f"| {name} | {_weigh_new(Path(folder), wanted)} |")
    return "\n".join(lines) + "\n"


def _weigh_new(folder: Path, wanted: str) -> str:
    venv.create(folder, with_pip=True)
    python, places = folder / "bin" / "python", ROOT / "dist"

    def run(*words: str) -> str:
        command = [str(python), *words]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=folder
        ).stdout

    before = set(folder.rglob("site-packages/*"))
    run("-m", "pip", "install", "--quiet", "--find-links", str(places), wanted)
    listed = json.loads(run("-m", "pip", "list", "--format", "json", "--disable-pip-version-check"))
    others = [one for one in listed if one["name"] not in ("discreet", "pip", "setuptools")]
    run("-c", _FIRST)  # compiles, and is not counted
    load, first = map(float, run("-c", _FIRST).split())
    new = [top for top in folder.rglob("site-packages/*") if top not in before]
    new = [top for top in new if not top.name.startswith("discreet")]
    files = [path for top in new for path in (top, *top.rglob("*")) if path.is_file()]
    weight = dict.fromkeys((False, True), 0)
    for path in files:
        weight[path.suffix == ".pyc"] += path.stat().st_size
    sizes = [f"{size / 1e6:,.0f}" for size in weight.values()]
    return " | ".join([str(len(others)), *sizes, f"{load:.3f}", f"{first:.2f}"])


def _needs(name: str, extra: str) -> list[str]:
    if name == "discreet":  # what the project says now, not when it was installed
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return project["optional-dependencies"].get(extra, project["dependencies"])
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        return []


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _size(name: str) -> int:
    try:
        files = Distribution.from_name(name).files or []
    except PackageNotFoundError:
        raise SystemExit(f"{name} is not installed; run `make setup` first.") from None
    paths = (Path(str(f.locate())) for f in files if f.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.is_file())


def write(page: str, of: str, made: str) -> str:
    """The page with a table in its place."""
    before, rest = page.split(BEGIN.format(of))
    return before + BEGIN.format(of) + made + END.format(of) + rest.split(END.format(of))[1]


if __name__ == "__main__":
    if "--clean" in sys.argv:
        text = DEPENDENCIES.read_text(encoding="utf-8")
        DEPENDENCIES.write_text(write(text, "clean", weigh_clean()), encoding="utf-8")
        raise SystemExit
    tables = {"weights": table(), "packages": packages()}
    sys.stdout.write("\n".join(tables.values()))
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        for of, made in tables.items():
            text = write(text, of, made)
        PAGE.write_text(text, encoding="utf-8")
        text = DEPENDENCIES.read_text(encoding="utf-8")
        DEPENDENCIES.write_text(what_each_brings(text), encoding="utf-8")
