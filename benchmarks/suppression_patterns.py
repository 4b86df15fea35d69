"""What patterns of suppression tell: the program inverted, its price, and several editions.

`python -m benchmarks.suppression_patterns inversion 8` draws costs of 8 tables;
`utility` says what drawing costs in recorded tables; `editions 15` takes 15 series.
"""

import sys
import time

import numpy as np

import discreet as dc
from benchmarks._measure import print_table
from benchmarks._recorded import recorded
from discreet import registry
from discreet.assessment.audit import inversion
from discreet.attacks.frame import Knowledge
from discreet.protect.draws import SeededSecret
from discreet.suppress import plan

SEED = 29  # fixed before the first run
METHOD = dc.Suppress(dc.rules.Threshold(3))
ROWS, WIDTH = 3, 2  # of the tables, and of the intervals that it promises
TABLES = 81  # without a secret
SETTINGS = ((0.0, 0.0), (0.3, 0.0), (0.3, 0.15), (0.3, 0.3), (1.0, 0.0))
FEW = 60  # tables that fit the shown cells without a secret, at most: others take hours
RUNS = 300  # of the program for each table, all that fit and all draws together
LARGEST = 3_000  # recorded tables
EDITIONS, CHURN = (1, 2, 5, 10), 0.05
WAYS = ("no secret", "secret", "secret, starting from the earlier pattern")


def small_tables(number: int, method: dc.Suppress, rows: int) -> list[dc.Table]:
    """Tables of skewed counts in some rows and four columns, with one to five sensitive cells."""
    design = dc.Design.product({"a": rows, "b": 4}, "a*b")
    found, k = [], 0
    while len(found) < number:
        counts = np.random.default_rng([SEED, k]).negative_binomial(1.2, 0.15, design.n_inner)
        k += 1
        table = dc.Table.from_inner(design, counts)
        try:
            pattern = method.pattern(table)
        except dc.errors.InfeasibleError:
            continue
        if 0 < pattern.n_primary <= 5 and len(inversion._fitting_tables(pattern)[0]) <= FEW:
            found.append(table)
    return found


def inverted(
    tables: list[dc.Table], method: dc.Suppress, spread: float, decoys: float
) -> list[float]:
    """What inversion finds in all tables, and what is hidden."""
    plan.SPREAD, plan.DECOYS = spread, decoys
    started, told, hidden, cells = time.process_time(), [], 0.0, 0
    for k, table in enumerate(tables):
        one = table.with_secret(SeededSecret(k, "benchmark")) if spread else table
        pattern = method.pattern(one)
        hidden += float(pattern.z[pattern.suppressed].sum()) / len(tables)
        cells += int(pattern.suppressed.sum())
        told.append(inversion.invert_pattern(pattern))
    met = [one for one in told if one.is_met]
    sensitive = sum(len(one.positions) for one in told)
    exact = sum(len(one.exact) for one in met)
    narrow = sum(
        int(((one.values_after <= WIDTH) & (one.values_before > WIDTH)).sum()) for one in met
    )
    before, after = (
        float(np.concatenate([getattr(one, name) for one in told]).mean())
        for name in ("before", "after")
    )
    never = 1 - len(met) / len(told)
    found = [len(tables), sensitive, exact / sensitive, narrow / sensitive, before, after, never]
    return [spread, decoys, *found, cells / len(tables), hidden, time.process_time() - started]


def inversions(number: int) -> None:
    """Fixed costs for many tables, and the study of spreads and decoys for some of them."""
    inversion.RUNS, usual = RUNS, (plan.SPREAD, plan.DECOYS)
    header = ["spread", "decoys", "tables", "sensitive", "known exactly"]
    header += ["narrower than promised", "best guess: shown cells", "with the pattern"]
    header += ["patterns never met", "hidden cells", "hidden sum", "CPU s"]
    # As many as asked for in every setting; all tables without a secret, and with one as it is.
    jobs = [(TABLES, 0.0, 0.0), (TABLES, *usual), *((number, *each) for each in SETTINGS if number)]
    found = []
    for n, *setting in jobs:
        tables = small_tables(n, METHOD, ROWS)
        found.append(inverted(tables, METHOD, *setting))
        print(*found[-1], flush=True)
    print_table(header, found)


def utility(_: int) -> None:
    """What is hidden in recorded tables, beside fixed costs."""
    rows = []
    for case in recorded():
        if len(case.table.z) > LARGEST:
            continue
        table, sums, counts = case.table, [], []
        for spread, decoys in SETTINGS:
            plan.SPREAD, plan.DECOYS = spread, decoys
            one = table.with_secret(SeededSecret(5, "benchmark")) if spread else table
            pattern = case.method.pattern(one)
            sums.append(int(pattern.z[pattern.suppressed].sum()))
            counts.append(int(pattern.suppressed.sum()))
        more = [f"{n} / {total / sums[0] - 1:+.0%}" for n, total in zip(counts, sums, strict=True)]
        rows.append([case.name, f"{counts[0]} / {sums[0]}", *more[1:]])
    print_table(["table", *(f"{s:g}, {d:g}" for s, d in SETTINGS)], rows)


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
            method = dc.suppress.following(METHOD, one, found[-1])
        found.append(one.protect(method))
    return found


def attacked(way: str, length: int, tables: int) -> list:
    """Sensitive counts of the newest edition claimed exactly, and what being hidden always says."""
    values, kinds = (
        registry.build("attack", f"pattern-{n}") for n in ("difference", "intersection")
    )
    rng = np.random.default_rng(0)
    exact = sensitive = always = sure = hidden = 0
    for number in range(tables):
        truths = series(number, max(EDITIONS))[:length]
        releases = released(truths, way, number)
        is_sensitive = METHOD.primary(truths[-1]).primary
        known = Knowledge(earlier=tuple(releases[:-1]))
        claims = values(releases[-1], known, rng=rng)
        pairs = zip(claims.targets, claims.values, strict=True)
        exact += sum(is_sensitive[k] and truths[-1].z[k] == value for k, value in pairs)
        sensitive += int(is_sensitive.sum())
        first = list(kinds(releases[-1], known, rng=rng).targets)
        always += len(first)
        sure += int(is_sensitive[first].sum())
        hidden += int(releases[-1].hidden.sum())
    return [way, length, sensitive, exact / sensitive, hidden, sensitive / hidden, sure / always]


def editions(tables: int) -> None:
    """The table of editions."""
    header = ["way", "editions", "sensitive", "claimed exactly", "hidden", "of these sensitive"]
    header += ["of those hidden in all editions"]
    print_table(header, [attacked(way, n, tables) for way in WAYS for n in EDITIONS])


def main() -> None:
    """What was asked for, or all."""
    parts = {"inversion": (inversions, 8), "utility": (utility, 0), "editions": (editions, 15)}
    wanted = [name for name in sys.argv[1:] if name in parts] or list(parts)
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    for name in wanted:
        run, usual = parts[name]
        run(numbers[0] if numbers else usual)


if __name__ == "__main__":
    main()
