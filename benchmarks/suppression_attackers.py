"""Random tables, suppressed and attacked by programs of their own; nothing may be found.

Tables are numbered, and their seeds were fixed before the first run (`search.SEED`); a known case
comes before them. Attackers are
the public, everybody alone in a cell at any level, everybody with a part of another hidden cell,
and for sums of hidden cells each of them against each contributor. With `planted`, the same search
has to find three faults of a careless program.
"""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import discreet as dc
from benchmarks._measure import print_table
from tests.protect.suppress.search import (
    HEXAGON,
    PLANTED,
    SUM_RULE,
    faults,
    random_case,
    union_faults,
)

TABLES, FEW = 400, 60
WAYS = ("interval", "optimal")
MOST = 2  # hidden cells of a sum that are tried together


def attacked(
    way: str, tables: int, fault: Callable[[], AbstractContextManager] = nullcontext
) -> list:
    """What is found in tables that are suppressed in one way."""
    sensitive = close = together = refused = unproved = 0
    cpu = 0.0
    for number in range(HEXAGON, tables):
        case = random_case(number)
        method = dc.Suppress(case.rule, way)
        started = time.process_time()
        try:
            with fault():
                pattern = method.pattern(case.table)
        except dc.errors.InfeasibleError:
            refused += 1
            continue
        cpu += time.process_time() - started
        found = faults(case, pattern, zeros_are_public=method.zeros_are_public)
        close += len({cell for _, cell in found})
        if not case.is_count:
            together += len({who for who, _, _ in union_faults(case, pattern, SUM_RULE, most=MOST)})
        sensitive += pattern.n_primary
        unproved += len(pattern.unproved)
    return [tables, refused, sensitive, close, together, unproved, cpu]


def main() -> None:
    """Attack as many tables as asked for, in the ways asked for, and print what was found."""
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    names = [text for text in sys.argv[1:] if text in WAYS] or WAYS
    rows = [[way, "-", *attacked(way, *(numbers or [TABLES]))] for way in names]
    if "planted" in sys.argv[1:]:
        few = numbers or [FEW]
        rows = [
            ["interval", name, *attacked("interval", *few, each)] for name, each in PLANTED.items()
        ]
    header = ["way", "fault", "tables", "refused", "sensitive cells", "too close"]
    header += ["contributors in sums", "unproved contributors", "CPU s"]
    print_table(header, rows)
    is_clean = not any(row[5] or row[6] for row in rows)
    is_expected = is_clean if "planted" not in sys.argv[1:] else all(r[5] or r[6] for r in rows)
    raise SystemExit(0 if is_expected else 1)


if __name__ == "__main__":
    main()
