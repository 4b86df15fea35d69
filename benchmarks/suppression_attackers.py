"""Random tables, suppressed and attacked by programs of their own; nothing may be found."""

import sys
import time

import discreet as dc
from benchmarks._measure import print_table
from tests.protect.suppress.search import faults, random_case, union_faults

TABLES = 400
SHARE = 0.1  # of the p% rule that sums are protected by


def attacked(way: str, tables: int) -> list:
    """What is found in tables that are suppressed in one way."""
    sensitive = close = together = refused = 0
    cpu = 0.0
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
        found = faults(case, pattern, zeros_are_public=method.zeros_are_public)
        close += len({cell for _, cell in found})
        if not case.is_count:
            together += len({who for who, _, _ in union_faults(case, pattern, SHARE, most=2)})
        sensitive += pattern.n_primary
    return [way, tables, refused, sensitive, close, together, cpu]


def main() -> None:
    """Attack as many tables as asked for, in the ways asked for, and print what was found."""
    tables = int(sys.argv[1]) if len(sys.argv) > 1 else TABLES
    ways = sys.argv[2:] or ["interval", "optimal", "gauss"]
    rows = [attacked(way, tables) for way in ways]
    header = ["way", "tables", "refused", "sensitive cells", "too close", "contributors in sums"]
    print_table([*header, "CPU s"], rows)


if __name__ == "__main__":
    main()
