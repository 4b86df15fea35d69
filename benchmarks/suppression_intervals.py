"""Suppression with proven intervals beside recorded patterns of other programs."""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import discreet as dc
from benchmarks._five_way import load
from benchmarks._measure import peak_gib, print_table
from benchmarks._recorded import Recorded, recorded, recorded_sums
from discreet.suppress import Pattern

LARGEST = 4_000  # cells, unless others are asked for by name


def cases(wanted: list[str]) -> Iterator[Recorded]:
    """The recorded cases with the default rules on lone contributors, one for each rule."""
    seen = set()
    for source in (recorded, recorded_sums):
        for case in source():
            key = (case.name.split()[0], str(case.method))
            is_chosen = any(name in case.name for name in wanted)
            if not case.method.singletons or key in seen:
                continue
            if is_chosen or (not wanted and len(case.pattern.z) <= LARGEST):
                seen.add(key)
                yield case


def compared(case: Recorded) -> list:
    """Our two patterns beside the recorded one."""
    patterns, cpu = [], []
    for secondary in ("gauss", "interval"):
        started = time.process_time()
        patterns.append(replace(case.method, secondary=secondary).pattern(case.table))
        cpu.append(time.process_time() - started)
    ours = patterns[1]
    counts = [p.n_secondary for p in (*patterns, case.pattern)]
    sums = [int(p.cost) for p in (*patterns, case.pattern)]
    unproven = len(ours.proofs.unproven(ours))
    risk = [at_risk(patterns[0]), at_risk(ours), unproven]
    return [case.name, len(ours.z), ours.n_primary, *counts, *sums, *risk, *cpu, case.cpu or 0.0]


def at_risk(pattern: Pattern) -> int:
    """Primaries that an audit by linear programs finds at risk, for everybody or by equations."""
    return len(dc.audit(replace(pattern, proofs=None), exact=False).at_risk)


def main() -> None:
    """Print every case, or those named on the command line."""
    print(load())
    header = ["case", "cells", "primary", "secondary: gauss", "interval", "recorded"]
    header += ["sum: gauss", "interval", "recorded", "at risk: gauss", "interval", "unproven"]
    header += ["CPU s: gauss", "interval", "recorded"]
    rows = [compared(case) for case in cases(sys.argv[1:])]
    print_table(header, rows)
    print("Bar: no primary at risk in our interval patterns, none unproven.")
    print(f"peak {peak_gib():.2f} GiB")


if __name__ == "__main__":
    main()
