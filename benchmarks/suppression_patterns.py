"""What patterns of suppression tell: the program inverted, its price, editions and corrections.

`python -m benchmarks.suppression_patterns inversion 20` looks at 20 further tables in each setting,
or in those that are named (`"3 0.3 0.15"`: rows, spread, share of decoys);
`utility` says what drawing costs in recorded tables; `editions 15` takes 15 series, `corrections
60` so many tables. `effort` says what thinning and swaps are worth in two recorded tables. Figures
go to `docs/suppression_patterns.json` as they come; `tools/suppression_page.py` writes the pages.
"""

import json
import os
import sys
import time
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from benchmarks._recorded import recorded, recorded_sums
from benchmarks.suppression_hierarchies import Attacked
from discreet import registry
from discreet.assessment.audit import inversion
from discreet.attacks.frame import Knowledge
from discreet.protect.draws import SeededSecret
from discreet.suppress import interval, plan

DATA = Path(__file__).parents[1] / "docs" / "suppression_patterns.json"
SEED = 29  # fixed before the first run
METHOD = dc.Suppress(dc.rules.Threshold(3))
WIDTH = 2  # of the intervals that it promises
FIXED, USUAL = (0.0, 0.0), (plan.SPREAD, plan.DECOYS)
# Rows of the tables, and how costs are drawn: their spread and the share of decoys.
SETTINGS = [(3, *each) for each in (FIXED, (0.3, 0.0), USUAL, (0.3, 0.3), (1.0, 0.0))]
SETTINGS += [(4, *FIXED), (4, *USUAL)]
TABLES = 81
FEW = 60  # tables that fit the shown cells without a secret, at most: others take hours
RUNS = 150  # of the program for each table, all that fit and all draws together
LARGEST = 350  # cells of recorded tables
EDITIONS, CHURN = (1, 2, 5, 10), 0.05
WAYS = ("no secret", "secret", "following")
SHARES = (0.0, 0.2, 1.0)  # of the usual effort of thinning and swaps
SEARCHED = ("freq_linked global_x", "freq_flat_3000 zeros_open")


def stored() -> dict[str, Any]:
    """What was measured so far."""
    return json.loads(DATA.read_text()) if DATA.exists() else {}


def store(part: str, name: str, figures: dict[str, Any]) -> None:
    """Add what was measured now."""
    found = stored()
    found.setdefault(part, {})[name] = figures
    DATA.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    print(part, name, json.dumps(figures), flush=True)


def small_tables(number: int, rows: int) -> list[dc.Table]:
    """Tables of skewed counts in some rows and four columns, with one to five sensitive cells."""
    design = dc.Design.product({"a": rows, "b": 4}, "a*b")
    found, k = [], 0
    while len(found) < number:
        counts = np.random.default_rng([SEED, k]).negative_binomial(1.2, 0.15, design.n_inner)
        k += 1
        table = dc.Table.from_inner(design, counts)
        try:
            pattern = METHOD.pattern(table)
        except dc.errors.InfeasibleError:
            continue
        if 0 < pattern.n_primary <= 5 and len(inversion._fitting_tables(pattern)[0]) <= FEW:
            found.append(table)
    return found


def inverted(number: int, table: dc.Table, spread: float) -> dict[str, float]:
    """What inversion finds in one table, and what is hidden, as numbers that can be added up."""
    started = time.process_time()
    one = table.with_secret(SeededSecret(number, "benchmark")) if spread else table
    pattern = METHOD.pattern(one)
    told = inversion.invert_pattern(pattern)
    # A pattern that no draw had is told apart from nothing.
    narrow = (told.values_after <= WIDTH) & (told.values_before > WIDTH) & told.is_met
    return {
        "tables": 1,
        "sensitive": len(told.positions),
        "exact": len(told.exact),
        "narrow": int(narrow.sum()),
        "before": float(told.before.sum()),
        "after": float(told.after.sum()),
        "never": int(not told.is_met),
        "fitting": told.tables,
        "hidden": int(pattern.suppressed.sum()),
        "sum": float(pattern.z[pattern.suppressed].sum()),
        "cpu": time.process_time() - started,
    }


def inversions(number: int) -> None:
    """So many further tables in each setting, up to `TABLES`."""
    inversion.RUNS = RUNS
    wanted = {f"{r} {s:g} {d:g}": (r, s, d) for r, s, d in SETTINGS}
    some = [name for name in wanted if name in sys.argv] or list(wanted)
    for name in some:
        rows, spread, decoys = wanted[name]
        sums = stored().get("inversion", {}).get(name, {})
        done = int(sums.get("tables", 0))
        last = min(TABLES, done + number)
        tables = small_tables(last, rows)[done:]
        plan.SPREAD, plan.DECOYS = spread, decoys
        for k, table in enumerate(tables, done):
            more = inverted(k, table, spread)
            sums = {key: sums.get(key, 0) + value for key, value in more.items()}
        if tables:
            store("inversion", name, sums)


def utility(_: int) -> None:
    """What is hidden in recorded tables, beside fixed costs."""
    seen = set()
    for case in chain(recorded(), recorded_sums()):
        which = (case.name.split()[0], case.method)
        if len(case.table.z) > LARGEST or which in seen:
            continue
        seen.add(which)
        found: dict[str, Any] = {"cells": len(case.table.z)}
        for spread, decoys in (FIXED, (0.3, 0.0), USUAL):
            plan.SPREAD, plan.DECOYS = spread, decoys
            secret = SeededSecret(5, "benchmark")
            pattern = case.method.pattern(case.table.with_secret(secret) if spread else case.table)
            shown = [int(pattern.suppressed.sum()), float(pattern.z[pattern.suppressed].sum())]
            found[f"{spread:g} {decoys:g}"] = shown
        store("utility", case.name, found)


