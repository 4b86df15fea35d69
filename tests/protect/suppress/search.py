"""A search for what contributors find out about suppressed cells, apart from the library's own.

Every contributor is an attacker: he knows the published cells that he is alone in, and that no cell
is less than what he has in it. The programs here share nothing with those of the library: dense
matrices, one variable for each inner cell, SciPy's solver.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.sparse import eye_array, kron

import discreet as dc
from discreet.suppress import Pattern, attackers, suppress, unions

SEED = 20_260_729  # fixed before the first run
DESIGNS = [
    ({"a": 4, "b": 4}, "a*b"),
    ({"a": 3, "b": 3, "c": 2}, "a*b + b*c"),
    ({"a": 4, "b": 3, "c": 3}, "a*b + a*c + b*c"),
]
CLOSE = 1e-5
ANYTHING = 1e6  # more than any sum here


@dataclass(frozen=True)
class Case:
    """A table with what each contributor has in each inner cell, contributors × inner cells."""

    table: dc.Table
    parts: np.ndarray
    rule: object

    @property
    def is_count(self) -> bool:
        """Whether people are counted."""
        return self.table.contributions is None


HEXAGON = -1
"""The number of a known case: six hidden cells, and somebody alone in one who reads another."""


def random_case(number: int) -> Case:
    """A table of counts or of sums, by its number."""
    if number == HEXAGON:
        design = dc.Design.product({"a": 4, "b": 4, "c": 3}, "a*b + a*c + b*c")
        counts = np.random.default_rng(9).poisson(1.6, design.n_inner)
        parts = np.eye(design.n_inner)[np.repeat(np.arange(design.n_inner), counts)]
        return Case(dc.Table.from_inner(design, counts), parts, dc.rules.Threshold(2))
    rng = np.random.default_rng([SEED, number])
    variables, margins = DESIGNS[number % len(DESIGNS)]
    design = dc.Design.product(variables, margins)
    n = design.n_inner
    if number % 2:
        counts = rng.poisson(1.6, n)
        parts = np.eye(n)[np.repeat(np.arange(n), counts)]
        table, rule = dc.Table.from_inner(design, counts), dc.rules.Threshold(2)
        return Case(table, parts, rule)
    return random_sums(rng, variables, margins)


def random_sums(rng: np.random.Generator, variables: dict, margins: str) -> Case:
    """A table of skewed sums in which firms are in one to three cells."""
    shape = tuple(variables.values())
    n = firms = int(np.prod(shape))
    rows = []
    for firm in range(firms):
        for cell in rng.choice(n, size=rng.integers(1, 4), replace=False):
            rows.append((firm, cell, float(np.ceil(np.exp(rng.normal(2.0, 1.5))))))
    frame = pd.DataFrame(rows, columns=["firm", "cell", "x"])
    codes = np.unravel_index(frame["cell"].to_numpy(), shape)
    for name, code in zip(variables, codes, strict=True):
        frame[name] = (code + 1).astype(str)
    frame["firm"] = frame["firm"].astype(str)
    table = dc.Table.from_contributions(
        frame, margins, value="x", contributor="firm", largest=firms, support="occurring"
    )
    inner = table.contributions.require_inner()
    parts = np.zeros((firms, len(inner)))
    cells, places = np.nonzero(inner.owner >= 0)
    parts[inner.owner[cells, places], cells] = inner.largest[cells, places]
    return Case(table, parts, dc.rules.PPercent(10))


def intervals(
    pattern: Pattern, targets: np.ndarray, own: np.ndarray | None, *, zeros_are_public: bool
) -> np.ndarray:
    """Ends of what somebody with these parts finds of targets; NaN where a target is his own."""
    X, z = pattern.design.matrix().toarray().astype(float), pattern.z.astype(float)
    shown = ~pattern.suppressed
    floor, ceiling = np.zeros(len(X)), np.full(len(X), ANYTHING)
    ceiling[X[:, shown & (z == 0)].any(axis=1)] = 0.0
    if pattern.known is not None:
        ceiling[pattern.known] = 0.0
    is_known, mine = shown.copy(), np.zeros(len(X), dtype=bool)
    if own is not None:
        alone = (X.T @ own > 0) & (np.abs(X.T @ own - z) < 1e-9)
        mine = X[:, alone].any(axis=1) | (np.abs(own - pattern.y) < 1e-9) & (own > 0)
        floor, is_known = np.where(mine, pattern.y, own), shown | alone
        ceiling = np.where(mine, pattern.y, ceiling)
    is_own = ~(targets.astype(bool) & (~mine & (ceiling > 0))[:, None]).any(axis=0)
    # All targets, both ways, as one program of parts that have nothing to do with each other.
    cost = np.hstack([targets, -targets]).T
    many = eye_array(len(cost))
    limits = {"A_eq": kron(many, X[:, is_known].T), "b_eq": np.tile(z[is_known], len(cost))}
    if zeros_are_public and pattern.z.dtype.kind in "iu":
        least = np.tile((z[~shown] > 0).astype(float), len(cost))
        limits |= {"A_ub": kron(many, -X[:, ~shown].T), "b_ub": -least}
    bounds = np.tile(np.column_stack([floor, ceiling]), (len(cost), 1))
    found = linprog(cost.ravel(), bounds=bounds, **limits)
    if found.status:
        raise RuntimeError(found.message)
    values = (cost * found.x.reshape(cost.shape)).sum(axis=1).reshape(2, -1)
    return np.where(is_own, np.nan, [values[0], -values[1]])


def faults(case: Case, pattern: Pattern, *, zeros_are_public: bool) -> Iterator[tuple[int, int]]:
    """Attackers (−1: the public) and the sensitive cells that they know too closely."""
    X = pattern.design.matrix().toarray().astype(float)
    hidden = X[:, pattern.suppressed].any(axis=1)
    involved = np.flatnonzero(case.parts[:, hidden].sum(axis=1) > 0)
    _, first = np.unique(case.parts[involved], axis=0, return_index=True)
    attackers = [(-1, None), *((int(involved[k]), case.parts[involved[k]]) for k in first)]
    cells = np.flatnonzero(pattern.primary)
    values = pattern.z[cells].astype(float)
    for who, own in attackers if len(cells) else []:
        low, high = intervals(pattern, X[:, cells], own, zeros_are_public=zeros_are_public)
        # Nobody can be made to doubt his own part: a cell can only lose what others have.
        rest = values - (0.0 if own is None else own @ X[:, cells])
        below, above = np.minimum(pattern.lower[cells], rest), pattern.upper[cells]
        slack = CLOSE * np.maximum(1.0, values)
        short = (values - low < below - slack) | (high - values < above - slack)
        yield from ((who, int(k)) for k in cells[short])


def _nobody_alone_in_published_cells() -> Any:
    """Planted: who is alone in a published cell knows his inner cells alone."""
    nobody = lambda _, X: np.full(X.shape[1], -1)  # noqa: E731
    return patch.object(attackers, "owners_of_sums", nobody)


def _nobody_in_other_cells() -> Any:
    """Planted: nobody has a part of a cell that he is not alone in."""
    known = attackers._own_parts
    alone = lambda pattern, y: known(replace(pattern, contributions=None), y)  # noqa: E731
    return patch.object(attackers, "_own_parts", alone)


def _no_sums() -> Any:
    """Planted: sums of hidden cells are not looked at."""
    return patch.object(suppress, "find_unions", lambda *_: unions.Unions((), ()))


PLANTED = {
    "alone in a published cell": _nobody_alone_in_published_cells,
    "large in another hidden cell": _nobody_in_other_cells,
    "sums": _no_sums,
}
"""What a careless program leaves out, each as a context in which patterns are made."""


@dataclass(frozen=True)
class SumRule:
    """What a rule asks of sums of hidden cells.

    Attributes:
      share: What others must have beside the contributors looked at, as a share of theirs.
      coalition: How many others deduct their own parts; with zero they know them all the same.
      together: How many contributors are looked at together.
      is_alone: Whether only cells count in which nobody else is.
      exempt: Published cells that the rule never calls sensitive.
    """

    share: float
    coalition: int = 1
    together: int = 1
    is_alone: bool = False
    exempt: tuple[int, ...] = ()


SUM_RULE = SumRule(0.1)
"""What the rule of random sums asks of sums."""


def union_faults(
    case: Case, pattern: Pattern, rule: SumRule, *, most: int = 3
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Contributors, attackers (none: the public) and sums of hidden cells that tell too much.

    All sums of up to `most` hidden cells that contributors are in are tried one by one, against all
    who are in some hidden cell, wherever it is.
    """
    X = pattern.design.matrix().toarray().astype(float)
    hidden = np.flatnonzero(pattern.suppressed)
    parts, z = case.parts @ X[:, hidden], pattern.z[hidden].astype(float)
    involved = np.flatnonzero(case.parts[:, X[:, hidden].any(axis=1)].any(axis=1)).tolist()
    for who in combinations(involved, min(rule.together, len(involved))):
        own = parts[list(who)].sum(axis=0)
        cells = np.flatnonzero((own > 0) & (~rule.is_alone | (np.abs(own - z) < 1e-9)))
        fewest = 1 if rule.coalition > 1 else 2
        sizes = range(fewest, min(most, len(cells)) + 1)
        sets = [list(s) for size in sizes for s in combinations(cells.tolist(), size)]
        sets = [s for s in sets if not set(hidden[s]) <= set(rule.exempt)]
        others = [k for k in involved if k not in who or (rule.is_alone and len(who) > 1)]
        for several in combinations(others, min(max(rule.coalition, 1), len(others))):
            mine = case.parts[list(several)].sum(axis=0) if several else None
            known = np.zeros(len(z)) if mine is None or not rule.coalition else mine @ X[:, hidden]
            # The table itself is one that nobody rules out: only sets that it does not hide count.
            least = {tuple(s): (1 + rule.share) * own[s].sum() + known[s].sum() for s in sets}
            near = [s for s in sets if z[s].sum() < least[tuple(s)] * (1 - CLOSE)]
            if not near:
                continue
            targets = np.column_stack([X[:, hidden[s]].sum(axis=1) for s in near])
            high = intervals(pattern, targets, mine, zeros_are_public=True)[1]
            asked = np.array([least[tuple(s)] for s in near])
            for k in np.flatnonzero(high < asked - CLOSE * np.maximum(1.0, asked)):
                yield who, several, tuple(int(hidden[i]) for i in near[k])
