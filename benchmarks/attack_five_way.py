"""Everything that `dc.attack` runs by itself, on a five-way table of half a million inner cells.

`python -m benchmarks.attack_five_way` attacks linked two-way and three-way tables by three methods,
and prints seconds of each attack, its baselines included, and what was passed over, with the
reason.
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from typing import Any

import numpy as np

import discreet as dc
from benchmarks._five_way import SHAPE, five_way, load
from benchmarks._measure import print_table

CASES: dict[str, tuple[int, Any]] = {
    "ten two-way, cell keys": (2, dc.CellKey(dc.perturbation_table(D=5, V=3, js=2))),
    "ten two-way, discrete Laplace": (2, dc.DiscreteLaplace(1.0)),
    "ten two-way, suppression": (2, dc.Suppress("threshold(3)")),
    "ten three-way, cell keys": (3, dc.CellKey(dc.perturbation_table(D=5, V=3, js=2))),
}


def main() -> int:
    """Attack every case."""
    print(load())
    rows: list[list[Any]] = []
    passed: dict[str, str] = {}
    for label, (order, method) in CASES.items():
        table = five_way(list(itertools.combinations(SHAPE, order)))
        release = table.rekeyed(np.random.default_rng(1)).simulate(method, seed=1)
        began, processor = time.perf_counter(), time.process_time()
        found = dc.attack(table, release, progress=False)
        took = time.process_time() - processor, time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        rows.append([label, release.design.n_published, len(found), *took, peak])
        passed |= found.passed_over
    print_table(["case", "published", "attacks", "CPU s", "wall s", "peak so far, GiB"], rows)
    for name, why in passed.items():
        print(f"{name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
