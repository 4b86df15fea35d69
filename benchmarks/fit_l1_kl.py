"""Log-linear, Poisson and least absolute fits: a five-way, a hierarchical and a survey table.

Run: python -m benchmarks.fit_l1_kl [--data ../shared/data] [CASE …]
"""

import argparse
import csv
import gzip
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from benchmarks._measure import best_of, peak_gib, print_table
from discreet import registry

FIVE_WAY = {"a": 7, "b": 19, "c": 12, "d": 52, "e": 6}
CENSUS = ["region", "age", "occupation", "sex"]
SURVEY = ["PUMA", "HISP", "RAC1P", "OWN_RENT", "INDP_CAT", "EDU"]
HEADER = ["case", "inner", "published", "seconds", "CPU s", "peak GiB", "steps", "status"]
QUALITY = ["max deviation", "gap", "peer s", "times faster", "peer"]


@dataclass(frozen=True)
class Case:
    """What is fitted, to what, how exactly, and what the field takes for it.

    Attributes:
      source: The design and its true published values.
      noise: What happens to the values before the fit.
      fitter: Name in the registry.
      tolerance: As the fitter takes it.
      peer_seconds: Recorded time of the fastest peer that reaches this deviation, or comes nearest.
      peer: Which one, and how far it came.
    """

    source: Callable[[Path], tuple[Any, np.ndarray]]
    noise: Callable[[np.ndarray], np.ndarray]
    fitter: str
    tolerance: float
    peer_seconds: float | None = None
    peer: str = "none recorded"


def five_way(order: int) -> Callable[[Path], tuple[Any, np.ndarray]]:
    """All margins of one order of the labour force table."""

    def source(data: Path) -> tuple[Any, np.ndarray]:
        with gzip.open(data / "lfs_like_agg.csv.gz", "rt") as lines:
            rows = np.array([[int(v) for v in row] for row in list(csv.reader(lines))[1:]])
        y = np.zeros(tuple(FIVE_WAY.values()), dtype=np.int64)
        y[tuple(rows[:, :5].T - 1)] = rows[:, 5]
        design = dc.Design.product(FIVE_WAY, dc.margins(list(FIVE_WAY), order, lower=False))
        return design, design.aggregate(y.ravel())

    return source


def census(margins: Any) -> Callable[[Path], tuple[Any, np.ndarray]]:
    """The demo census, all levels of every variable published; a million persons."""

    def source(_: Path) -> tuple[Any, np.ndarray]:
        table = dc.demo.census(persons=1_000_000, seed=1).tabulate(margins)
        return table.design, np.asarray(table.z)

    return source


def survey(order: int) -> Callable[[Path], tuple[Any, np.ndarray]]:
    """All margins of one order of a survey of 27,253 persons, with cell-key noise up to 5."""

    def source(data: Path) -> tuple[Any, np.ndarray]:
        with gzip.open(data / "acs_nist_national2019.csv.gz", "rt") as lines:
            rows = list(csv.DictReader(lines))
        codes = [np.unique([row[v] for row in rows], return_inverse=True)[1] for v in SURVEY]
        sizes = {v: int(code.max()) + 1 for v, code in zip(SURVEY, codes, strict=True)}
        design = dc.Design.product(sizes, dc.margins(SURVEY, order, lower=False))
        y, keys = (np.zeros(tuple(sizes.values()), dtype=np.int64) for _ in range(2))
        np.add.at(y, tuple(codes), 1)
        np.add.at(keys, tuple(codes), np.random.default_rng(1).integers(2**32, size=len(rows)))
        z, key = design.aggregate(y.ravel()), design.aggregate(keys.ravel()) % 2**32
        return design, z + dc.perturbation_table(D=5, V=3, js=2).noise(z, key, 2**32)

    return source


def exact(z: np.ndarray) -> np.ndarray:
    """The values as they are."""
    return z


