"""What patterns of suppression tell: the program inverted, and patterns of several editions.

`python -m benchmarks.suppression_patterns inversion 20` takes 20 tables; `editions 60` takes 60.
"""

import sys
import time

import numpy as np

import discreet as dc
from benchmarks._measure import print_table
from discreet import registry
from discreet.assessment.audit import inversion
from discreet.attacks.frame import Knowledge
from discreet.protect.draws import SeededSecret
from discreet.suppress import costs

SEED = 29  # fixed before the first run
METHOD = dc.Suppress(dc.rules.Threshold(3))
SHAPE = {"a": 3, "b": 4}
SPREADS = (0.0, 0.3, 1.0)  # no secret for the first
FEW = 60  # tables that fit the shown cells without a secret, at most: others take hours
RUNS = 3_000
EDITIONS, CHURN = (1, 2, 5, 10), 0.05
WAYS = ("no secret", "secret", "secret, starting from the earlier pattern")


def small_tables(number: int) -> list[dc.Table]:
    """Tables of 3 × 4 skewed counts with one to five sensitive cells."""
    design, found, k = dc.Design.product(SHAPE, "a*b"), [], 0
    while len(found) < number:
        counts = np.random.default_rng([SEED, k]).negative_binomial(1.2, 0.15, design.n_inner)
        k += 1
        table = dc.Table.from_inner(design, counts)
        try:
            pattern = METHOD.pattern(table)
        except dc.errors.InfeasibleError:
            continue
        if 0 < pattern.n_primary <= 5 and inversion.invert_pattern(pattern).tables <= FEW:
            found.append(table)
    return found


def inverted(tables: list[dc.Table], spread: float) -> list:
    """What inversion finds in all tables, and what is hidden."""
    costs.SPREAD = spread
    started, told, hidden = time.process_time(), [], 0.0
    for k, table in enumerate(tables):
        one = table.with_secret(SeededSecret(k, "benchmark")) if spread else table
        pattern = METHOD.pattern(one)
        hidden += float(pattern.z[pattern.suppressed].sum())
        told.append(inversion.invert_pattern(pattern))
    met = [one for one in told if one.is_met]
    cells = sum(len(one.positions) for one in told)
    exact = sum(len(one.exact) for one in met)
    before = np.concatenate([one.before for one in told]).mean()
    after = np.concatenate([one.after for one in told]).mean()
    return [
        spread,
        cells,
        exact / cells,
        before,
        after,
        1 - len(met) / len(told),
        hidden,
        time.process_time() - started,
    ]


def inversions(number: int) -> None:
    """The table of spreads."""
    inversion._RUNS = RUNS
    tables = small_tables(number)
    header = ["spread", "sensitive", "known exactly", "best guess: shown cells", "with the pattern"]
    header += ["patterns never met", "hidden sum", "CPU s"]
    print_table(header, [inverted(tables, spread) for spread in SPREADS])


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
    """What was asked for, or both."""
    parts = {"inversion": (inversions, 20), "editions": (editions, 60)}
    wanted = [name for name in sys.argv[1:] if name in parts] or list(parts)
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    for name in wanted:
        run, usual = parts[name]
        run(numbers[0] if numbers else usual)


if __name__ == "__main__":
    main()
