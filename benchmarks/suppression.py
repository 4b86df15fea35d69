"""Suppression by elimination beside recorded patterns of R packages and τ-ARGUS."""

import time
from dataclasses import replace

import numpy as np

import discreet as dc
from benchmarks._five_way import five_way, load
from benchmarks._measure import peak_gib, print_table
from benchmarks._recorded import Recorded, recorded, recorded_sums
from discreet.suppress import Pattern
from discreet.suppress.gauss import suppress_by_gauss
from discreet.suppress.plan import PublicationPlan, priority
from discreet.tables.canonical import canonical_table

PEER_CPU_FROM = 2_900  # cells from which times are compared
AT_THE_LIMIT = 3  # sums exactly at a rule's limit, which the R package decides by rounding errors


def told(pattern: Pattern) -> int:
    """Sensitive cells that everybody, or somebody alone in a cell, can compute."""
    return len(dc.audit(pattern, intervals="none", explain=0).at_risk)


def made_safe(case: Recorded) -> Pattern:
    """The recorded pattern with the further suppressions that lone contributors call for."""
    pattern, is_public = case.pattern, case.method.zeros_are_public
    shown = np.flatnonzero(~pattern.suppressed)
    score = priority(pattern, pattern.z + 1.0)
    order = shown[np.argsort(-score[shown], kind="stable")]
    is_zero = (pattern.z[order] == 0) & is_public
    return suppress_by_gauss(pattern, PublicationPlan(order[is_zero], order[~is_zero], is_public))


def eliminated(method: dc.Suppress, table: dc.Table) -> Pattern:
    """The pattern of elimination alone, before what signs tell is repaired."""
    wider, order = method._with_order(table)
    pattern, plan = method._sensitive(canonical_table(wider, order))
    found = suppress_by_gauss(pattern, plan, singletons=method.singletons)
    return found if order is None else found.put_back(wider.design, order)


def compared(case: Recorded, *, singletons: bool) -> list:
    """Our pattern beside the other program's, at the same safety."""
    method = replace(case.method, secondary="gauss", singletons=singletons)
    started = time.process_time()
    ours = eliminated(method, case.table)
    cpu = time.process_time() - started
    peer = made_safe(case) if singletons else case.pattern
    if (ours.primary != peer.primary).sum() > AT_THE_LIMIT:
        raise SystemExit(f"{case.name}: other primaries than the recorded ones.")
    counts = [ours.n_secondary, peer.n_secondary, int(ours.cost), int(peer.cost)]
    view = "lone" if singletons else "equations"
    risk = [told(ours), told(case.pattern)]
    return [case.name, view, len(ours.z), ours.n_primary, *counts, *risk, cpu, case.cpu or "-"]


def totals(rows: list[list], view: str) -> None:
    """Sums over all cases, and the worst time ratio of large tables."""
    some = [row for row in rows if row[1] == view]
    sums = [sum(row[k] for row in some) for k in range(4, 10)]
    slow = max(row[10] / row[11] for row in some if row[2] >= PEER_CPU_FROM)
    print(
        f"{view}: secondary {sums[0]} (peer {sums[1]}), suppressed sum {sums[2]} (peer {sums[3]}), "
        f"told to lone contributors {sums[4]} (peer {sums[5]}), CPU at most {slow:.3f} of peer's"
    )


def five() -> list[list]:
    """The two-way margins of the five-way data, with the peer's recorded figures."""
    table = five_way(dc.margins(list("abcde"), 2, lower=True))
    rows = []
    for rule in (dc.rules.Threshold(3), dc.rules.Threshold(3, zeros=True)):
        started = time.process_time()
        pattern = eliminated(dc.Suppress(rule, "gauss"), table)
        cpu = time.process_time() - started
        rows.append([rule.name, len(pattern.z), pattern.n_primary, pattern.n_secondary, cpu])
    return rows


def shown(title: str, rows: list[list]) -> None:
    """Every case, and the totals of both views."""
    header = [title, "view", "cells", "primary", "secondary", "peer", "sum", "peer"]
    print_table([*header, "told", "peer", "CPU s", "peer"], rows)
    for view in ("equations", "lone"):
        totals(rows, view)


def main() -> None:
    """Print every case, the totals, and the five-way table."""
    cases = list(recorded())
    compared(cases[0], singletons=True)  # compiles
    print(load())
    shown("counts", [compared(case, singletons=s) for case in cases for s in (False, True)])
    sums = [compared(case, singletons=case.method.singletons) for case in recorded_sums()]
    shown("sums", sums)
    print("lone: the recorded patterns with what they lack against lone contributors")
    print("Bar: not more and not larger than the peer's in total; CPU at most a tenth.")
    print_table(["two-way margins", "cells", "primary", "secondary", "CPU s"], five())
    print("peer: 3 primary, 55 suppressed in 132 s without zeros; over 600 s with them")
    print(f"peak {peak_gib():.2f} GiB")


if __name__ == "__main__":
    main()
