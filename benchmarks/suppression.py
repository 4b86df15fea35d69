"""Suppression beside recorded patterns of R packages and τ-ARGUS, at the same attackers.

`python -m benchmarks.suppression` takes recorded tables of up to 4,000 cells, or cases whose names
hold one of the words on the command line. What is measured goes to `docs/suppression_compared.json`
case by case, so that the whole can be made in pieces; `tools/suppression_page.py` writes the page.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from benchmarks._recorded import Recorded, recorded, recorded_sums
from discreet.solve.linear.changes import Changes
from discreet.suppress import Pattern
from discreet.suppress.bank import EVERYBODY
from discreet.suppress.interval import IntervalSearch, _prove_at_once, prove_one
from discreet.suppress.proofs import Proofs
from discreet.suppress.unions import find_unions

DATA = Path(__file__).parents[1] / "docs" / "suppression_compared.json"
LARGEST = 4_000  # cells, unless others are asked for by name; beyond it nobody attacks the others'
SUMS = 3_000  # cells up to which sums of the others' hidden cells are searched, with one rule of p%
LEAST = 400  # cells up to which the pattern of least cost stands beside
AUDITED = 1_500  # cells up to which our patterns are audited by programs that share nothing else
KINDS = ("public", "lone", "inside", "outside")
"""The public, somebody alone in a cell, in the sensitive cell, and in another hidden one."""
_PATTERNS: dict[tuple[str, str], tuple[Pattern, float]] = {}


def cases(wanted: list[str]) -> Iterator[Recorded]:
    """Recorded runs of tables that are not too large, or those that are asked for."""
    for source in (recorded, recorded_sums):
        for case in source():
            is_chosen = any(name in case.name for name in wanted)
            if is_chosen or (not wanted and len(case.pattern.z) <= LARGEST):
                yield case


def attacked(case: Recorded, ours: Pattern) -> tuple[dict[str, int], int | None]:
    """Sensitive cells of a recorded pattern that are short of their rule, and people in sums.

    Programs among its hidden cells look for a table that each attacker cannot rule out. A cell that
    the public knows too closely counts for the public alone, others for each kind that does.
    """
    method = case.method
    bare, plan = method._sensitive(method._with_order(case.table)[0])
    bare = replace(bare, lower=ours.lower, upper=ours.upper)
    search = IntervalSearch(bare, plan, singletons=True, every_row=True)
    search.is_open = search.cells.open_in(case.pattern.suppressed)
    within, bank = Changes(search.sums, search.is_open), search.bank
    required, X = bank.required, bare.design.matrix().tocsc()
    short: dict[str, set[int]] = {kind: set() for kind in KINDS}
    for item in range(len(required)):
        if prove_one(bank, within, item):
            continue
        place = int(required.place[item])
        for view in sorted(bank.open_views(item)):
            if view not in bank.open_views(item) or _prove_at_once(bank, within, item, [view]):
                continue
            if view == EVERYBODY:
                short["public"].add(place)
                break
            one = required.attackers[view - 1]
            inside = X.indices[X.indptr[place] : X.indptr[place + 1]]
            is_in = np.isin(one.cells, inside).any()
            short["inside" if is_in else "lone" if one.kind == "lone" else "outside"].add(place)
    state = np.where(bare.primary, bare.state, case.pattern.state).astype(np.int8)
    proofs = Proofs(bank.changes(bare.design.n_inner))
    found = {kind: len(cells - short["public"]) for kind, cells in short.items()}
    found |= {"public": len(short["public"])}
    # Without our proofs each of several thousand contributors takes a program for each attacker.
    if len(bare.z) > SUMS and any(each.coalition for each in bare.closeness):
        return found, None
    told = find_unions(replace(bare, state=state, proofs=proofs))
    return found, len({owner for each in told.sums for owner in each.owners})


def pattern_of(case: Recorded) -> tuple[Pattern, float]:
    """Our pattern and its CPU seconds, once for all runs of one table and rule."""
    which = (case.name.split()[0], repr(case.method))
    if which not in _PATTERNS:
        started = time.process_time()
        ours = case.method.pattern(case.table)
        _PATTERNS[which] = ours, time.process_time() - started
    return _PATTERNS[which]


def compared(case: Recorded) -> dict[str, Any]:
    """Our pattern beside the recorded one."""
    ours, cpu = pattern_of(case)
    found: dict[str, Any] = {"cells": len(ours.z), "sensitive": ours.n_primary}
    found["recorded"] = {
        "secondary": case.pattern.n_secondary,
        "sum": float(ours.z[case.pattern.suppressed].sum()),
        "cpu": case.cpu,
    }
    unproven = ours.proofs.unproven(ours)
    unproven = unproven[unproven < len(ours.z)]
    found["ours"] = {
        "secondary": ours.n_secondary,
        "sum": float(ours.z[ours.suppressed].sum()),
        "cpu": cpu,
        "short": len(unproven),
        "in_sums": 0,
        "unproved": len(ours.unproved),
    }
    if len(ours.z) <= LEAST:
        started = time.process_time()
        least = replace(case.method, secondary="optimal").pattern(case.table)
        cpu = time.process_time() - started
        found["least"] = {"cost": least.cost, "bound": least.bound, "cpu": cpu}
        found["ours"] |= {"cost": ours.cost, "relaxed": case.method.lower_bound(case.table)}
    if len(ours.z) <= AUDITED:
        audit = dc.audit(replace(ours, proofs=None), exact=False, explain=0)
        found["ours"]["audited"] = len(audit.at_risk)
        found["ours"]["in_sums"] = len(audit.unions.sums) if audit.unions is not None else 0
    if len(ours.z) <= LARGEST:
        short, people = attacked(case, ours)
        found["recorded"] |= {"short": short, "in_sums": people}
    return found | {"load": os.getloadavg()[0]}


def main() -> None:
    """Measure the cases asked for, and store each as it comes."""
    chosen = [word for word in sys.argv[1:] if not word.startswith("-")]
    first = next(recorded())
    first.method.pattern(first.table)  # compiles
    for case in cases(chosen):
        found = compared(case)
        stored = json.loads(DATA.read_text()) if DATA.exists() else {}
        stored[case.name] = found
        DATA.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
        print(case.name, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
