"""Random tables, suppressed and attacked by programs of their own; nothing may be found."""

import sys
import time

import discreet as dc
from benchmarks._measure import print_table
from tests.protect.suppress.search import faults, random_case

TABLES = 400


def main() -> None:
    """Attack many tables and print what was found, for each way of suppression."""
    tables = int(sys.argv[1]) if len(sys.argv) > 1 else TABLES
    rows = []
    for way in ("interval", "optimal", "gauss"):
        n, found, refused, cpu = 0, 0, 0, 0.0
        for number in range(tables):
            case = random_case(number)
            method = dc.Suppress(case.rule, way)
            started = time.process_time()
            try:
                pattern = method.pattern(case.table)
            except dc.errors.InfeasibleError:
                refused += 1
                continue
            cpu += time.process_time() - started
            cells = {k for _, k in faults(case, pattern, zeros_are_public=method.zeros_are_public)}
            n, found = n + pattern.n_primary, found + len(cells)
        rows.append([way, tables, refused, n, found, cpu])
    print_table(["way", "tables", "refused", "sensitive cells", "too close", "CPU s"], rows)


if __name__ == "__main__":
    main()