def laplace(z: np.ndarray) -> np.ndarray:
    """Laplace noise of scale 20: ten margins of the same people at epsilon 0.5."""
    return z + np.random.default_rng(1).laplace(0, 20, len(z))


def small(z: np.ndarray) -> np.ndarray:
    """Whole numbers from -2 to 2 on cells that are not zero, as cell keys give."""
    noise = np.random.default_rng(2).integers(-2, 3, len(z))
    return np.where(z > 0, np.maximum(z + noise, 0), 0)


def clipped(z: np.ndarray) -> np.ndarray:
    """The same Laplace noise, negative values set to zero."""
    return np.maximum(laplace(z), 0.0)


TWO, THREE = five_way(2), five_way(3)
LEVELS = census(dc.margins(CENSUS, 3, lower=False))
EVERYTHING = census("*".join(CENSUS))
CASES = {
    "log-linear-2": Case(TWO, exact, "log-linear", 1e-6, 28.0, "SSBtools (1e-6)"),
    "log-linear-2-rough": Case(TWO, exact, "log-linear", 0.056, 4.2, "ipfn (0.056)"),
    "log-linear-3": Case(THREE, exact, "log-linear", 1e-2, 235.0, "humanleague (0.029)"),
    "log-linear-3-rough": Case(THREE, exact, "log-linear", 2.7, 65.0, "ipfn (2.7)"),
    "log-linear-census-3": Case(LEVELS, exact, "log-linear", 1e-6),
    "log-linear-census-all": Case(EVERYTHING, exact, "log-linear", 1e-6),
    "least-absolute-2": Case(TWO, laplace, "least-absolute", 1e-4),
    "least-absolute-3": Case(THREE, laplace, "least-absolute", 1e-3),
    "least-absolute-census-3": Case(LEVELS, laplace, "least-absolute", 1e-3),
    "least-absolute-census-all": Case(EVERYTHING, laplace, "least-absolute", 1e-3),
    "least-absolute-survey-2": Case(survey(2), exact, "least-absolute", 1e-4),
    "least-absolute-survey-3": Case(survey(3), exact, "least-absolute", 1e-4),
    "poisson-2": Case(TWO, small, "poisson", 1e-4),
    "poisson-3": Case(THREE, small, "poisson", 1e-4),
    "poisson-census-3": Case(LEVELS, small, "poisson", 1e-4),
    "poisson-census-all": Case(EVERYTHING, small, "poisson", 1e-4),
    "poisson-census-3-clipped": Case(LEVELS, clipped, "poisson", 1e-4),
    "poisson-census-all-clipped": Case(EVERYTHING, clipped, "poisson", 1e-4),
}


def measure(name: str, data: Path) -> list[Any]:
    """One line of the table; compiling is done before, indexing the design is counted."""
    case = CASES[name]
    design, z = case.source(data)
    fitter = registry.build("fitter", case.fitter, {"tolerance": case.tolerance})
    fitter(dc.Design.product({"a": 2, "b": 2}, "a + b"), np.array([3.0, 2, 1, 1, 2]))
    published = case.noise(z)
    before = time.process_time()
    seconds, fit = best_of(1, lambda: fitter(design, published))
    processor = time.process_time() - before
    deviation = float(np.abs(fit.z - published).max())
    faster = "" if case.peer_seconds is None else case.peer_seconds / seconds
    gap = "" if fit.certificate.gap is None else fit.certificate.gap
    cost = [seconds, processor, peak_gib(), fit.iterations, fit.status.name]
    quality = [deviation, gap, case.peer_seconds or "", faster, case.peer]
    return [name, design.n_inner, design.n_published, *cost, *quality]


def main() -> None:
    """Every case in a process of its own, so that peak memory is its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    options = parser.parse_args()
    rows = []
    for name in options.cases or CASES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            rows.append(alone.submit(measure, name, options.data).result())
        print(*rows[-1], flush=True)
    print_table([*HEADER, *QUALITY], rows)


if __name__ == "__main__":
    main()
