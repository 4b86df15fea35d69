"""Comparing five methods: 100 draws on the party example, 10 draws on a five-way table.

`python -m benchmarks.compare [DRAWS]` says how many draws the five-way table gets.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import discreet as dc
from benchmarks._five_way import five_way, load
from benchmarks._measure import peak_gib, print_table
from discreet.assessment.compare.comparison import mean_and_range

DESIGN = dc.Design.product({"party": 3, "age": 3, "sex": 2}, "party*age + party*sex + age + sex")
COUNTS = [0, 0, 8, 4, 4, 1, 0, 1, 3, 5, 1, 0, 2, 3, 9, 6, 2, 7]
NOISE = [
    "cell-key:D=5,V=3,js=2",
    "drop-add:share=0.1",
    "pram",
    "discrete-laplace:epsilon=2",
    "laplace:epsilon=2",
]
MIXED = [
    "cell-key:D=5,V=3,js=2",
    "pram",
    "small-count-rounding",
    "safe:proposals=1e5",
    "discrete-laplace:epsilon=2",
]
LARGE = [*MIXED[:3], "safe:proposals=2e7", MIXED[4]]
HEADER = ["table", "fitter", "workers", "draws", "seconds", "95 % of cell keys", "peak GiB"]


def run(
    name: str, table: dc.Table, methods: Sequence[str], replicates: int, **settings: Any
) -> tuple[list, Any]:
    """One comparison, timed; the interval shown is that of the utility of cell keys."""
    started = time.perf_counter()
    found = dc.compare(table, methods, replicates=replicates, seed=1, **settings)
    seconds = time.perf_counter() - started
    line = found["hellinger-utility@published"].lines[0]
    shown = mean_and_range(line)[1]
    workers, fitter = settings.get("workers") or "auto", settings.get("fitters") or "chain"
    return [name, fitter, workers, replicates, seconds, shown, peak_gib()], found


def party() -> None:
    """The example of Langsrud & Lupp (2021)."""
    table = dc.Table.from_inner(DESIGN, np.array(COUNTS))
    rows = [
        run(name, table, methods, 100, sensitive="party", workers=workers)[0]
        for name, methods in (("party, noise", NOISE), ("party, mixed", MIXED))
        for workers in (1, None)
    ]
    print(load())
    print_table(HEADER, rows)
    print("Target: under 20 s. The paper's interval for redrawn keys is 0.8871 to 0.9392.")


def large(order: int, replicates: int, fitter: str | None) -> None:
    """All margins of up to so many variables of the five-way table, by one fitter.

    The chain takes seconds a draw from two-way margins, 1 to 3 minutes from three-way ones.
    """
    table = five_way(dc.margins(list("abcde"), order=order))
    name = f"up to {order}-way margins, {table.design.n_published:,} cells"
    print(load(), flush=True)
    row, found = run(name, table, LARGE, replicates, sensitive="e", fitters=fitter)
    print_table(HEADER, [row])
    print(found)
    notes = [r["note"] for r in found.frame.to_pylist() if "ended as" in (r["note"] or "")]
    print("fits that did not converge:", *(dict.fromkeys(notes) or ["none"]), flush=True)


def main(replicates: int = 10) -> None:
    """Print the tables."""
    party()
    large(2, replicates, None)
    large(3, replicates, "least-squares")
    print("Target: 10 draws of five methods within 15 minutes.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
