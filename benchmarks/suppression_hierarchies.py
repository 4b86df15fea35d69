"""Random tables with hierarchies and linked margins, suppressed and attacked from labels alone.

Nothing of the library is used but its published values: which inner cells are in a cell follows
from the codes of its label. Programs of SciPy are written from the definitions: the public, people
alone in a published cell at any level, and everybody with a part of a hidden cell look for the
ends of each sensitive cell. Of sums, up to four hidden cells of a contributor are tried together.
`counts`, `sums` and `planted` on the command line choose; numbers are the first and last table.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.optimize import linprog

import discreet as dc
from benchmarks._measure import print_table
from discreet.suppress import Pattern, unions
from discreet.suppress import suppress as module

COUNTS, SUMS = 100, 40
SEEDS = {"counts": 777, "sums": 4242}  # fixed before the first run
TWO = {"Total": {"A": ["a1", "a2", "a3"], "B": ["b1", "b2"], "C": ["c1", "c2"]}}
THREE = {
    "Total": {
        "U": {"U1": ["u11", "u12"], "U2": ["u21", "u22"]},
        "V": {"V1": ["v11", "v12"]},
    }
}
SMALL = {"Total": {"A": ["a1", "a2"], "B": ["b1", "b2"]}}
R2 = ["a1", "a2", "a3", "b1", "b2", "c1", "c2"]
R3 = ["u11", "u12", "u21", "u22", "v11", "v12"]
SHAPES: list[tuple[dict[str, list[str]], str, dict[str, Any]]] = [
    ({"r": R2, "s": ["1", "2", "3"]}, "r*s", {"r": TWO}),
    ({"r": R2, "s": ["1", "2", "3"], "t": ["x", "y"]}, "r*s + r*t", {"r": TWO}),
    ({"r": R3, "s": ["1", "2", "3", "4"]}, "r*s", {"r": THREE}),
    (
        {"r": ["a1", "a2", "b1", "b2"], "s": ["1", "2", "3"], "t": ["x", "y", "z"]},
        "r*s + s*t + r*t",
        {"r": SMALL},
    ),
    (
        {"p": ["1", "2", "3", "4"], "q": ["1", "2", "3", "4"], "t": ["x", "y", "z"]},
        "p*q + p*t + q*t",
        {},
    ),
    ({"p": ["1", "2", "3"], "q": ["1", "2", "3"], "t": ["x", "y", "z"]}, "p*q*t", {}),
    ({"r": R3, "q": ["1", "2", "3"], "t": ["x", "y"]}, "r*q*t", {"r": THREE}),
    ({"r": R3, "p": R2}, "r*p", {"r": THREE, "p": TWO}),
]
RULES = [("p", 10, 1), ("p", 10, 1), ("dominance", 80, 1), ("p", 15, 2), ("dominance", 90, 2)]
RULES += [("few", 3, 0)]
MOST_TOGETHER, MOST_SETS, MOST_ATTACKERS, MOST_PROGRAMS = 4, 60, 150, 4_000
CLOSE = 1e-5


@dataclass
class Attacked:
    """What an attacker sees of a table: from labels, values and which are shown."""

    A: np.ndarray
    z: np.ndarray
    shown: np.ndarray
    least: np.ndarray | None = None

    def end(self, target: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
        """The smallest value of a target."""
        limits = {"A_eq": self.A[self.shown], "b_eq": self.z[self.shown]}
        if self.least is not None and self.least.any():
            limits |= {"A_ub": -self.A[self.least], "b_ub": -np.ones(self.least.sum())}
        found = linprog(target, bounds=np.column_stack([low, high]), **limits)
        if found.status == 3:
            return -np.inf
        if found.status:
            raise RuntimeError(found.message)
        return float(found.fun)

    def ends(self, target: np.ndarray, view: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
        """The smallest and the largest value."""
        return self.end(target, *view), -self.end(-target, *view)


def above(leaf: str) -> set[str]:
    """The codes of a leaf's groups: its first letters."""
    return {leaf, *(leaf[:n].upper() for n in range(1, len(leaf)))} if leaf[0].isalpha() else {leaf}