def series(number: int, length: int) -> list[dc.Table]:
    """Editions of a table of 5 × 6 counts; a share of the people leaves each time, others come."""
    rng = np.random.default_rng([SEED, 1, number])
    design = dc.Design.product({"a": 5, "b": 6}, "a*b")
    mean = rng.gamma(1.2, 8.0, design.n_inner)
    counts, found = rng.poisson(mean), []
    for _ in range(length):
        found.append(dc.Table.from_inner(design, counts))
        counts = rng.binomial(counts, 1 - CHURN) + rng.poisson(CHURN * mean)
    return found


def released(tables: list[dc.Table], way: str, number: int) -> list[dc.Release]:
    """All editions in one way."""
    found: list[dc.Release] = []
    for table in tables:
        one = table if way == WAYS[0] else table.with_secret(SeededSecret(number, "benchmark"))
        method = METHOD
        if way == WAYS[2] and found:
            method = METHOD.follow(one, [found[-1]])
        found.append(one.protect(method))
    return found


def attacked(way: str, length: int, tables: int) -> dict[str, int]:
    """Sensitive counts of the newest edition claimed exactly, and what being hidden always says."""
    values, kinds = (
        registry.build("attack", f"pattern-{n}") for n in ("difference", "intersection")
    )
    rng = np.random.default_rng(0)
    names = ("series", "sensitive", "exact", "hidden", "always", "always_sensitive")
    found = dict.fromkeys(names, 0)
    for number in range(tables):
        truths = series(number, max(EDITIONS))[:length]
        releases = released(truths, way, number)
        is_sensitive = METHOD.primary(truths[-1]).primary
        known = Knowledge(earlier=tuple(releases[:-1]))
        claims = values(releases[-1], known, rng=rng)
        pairs = zip(claims.targets, claims.values, strict=True)
        first = list(kinds(releases[-1], known, rng=rng).targets)
        more = (
            1,
            int(is_sensitive.sum()),
            sum(int(is_sensitive[k] and truths[-1].z[k] == value) for k, value in pairs),
            int(releases[-1].hidden.sum()),
            len(first),
            int(is_sensitive[first].sum()),
        )
        found = {name: found[name] + value for name, value in zip(names, more, strict=True)}
    return found


def editions(tables: int) -> None:
    """Several editions in each way."""
    for way in WAYS:
        for length in EDITIONS:
            store("editions", f"{way} {length}", attacked(way, length, tables))


def corrected(number: int, follows: bool) -> tuple[int, int, int]:
    """Sensitive counts of a correction and of what it corrects, and those that both give away.

    One person is added or taken out. Whoever knows where, knows all cells without that person that
    one of the two editions shows, and that a hidden count is at least one.
    """
    rng = np.random.default_rng([SEED, 2, number])
    design = dc.Design.product({"a": 5, "b": 6}, "a*b")
    before = rng.negative_binomial(1, 0.12, design.n_inner)
    where = int(rng.integers(design.n_inner))
    after = before.copy()
    after[where] += -1 if number % 2 and before[where] else 1
    tables = [dc.Table.from_inner(design, counts) for counts in (before, after)]
    first = tables[0].protect(METHOD)
    again = METHOD.follow(tables[1], [first]) if follows else METHOD
    releases = [first, tables[1].protect(again)]
    A = design.matrix().toarray().T.astype(np.float64)
    is_same = A[:, where] == 0
    sensitive = told = 0
    view = np.zeros(design.n_inner), np.full(design.n_inner, np.inf)
    for table, one, other in zip(tables, releases, reversed(releases), strict=True):
        hidden = one.hidden & (other.hidden | ~is_same)
        seen = Attacked(A, table.z.astype(np.float64), ~hidden, hidden)
        some = np.flatnonzero(METHOD.primary(table).primary)
        ends = [seen.ends(A[k], view) for k in some]
        sensitive += len(some)
        told += sum(high - low < 0.5 for low, high in ends)
    return 1, sensitive, told


def corrections(tables: int) -> None:
    """Corrections of one person, suppressed anew or after what they correct."""
    for way, follows in (("anew", False), ("following", True)):
        found = np.sum([corrected(k, follows) for k in range(tables)], axis=0).tolist()
        store("corrections", way, dict(zip(("tables", "sensitive", "exact"), found, strict=True)))


def effort(_: int) -> None:
    """What thinning and swaps are worth."""
    usual = interval._THINNING, interval._SWAPS, interval._LEAST
    wanted = [name for name in SEARCHED if name.split()[0] in sys.argv] or SEARCHED
    for case in (case for case in recorded() if case.name in wanted):
        found: dict[str, Any] = {"cells": len(case.table.z), "recorded": case.cpu}
        for share in SHARES:
            times = [share * part for part in usual]
            interval._THINNING, interval._SWAPS, interval._LEAST = *times[:2], int(times[2])
            started = time.process_time()
            pattern = case.method.pattern(case.table)
            cpu = time.process_time() - started
            total = float(pattern.z[pattern.suppressed].sum())
            found[f"{share:g}"] = [pattern.n_secondary, total, cpu]
        store("effort", case.name, found | {"load": os.getloadavg()[0]})


def main() -> None:
    """What was asked for, or all."""
    parts = {"inversion": (inversions, 20), "utility": (utility, 0), "editions": (editions, 15)}
    parts |= {"corrections": (corrections, 60), "effort": (effort, 0)}
    wanted = [name for name in sys.argv[1:] if name in parts] or list(parts)
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    print("load", os.getloadavg()[0])
    for name in wanted:
        run, usual = parts[name]
        run(numbers[0] if numbers else usual)
        plan.SPREAD, plan.DECOYS = USUAL


if __name__ == "__main__":
    main()
