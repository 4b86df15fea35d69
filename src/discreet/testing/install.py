"""Golden cases: does every method give the same figures here as where they were recorded?

Every method, fitter and synthesizer that discreet brings runs once on a small table of invented
records, and its figures are compared with those in `golden.json`. Nothing is installed, fetched or
asked of the user's own data. `python -m discreet.testing.install` writes the golden figures anew.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import discreet
from discreet import registry
from discreet.design.hierarchy import Hierarchy
from discreet.errors import MissingDependencyError
from discreet.facade.microdata import Microdata
from discreet.facade.opening import open as open_records
from discreet.files import ending_of, write_text
from discreet.progress import report
from discreet.records.secret import Secret

Figures = list[float | None]
Verdict = Literal["same", "differs", "not installed", "failed"]
GOLDEN = "golden.json"
_PEOPLE = 240
_CLOSE = 1e-6  # of a figure: fits stop at their tolerance, and libraries add in another order
_SEED = 1
_SIGN_OFF = ("name and role", "date", "signature")
_CODES = ("sex", "age", "area")
_COUNTS, _SUMS = "area*sex*age", "area*sex"
_MODEL, _HYBRID = "wages ~ sex + age", "wages ~ local(1) + shared(age)"
_METHODS = {
    "cell-key": "cell-key:D=5, V=3, js=2",
    "discrete-gaussian": "discrete-gaussian:rho=0.5",
    "discrete-laplace": "discrete-laplace:epsilon=1",
    "laplace": "laplace:epsilon=1",
    "magnitude-key": "magnitude-key",
}
"""Methods with options; the others run with their defaults."""
_SYNTHESIZERS: dict[str, dict[str, Any]] = {
    "from-residuals": {"share": 0.5},
    "hybrid": {"clusters": "area"},
    "mixed": {"counts": "safe"},
    "residual-correlation": {"correlations": 0.5},
    "romm": {"lambda_": 0.5},
    "score-correlation": {"correlations": 0.5},
}


@dataclass(frozen=True)
class GoldenResult:
    """What came of one golden case."""

    case: str  # its kind and name, "method safe"
    verdict: Verdict
    seconds: float
    note: str = ""  # the first figure that differs, the package that is missing, or the error


@dataclass(frozen=True)
class Validation:
    """What came of all golden cases on this machine.

    Attributes:
      results: One for each case.
      versions: Of discreet, Python, the system and the packages that compute figures; and the
        digest of discreet's installed files.
    """

    results: tuple[GoldenResult, ...]
    versions: Mapping[str, str]

    @property
    def is_passed(self) -> bool:
        """Whether every case that could run gave the golden figures."""
        return not self.faults

    @property
    def outcome(self) -> str:
        """The outcome in a word or two: what did not run has not passed."""
        if self.faults:
            return "FAILED"
        is_whole = all(result.verdict == "same" for result in self.results)
        return "passed" if is_whole else "passed in part"

    @property
    def faults(self) -> list[GoldenResult]:
        """The cases that differ or failed."""
        return [f for f in self.results if f.verdict in ("differs", "failed")]

    @property
    def summary(self) -> str:
        """The outcome in a sentence."""
        same = sum(result.verdict == "same" for result in self.results)
        absent = sum(result.verdict == "not installed" for result in self.results)
        said = f"{same} of {len(self.results)} golden cases gave the figures of this version"
        if absent:
            said += f"; {absent} could not run, for want of an extra"
        if self.faults:
            said += f"; {len(self.faults)} FAILED"
        return said + "."

    def write(self, path: str | Path) -> Path:
        """Write the report, with lines to sign it off.

        Args:
          path: A name that ends in `.md` for Markdown or in `.html` for a page.
        """
        ending = ending_of(path, (".md", ".html"))
        from discreet.assessment.report.page import templates  # start-up time: jinja2

        made = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        page = templates("discreet.testing").get_template(f"validation{ending}")
        return write_text(path, page.render(validation=self, made=made, sign=_SIGN_OFF))


def check_install(golden: Mapping[str, Figures] | None = None) -> Validation:
    """Run every golden case on this machine, which takes seconds; nothing is installed or fetched.

    Args:
      golden: Figures by case; those that come with this version when absent.

    Returns:
      What came of each case; ask `is_passed`, and `write` the report.
    """
    wanted = read_golden() if golden is None else golden
    results = []
    cases = _cases()
    for done, (case, run) in enumerate(cases.items()):
        report(f"checking {case}", done / len(cases))
        results.append(_judge(case, run, wanted.get(case)))
    report("checking the installation", 1.0)
    return Validation(tuple(results), _versions())


def read_golden() -> dict[str, Figures]:
    """The figures that come with this version, by case."""
    text = files("discreet.testing").joinpath(GOLDEN).read_text(encoding="utf-8")
    found: dict[str, Figures] = json.loads(text)
    return found


def _judge(case: str, run: Callable[[], Figures], wanted: Figures | None) -> GoldenResult:
    start = time.perf_counter()
    try:
        found = run()
    except MissingDependencyError as missing:
        return GoldenResult(case, "not installed", time.perf_counter() - start, str(missing))
    except Exception as error:  # a report says of every case what came of it
        note = f"{type(error).__name__}: {error}".replace("\n", " ").replace("|", "/")
        return GoldenResult(case, "failed", time.perf_counter() - start, note)
    seconds = time.perf_counter() - start
    if wanted is None:
        return GoldenResult(case, "failed", seconds, "there are no golden figures of this case")
    difference = _first_difference(found, wanted)
    return GoldenResult(case, "differs" if difference else "same", seconds, difference)


def _first_difference(found: Figures, wanted: Figures) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} figures instead of {len(wanted)}"
    for place, (here, there) in enumerate(zip(found, wanted, strict=True)):
        if (here is None) != (there is None):
            return f"figure {place}: {here} instead of {there}"
        if here is not None and there is not None:
            scale = max(1.0, abs(there))
            if not abs(here - there) <= _CLOSE * scale:
                return f"figure {place}: {here:.9g} instead of {there:.9g}"
    return ""


def _cases() -> dict[str, Callable[[], Figures]]:
    """Every case by its kind and name; what other packages register is not ours to judge."""
    people = _people()
    table, sums = people.tabulate(_COUNTS), people.tabulate(_SUMS, value="turnover")
    release = table.protect(_METHODS["cell-key"])

    def count(name: str) -> Figures:
        given = sums.contributions
        values = given.sum if given is not None and name == "sums" else table.z
        return [float(value) for value in values]

    def protect(name: str) -> Figures:
        subject = sums if name == "magnitude-key" else table
        return _figures(subject.simulate(_METHODS.get(name, name), seed=_SEED))

    def fit(name: str) -> Figures:
        return _figures(release.fit(name))

    def replace_amounts(name: str) -> Figures:
        options = _SYNTHESIZERS.get(name, {})
        model = _HYBRID if name == "hybrid" else _MODEL
        made = discreet.synthesize(people, model, method=name, simulate=True, seed=_SEED, **options)
        return [round(float(value), 9) for value in made.frame.column("wages").to_pylist()]

    kinds: list[tuple[str, Iterable[str], Callable[[str], Figures]]]
    kinds = [("table of", ("counts", "sums"), count)]
    kinds += [("method", registry.METHODS, protect), ("fitter", registry.FITTERS, fit)]
    kinds += [("synthesizer", registry.SYNTHESIZERS, replace_amounts)]
    return {f"{kind} {name}": _bind(run, name) for kind, names, run in kinds for name in names}


def _bind(run: Callable[[str], Figures], name: str) -> Callable[[], Figures]:
    return lambda: run(name)


def _figures(made: Any) -> Figures:
    """The values of a release or a trial; nothing where one is hidden."""
    pairs = zip(made.z.tolist(), made.hidden.tolist(), strict=True)
    return [None if is_hidden else round(float(value), 9) for value, is_hidden in pairs]


def _people() -> Microdata:
    """Invented people, by a formula that no random generator takes part in."""
    rows = range(_PEOPLE)
    columns: dict[str, Any] = {
        "pid": [f"p{i:03}" for i in rows],
        "sex": ["fm"[(i * i // 3) % 2] for i in rows],
        "age": ["abcd"[(i * i + i // 5) % 4] for i in rows],
        "area": [f"{(i * i // 7) % 3}{(i * 5 // 11) % 2}" for i in rows],
        "wages": [(i * 53) % 97 + 50 for i in rows],
        "turnover": [(i * 37) % 101 + 1 + 900 * (i % 29 == 0) for i in rows],
    }
    trees = {name: Hierarchy.flat(sorted(set(columns[name]))) for name in _CODES}
    return open_records(
        columns, id="pid", secret=Secret.demo(), name="validation", hierarchies=trees
    )


def digest_of_files(contents: Iterable[tuple[str, bytes]]) -> str:
    """One digest of the package's files by their names, for an installation and for a wheel."""
    found = hashlib.sha256()
    for name, content in sorted(contents):
        found.update(f"{name}\n{len(content)}\n".encode())
        found.update(content)
    return found.hexdigest()


def _installed_files() -> Iterator[tuple[str, bytes]]:
    root = Path(discreet.__file__).parent
    for path in root.rglob("*"):
        # Python and numba keep there what they compiled, which no release holds
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(root).as_posix(), path.read_bytes()


def _versions() -> dict[str, str]:
    found = {"discreet": importlib.metadata.version("discreet")}
    found["installed files"] = f"SHA-256 {digest_of_files(_installed_files())}"
    found["Python"] = platform.python_version()
    found["system"] = f"{platform.system()} {platform.release()}, {platform.machine()}"
    for package in (
        "numpy",
        "scipy",
        "numba",
        "highspy",
        "duckdb",
        "arro3-core",
        "opendp",
        "formulaic",
    ):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


if __name__ == "__main__":
    made = {case: run() for case, run in _cases().items()}
    body = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in made.items())
    target = Path(__file__).with_name(GOLDEN)
    write_text(target, "{\n" + body + "\n}\n")
    sys.stdout.write(f"{len(made)} cases are in {target}.\n")
