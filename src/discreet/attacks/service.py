"""A table builder attacked over HTTP: a search for attacks, and the same figures in other ways."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from discreet.attacks.crawler import Crawler, Crossing, Person
from discreet.attacks.frame import Claims
from discreet.attacks.query_search import REMEDY, search
from discreet.attacks.run import Findings
from discreet.attacks.scoring import Finding, judge, tally
from discreet.display.bars import shows_progress
from discreet.errors import ParameterError, check_known, whole
from discreet.facade.table import Table
from discreet.randomness import stream

ATTACKS = ("query-search", "other-ways")
_MOST_PEOPLE = 2_000


@shows_progress("attacking the table builder")
def attack_service(
    url: str,
    truth: Table,
    budget: int = 500,
    attacks: Sequence[str] | None = None,
    *,
    secret: str | None = None,
    seed: int = 1,
) -> Findings:
    """Attack a table builder as a visitor, and judge the claims by the truth. Confidential.

    Two findings: `query-search`, comparisons of answers that tell one variable of people, which the
    search found by itself, beside the commonest category; and `other-ways`, counts as means over
    all ways to ask for them (again, in another order, as sums of finer tables, by filters, and as
    what totals have beyond complements and groups), beside asking once.

    Args:
      url: The address of a data set of the builder, `http://…/d/NAME`.
      truth: The true table over the variables that are asked for.
      budget: How many tables are asked for at most.
      attacks: Names of the attacks; both when absent.
      secret: The variable that is looked for; the last one when absent.
      seed: Decides who is known wholly and who is looked for.
    """
    if urlsplit(url).scheme not in ("http", "https") or "/d/" not in url:
        raise ParameterError(f"a data set's address is expected, http://…/d/NAME; got {url!r}.")
    asked = Crawler(url, whole("budget", budget, 1))
    names = [axis.name for axis in truth.design.axes]
    hidden = secret or names[-1]
    if hidden not in names or len(names) < 2:
        raise ParameterError(f"the truth has no variable {hidden!r} beside others.")
    check_known("attack on a table builder", attacks or (), ATTACKS)
    known = tuple(name for name in names if name != hidden)
    leaves = {axis.name: axis.leaves for axis in truth.design.axes}
    found = []
    if attacks is None or "query-search" in attacks:
        found.append(search(asked, _people(truth, seed), known, (hidden, leaves[hidden])))
    if attacks is None or "other-ways" in attacks:
        found.append(_other_ways(asked, names, truth))
    passed = {f"status {code}": f"{n} questions refused" for code, n in asked.refused.items()}
    return Findings({each.attack: each for each in found}, passed)


def _other_ways(asked: Crawler, names: Sequence[str], truth: Table) -> Finding:
    """Counts of pairs as means over all ways to ask for them, beside asking once."""
    once: dict[Any, int] = {}
    mean: dict[Any, int] = {}
    right: dict[Any, Any] = {}
    told: list[str] = []
    leaves = {axis.name: axis.leaves for axis in truth.design.axes}
    y = np.asarray(truth.y).reshape([len(codes) for codes in leaves.values()])
    pairs = list(itertools.combinations(range(len(names)), 2))
    first = {pair: asked.ask((names[pair[0]], names[pair[1]])) for pair in pairs}
    for pair in pairs:
        one, two = (names[k] for k in pair)
        ways = _distinct(_ways(asked, one, two, leaves, first[pair]))
        if len(ways) > 1:
            told.append(f"{one} × {two}: {len(ways) - 1} other questions have figures of their own")
        true = y.sum(axis=tuple(k for k in range(len(names)) if k not in pair))
        for place, count in np.ndenumerate(true):
            cell = leaves[one][place[0]], leaves[two][place[1]]
            found = [(way[cell], 1 / noises) for noises, way in ways if cell in way]
            if cell not in first[pair]:
                continue
            values, weights = zip(*found, strict=True)
            key = (one, two, *cell)
            right[key], once[key] = int(count), round(first[pair][cell])
            mean[key] = round(float(np.average(values, weights=weights)))
    if not right:
        return Finding("other-ways", tally(Claims.ranked([], [], []), {}), 0.0)
    claims, alone = (Claims.ranked(list(c), list(c.values()), [1.0] * len(c)) for c in (mean, once))
    made = judge(claims, right, attack="other-ways", baseline=alone)
    beside = "the same figure, asked for once"
    return replace(made, remedy=REMEDY, worst=tuple(told), beside=beside)


Way = tuple[int, dict[Crossing, float]]
"""How many figures with noise of their own are added up, and what comes of it by cell."""


def _ways(
    asked: Crawler,
    one: str,
    two: str,
    leaves: Mapping[str, Sequence[str]],
    first: dict[Crossing, float],
) -> Iterator[Way]:
    """Everything that implies the counts of two variables."""
    yield 1, first
    yield 1, asked.ask((one, two), anew=True)
    yield 1, {codes[::-1]: value for codes, value in asked.ask((two, one)).items()}
    for third in leaves.keys() - {one, two}:
        finer, parts = asked.ask((one, two, third)), leaves[third]
        yield len(parts), {c: sum(finer.get((*c, part), 0.0) for part in parts) for c in first}
    for kept, cut in ((one, two), (two, one)):
        own = asked.ask((kept,))
        for code in leaves[cut]:
            others = [other for other in leaves[cut] if other != code]
            apart = tuple((f"where.{cut}", other) for other in others)
            group = ((f"group.{cut}", "|".join(["rest", *others])),)
            cells: dict[Crossing, Crossing] = {
                (c,): (c, code) if kept == one else (code, c) for c in leaves[kept]
            }
            alone = asked.ask((kept,), ((f"where.{cut}", code),))
            yield 1, {cell: alone[c] for c, cell in cells.items() if c in alone}
            rest = asked.ask((kept,), apart) if others else {}
            yield 1 + len(others), _without(own, rest, cells)
            summed = asked.ask((kept, cut), group) if len(others) > 1 else {}
            rest = {(c,): summed[c, "rest"] for c in leaves[kept] if (c, "rest") in summed}
            yield 1 + len(others), _without(own, rest, cells)


def _without(
    total: Mapping[Crossing, float],
    rest: Mapping[Crossing, float],
    cells: Mapping[Crossing, Crossing],
) -> dict[Crossing, float]:
    return {cell: total[c] - rest[c] for c, cell in cells.items() if c in total and c in rest}


def _distinct(ways: Iterator[Way]) -> list[Way]:
    """Ways that say something: one that gives the figures of another is no second look."""
    kept: list[Way] = []
    for noises, found in ways:
        known = (
            all(c in way and math.isclose(way[c], v, abs_tol=1e-6) for c, v in found.items())
            for _, way in kept
        )
        if found and not any(known):
            kept.append((noises, found))
    return kept


def _people(truth: Table, seed: int) -> list[Person]:
    """People of the truth in an order of chance."""
    some = np.repeat(np.arange(truth.design.n_inner), truth.y)
    chosen = stream(seed, "service: people").permutation(some)[:_MOST_PEOPLE]
    return [truth.design.inner_cell(int(k)) for k in chosen]