def columns(pattern: Pattern, variables: dict[str, list[str]]) -> np.ndarray:
    """Published cells × inner cells, by labels alone."""
    names, inner = list(variables), list(product(*variables.values()))
    cells = [pattern.design.cell(k) for k in range(len(pattern.z))]
    return np.array(
        [
            [all(cell[v] in above(leaf[names.index(v)]) for v in cell) for leaf in inner]
            for cell in cells
        ],
        dtype=float,
    )


def shape(number: int) -> tuple[dict[str, list[str]], str, dict[str, Any]]:
    """Variables, margins and hierarchies."""
    variables, margins, trees = SHAPES[number % len(SHAPES)]
    return variables, margins, {v: dc.Hierarchy.from_dict(tree) for v, tree in trees.items()}


def is_known(target: np.ndarray, view: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether all of a target is the attacker's own, or known to him by being alone."""
    inside = target > 0
    return bool((view[0][inside] == view[1][inside]).all())


def attack_counts(number: int, singletons: bool) -> tuple[int, int]:
    """Sensitive counts of a table, and those that somebody knows too closely."""
    rng = np.random.default_rng([SEEDS["counts"], number])
    variables, margins, trees = shape(number)
    n = int(np.prod([len(leaves) for leaves in variables.values()]))
    y = rng.poisson(rng.gamma(1.0, rng.choice([0.8, 1.5, 3.0]), n))
    frame = pd.DataFrame(list(product(*variables.values())), columns=list(variables)).assign(n=y)
    table = dc.Table.from_counts(frame, "n", margins=margins, hierarchies=trees)
    most, zeros = int(rng.choice([1, 2, 3])), bool(rng.random() < 0.3)
    rule = dc.rules.Threshold(most, zeros=zeros, width=int(rng.choice([2, 2, 3])))
    pattern = dc.Suppress(rule, singletons=singletons).pattern(table)
    A = columns(pattern, variables)
    z, shown = A @ y, ~pattern.suppressed
    sensitive = np.flatnonzero((z <= most) & ((z > 0) | zeros))
    if not (np.allclose(z, pattern.z) and (sensitive == np.flatnonzero(pattern.primary)).all()):
        raise RuntimeError(f"table {number}: values or sensitive cells differ.")
    seen = Attacked(A, z, shown, None if zeros else ~shown)
    short = set()
    for who, view in _people(seen, y, zeros):
        for k in sensitive:
            if who is None or not is_known(A[k], view):
                low, high = seen.ends(A[k], view)
                # His own part stays where it is, so a cell can only lose what others have.
                is_in = who is not None and A[k, who] > 0
                below = min(pattern.lower[k], z[k] - 1)
                asked = below + pattern.upper[k] if is_in else rule.width
                if high - low < asked - CLOSE:
                    short.add(int(k))
    return len(sensitive), len(short)


def _people(seen: Attacked, y: np.ndarray, zeros: bool) -> Iterator[tuple[int | None, Any]]:
    """The public, and one person of each inner cell in doubt, with what each knows."""
    low, high = np.zeros(len(y)), np.full(len(y), np.inf)
    if not zeros:
        high[(seen.A[seen.shown & (seen.z == 0)] > 0).any(axis=0)] = 0.0
    yield None, (low, high)
    for who in np.flatnonzero((y > 0) & (high > 0)):
        alone = seen.A[(seen.z == 1) & (seen.A[:, who] > 0)]
        known = (alone > 0).any(axis=0)
        mine = np.where(np.arange(len(y)) == who, 1.0, low)
        yield int(who), (np.where(known, y, mine), np.where(known, y, high))


def make_sums(number: int) -> tuple[dc.Table, dict[str, list[str]], np.ndarray, Any, Any]:
    """A table of sums, what each contributor has in each inner cell, and its rule."""
    rng = np.random.default_rng([SEEDS["sums"], number])
    variables, margins, trees = shape(number)
    inner = list(product(*variables.values()))
    firms, rows = int(rng.integers(len(inner), 2 * len(inner))), []
    for firm in range(firms):
        size, several = np.exp(rng.normal(2, 1.5)), int(rng.choice([1, 1, 2, 3, 5]))
        for cell in rng.choice(len(inner), size=min(len(inner), several), replace=False):
            amount = float(np.ceil(size * np.exp(rng.normal(0, 0.7))))
            rows.append((f"F{firm}", f"G{firm // 2}", *inner[cell], cell, amount))
    frame = pd.DataFrame(rows, columns=["firm", "group", *variables, "cell", "x"])
    unit = "group" if number % 5 == 4 else "firm"
    options = {"value": "x", "contributor": "firm", "largest": firms, "hierarchies": trees}
    options |= {"holding": "group"} if unit == "group" else {}
    table = dc.Table.from_contributions(frame.drop(columns="cell"), margins, **options)
    parts = np.zeros((frame[unit].nunique(), len(inner)))
    np.add.at(parts, (pd.factorize(frame[unit], sort=True)[0], frame["cell"]), frame["x"])
    kind, share, several = RULES[number % len(RULES)]
    rule = {
        "p": lambda: dc.rules.PPercent(share, n=several),
        "dominance": lambda: dc.rules.Dominance(several, share),
        "few": lambda: dc.rules.FewContributors(share),
    }[kind]()
    return table, variables, parts, RULES[number % len(RULES)], rule


def needs_of(parts: np.ndarray, z: np.ndarray, rule: Any) -> np.ndarray:
    """How far each cell's interval must reach."""
    kind, share, several = rule
    top = -np.sort(-parts, axis=0)
    if kind == "p":
        return np.maximum(share / 100 * top[0] - (z - top[: 1 + several].sum(axis=0)), 0)
    if kind == "dominance":
        return np.maximum(top[:several].sum(axis=0) * 100 / share - z, 0)
    count = (parts > 0).sum(axis=0)
    return np.where((count > 0) & (count < share), 0.1 * z, 0)


def attack_sums(number: int, singletons: bool) -> tuple[int, int, int, int]:
    """Sensitive sums, those known too closely, contributors told by sums, and those unproved."""
    table, variables, inside, kind, rule = make_sums(number)
    pattern = dc.Suppress(rule, singletons=singletons).pattern(table)
    A, y = columns(pattern, variables), inside.sum(axis=0)
    z, parts = A @ y, inside @ A.T
    needs = needs_of(parts, z, kind)
    sensitive = np.flatnonzero(needs > 1e-9 * np.maximum(1, z))
    if not (np.allclose(z, pattern.z) and (sensitive == np.flatnonzero(pattern.primary)).all()):
        raise RuntimeError(f"table {number}: values or sensitive cells differ.")
    seen = Attacked(A, z, ~pattern.suppressed)
    involved = np.flatnonzero(inside[:, (A[pattern.suppressed] > 0).any(axis=0)].any(axis=1))
    short = set()
    for who in [(), *((int(k),) for k in involved)]:
        view = view_of(seen, inside, who)
        for k in sensitive:
            if who and is_known(A[k], view):
                continue
            low, high = seen.ends(A[k], view)
            rest, slack = z[k] - parts[list(who), k].sum(), CLOSE * max(1.0, z[k])
            if z[k] - low < min(needs[k], rest) - slack or high - z[k] < needs[k] - slack:
                short.add(int(k))
    told = (
        set() if kind[0] == "few" else told_by_sums(number, seen, inside, involved.tolist(), kind)
    )
    open_still = {pattern.owners[k] for k in pattern.unproved if k < len(pattern.owners)}
    names = np.array(sorted(pattern.owners), dtype=object)
    proven = {who for who in told if not {*names[list(who)]} <= open_still}
    return len(sensitive), len(short), len(proven), len(pattern.unproved)


def view_of(
    seen: Attacked, inside: np.ndarray, who: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """What contributors know together: empty cells, their parts, and cells that are all theirs."""
    y, own = inside.sum(axis=0), inside[list(who)].sum(axis=0)
    alone = (seen.A @ own > 0) & (np.abs(seen.A @ own - seen.z) < 1e-9)
    known = (seen.A[alone] > 0).any(axis=0) | ((own > 0) & (np.abs(own - y) < 1e-9))
    return np.where(known, y, own), np.where(known | (y == 0), y, np.inf)


def told_by_sums(
    number: int, seen: Attacked, inside: np.ndarray, involved: list[int], kind: Any
) -> set[tuple[int, ...]]:
    """Contributors of whom some sum of hidden cells tells too much to somebody."""
    rng, parts = np.random.default_rng(number), inside @ seen.A.T
    name, share, several = kind
    least = share / 100 if name == "p" else 100 / share - 1
    pooling, together = (several, 1) if name == "p" else (1, several)
    hidden = np.flatnonzero(~seen.shown)
    hidden = hidden[np.sort(np.unique(seen.A[hidden], axis=0, return_index=True)[1])]
    ends: dict[Any, float] = {}
    told = set()
    for who in combinations(involved, together):
        own = parts[list(who)].sum(axis=0)
        cells = [k for k in hidden.tolist() if own[k] > 0]
        sizes = range(2 if pooling == 1 else 1, min(MOST_TOGETHER, len(cells)) + 1)
        several_cells = [s for n in sizes for s in combinations(cells, n)]
        sets = pick(rng, several_cells, MOST_SETS if together == 1 else 8)
        others = [k for k in involved if k not in who]
        groups = [(), *((k,) for k in others)] if pooling == 1 else [*combinations(others, pooling)]
        for against in pick(rng, groups, MOST_ATTACKERS if pooling == 1 else 12):
            theirs = parts[list(against)].sum(axis=0) * (name == "p")
            for one in sets:
                asked = (1 + least) * own[list(one)].sum() + theirs[list(one)].sum()
                if seen.z[list(one)].sum() >= asked or len(ends) > MOST_PROGRAMS:
                    continue
                if (against, one) not in ends:
                    target, view = seen.A[list(one)].sum(axis=0), view_of(seen, inside, against)
                    is_his = is_known(target, view)
                    ends[against, one] = np.inf if is_his else -seen.end(-target, *view)
                if ends[against, one] < asked - CLOSE * max(1.0, asked):
                    told.add(who)
    return told


def pick(rng: np.random.Generator, several: list[Any], most: int) -> list[Any]:
    """Some of them, where they are too many."""
    if len(several) <= most:
        return several
    return [several[k] for k in rng.choice(len(several), most, replace=False)]


def main() -> None:
    """Attack the tables asked for and print what was found."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    wanted = [word for word in ("counts", "sums", "planted") if word in sys.argv[1:]]
    rows: list[list[Any]] = []
    for name in wanted or ["counts", "sums"]:
        if name == "planted":
            few = range(*numbers) if numbers else range(8)
            found = np.sum([attack_counts(k, singletons=False) for k in few], axis=0)
            rows.append(["planted: no contributors, counts", len(few), *found, "-", "-"])
            with patch.object(module, "find_unions", lambda *_: unions.Unions((), ())):
                found = np.sum([attack_sums(k, singletons=True) for k in few], axis=0)
            rows.append(["planted: sums are not looked at", len(few), *found])
            continue
        tables = range(*numbers) if numbers else range(COUNTS if name == "counts" else SUMS)
        attack = attack_counts if name == "counts" else attack_sums
        found = np.sum([attack(k, singletons=True) for k in tables], axis=0)
        rows.append([name, len(tables), *found, *["-"] * (4 - len(found))])
    head = ["what", "tables", "sensitive", "too close", "told by sums", "unproved"]
    print_table(head, rows)
    is_clean = not any(row[3] or row[4] not in (0, "-") for row in rows)
    raise SystemExit(0 if is_clean or "planted" in wanted else 1)


if __name__ == "__main__":
    main()
