"""Suppression of large tables: 148,140 generated sums, and three-way margins of the five-way data.

Names on the command line choose a table: `sums` or `three_way`.
"""

import sys
import time

import discreet as dc
from benchmarks._five_way import five_way, load
from benchmarks._large_magnitude import large_magnitude
from benchmarks._measure import peak_gib, print_table
from discreet.progress import listening

HEADER = ["secondary", "singletons", "cells", "primary", "secondary", "share of sum"]
HEADER += ["unproven", "CPU s", "peak GiB"]
EVERY = 60.0  # CPU seconds between two lines of progress


def shown_progress():
    """A listener that prints a line each minute, and at the end of each task."""
    last = 0.0

    def show(task: str, fraction: float) -> None:
        nonlocal last
        now = time.process_time()
        if now - last > EVERY or fraction >= 1:
            last = now
            print(f"{now:.0f} s: {task} {fraction:.0%}, {peak_gib():.2f} GiB", flush=True)

    return show


def suppressed(table: dc.Table, rule, secondary: str, singletons: bool = True) -> list:
    """One pattern: what it hides, what is unproven, CPU seconds and memory."""
    method = dc.Suppress(rule, secondary, singletons=singletons)
    started = time.process_time()
    with listening(shown_progress()):
        pattern = method.pattern(table)
    cpu = time.process_time() - started
    unproven = "–" if pattern.proofs is None else len(pattern.proofs.unproven(pattern))
    share = float(pattern.z[pattern.suppressed].sum() / pattern.z.sum())
    counts = [len(pattern.z), pattern.n_primary, pattern.n_secondary]
    return [secondary, singletons, *counts, share, unproven, cpu, peak_gib()]


def sums() -> None:
    """The generated table of sums."""
    table, rule = large_magnitude(), dc.rules.PPercent(10)
    print(f"tabulated: peak {peak_gib():.2f} GiB")
    print_table(HEADER, [suppressed(table, rule, "interval")])
    print(
        "published for other tables of this size: modular 11 h, 10.6 % suppressed; hypercube 2 min"
    )


def three_way() -> None:
    """The three-way margins of the five-way data, threshold 3."""
    table = five_way(dc.margins(list("abcde"), 3, lower=True))
    print_table(HEADER, [suppressed(table, dc.rules.Threshold(3), "interval")])
    print("peer: not finished. Bar: an hour and 8 GiB, nothing unproven.")


def main() -> None:
    """Run the tables that were named, or all."""
    print(load())
    tables = {"three_way": three_way, "sums": sums}
    for name in sys.argv[1:] or tables:
        tables[name]()


if __name__ == "__main__":
    main()
