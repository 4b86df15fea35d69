"""A table builder attacked over HTTP by a visitor who asks, compares and learns what works.

The search follows QuerySnout (Cretu et al., 2022) and QueryCheetah (Stevanoski et al., 2024): no
attack is written down. From tables over all sets of variables the intruder makes rules that guess
one variable of a person: the largest figure, the only one that is not zero, or a figure that comes
back in another table. Some people are known wholly; rules that are right about them are kept, and
are then tried on the others.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np

from discreet.attacks.frame import Claims
from discreet.attacks.run import Findings
from discreet.attacks.scoring import LEVEL, Finding, judge, proportion_interval, tally
from discreet.display.bars import shows_progress
from discreet.errors import DataError, ParameterError, check_known, whole
from discreet.facade.table import Table
from discreet.progress import report
from discreet.randomness import stream

ATTACKS = ("query-search", "other-ways")
_SECONDS = 30.0  # for one answer
_LIMITS = (2.0, 5.0, 20.0, np.inf)  # sizes of the groups that a rule is tried on
_LEAST = 8  # people whom a rule must be tried on, so that its share says something
_RULES = 6  # that are kept
_MOST_PEOPLE = 2_000
Person = Mapping[str, str]
Crossing = tuple[str, ...]
Further = tuple[tuple[str, str], ...]
"""What a question asks beside its variables: filters and groups, as in an address."""


@dataclass
class Crawler:
    """A visitor with so many questions.

    Attributes:
      url: The address of the data set, as the browser shows it.
      budget: Questions that may still be asked.
      refused: Why questions were refused, by status.
    """

    url: str
    budget: int
    refused: dict[int, int] = field(default_factory=dict)
    _known: dict[tuple[Crossing, Further], dict[Crossing, float]] = field(default_factory=dict)

    def ask(
        self, names: Crossing, further: Further = (), *, anew: bool = False
    ) -> dict[Crossing, float]:
        """The figures of a crossing by their codes; nothing where it is refused or too late."""
        question = names, further
        if question not in self._known or anew:
            if self.budget <= 0:
                return {}
            self.budget -= 1
            self._known[question] = self._fetch(*question)
        return self._known[question]

    def _fetch(self, names: Crossing, further: Further) -> dict[Crossing, float]:
        said = urlencode([("format", "csv"), *(("rows", name) for name in names), *further])
        address = self.url.rstrip("/").replace("/d/", "/api/v1/datasets/", 1)
        try:
            with urllib.request.urlopen(f"{address}/table?{said}", timeout=_SECONDS) as answer:
                text = answer.read().decode("utf-8-sig")
        except urllib.error.HTTPError as error:
            self.refused[error.code] = self.refused.get(error.code, 0) + 1
            return {}
        except (OSError, ValueError) as error:
            raise DataError(f"{self.url} did not answer with a table: {error}.") from error
        head, *rows = csv.reader(io.StringIO(text))
        places = [head.index(name) for name in names]
        values = {tuple(row[k] for k in places): row[-1] for row in rows}
        return {codes: float(value) for codes, value in values.items() if _is_number(value)}


@dataclass(frozen=True)
class Rule:
    """Guesses a category of a person from two tables.

    Attributes:
      how: `"largest"`, `"only"` or `"same"`.
      group: The variables that make the person's group.
      other: For `"same"` the group whose figure comes back.
      limit: The largest group that it is tried on.
    """

    how: str
    group: Crossing
    other: Crossing
    limit: float

    def guess(self, person: Person, secret: str, codes: Sequence[str], asked: Crawler) -> str:
        """A category, or nothing where the rule does not apply."""
        table = asked.ask((*self.group, secret))
        own = tuple(person[name] for name in self.group)
        figures = np.array([table.get((*own, code), 0.0) for code in codes])
        total = asked.ask(self.other).get(tuple(person[n] for n in self.other), figures.sum())
        if not 0 < total <= self.limit:
            return ""
        if self.how == "largest":
            fits = figures == figures.max()
        else:
            fits = figures == total if self.how == "same" else figures > 0
        return codes[int(np.argmax(fits))] if fits.sum() == 1 else ""

    def __str__(self) -> str:
        said = f"{self.how} in {' × '.join(self.group) or 'everybody'}"
        if self.how == "same":
            said += f" as {' × '.join(self.other) or 'everybody'}"
        return said if np.isinf(self.limit) else f"{said}, up to {self.limit:g}"


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

    Two findings: `query-search`, rules for one variable of people that the search found by itself,
    beside the commonest category; and `other-ways`, counts as means over all ways to ask for them
    (again, in another order, as sums of finer tables, by filters, and as what totals have beyond
    complements and groups), beside asking once.

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
    found = []
    if attacks is None or "query-search" in attacks:
        found.append(_search(asked, _people(truth, seed), known, hidden, truth))
    if attacks is None or "other-ways" in attacks:
        found.append(_other_ways(asked, names, truth))
    passed = {f"status {code}": f"{n} questions refused" for code, n in asked.refused.items()}
    return Findings({each.attack: each for each in found}, passed)


def _search(
    asked: Crawler, people: Sequence[Person], known: Crossing, hidden: str, truth: Table
) -> Finding:
    codes = next(axis.leaves for axis in truth.design.axes if axis.name == hidden)
    half = len(people) // 2
    friends, others = people[:half], people[half:]
    if not friends:
        raise ParameterError("nobody can be looked for: the truth has fewer than two people.")
    kept: list[tuple[Rule, float]] = []
    left = list(friends)
    usual = max(sum(p[hidden] == code for p in friends) for code in codes) / len(friends)
    while left and len(kept) < _RULES:
        report("searching for attacks", len(kept) / _RULES)
        tried = [(*_share(rule, left, hidden, codes, asked), rule) for rule in _rules(known)]
        least, share, rule = max(tried, key=lambda each: each[0])
        if least <= usual:
            break
        kept.append((rule, share))
        left = [p for p in left if not rule.guess(p, hidden, codes, asked)]
    targets, values, sure = [], [], []
    for k, person in enumerate(others):
        for rule, share in kept:
            if code := rule.guess(person, hidden, codes, asked):
                targets.append(k)
                values.append(code)
                sure.append(share)
                break
    right: dict[Any, Any] = {k: p[hidden] for k, p in enumerate(others)}
    claims, blind = Claims.ranked(targets, values, sure), _commonest(right, targets)
    made = judge(claims, right, attack="query-search", baseline=blind)
    told = tuple(f"{rule}: right about {share:.0%} of those known" for rule, share in kept)
    return _with(made, told, "naming the commonest category")


def _rules(known: Crossing) -> Iterator[Rule]:
    """All rules over the known variables: who a figure is compared with is left to the search."""
    groups = [g for n in range(len(known) + 1) for g in itertools.combinations(known, n)]
    for group, limit in itertools.product(groups, _LIMITS):
        yield Rule("largest", group, group, limit)
        yield Rule("only", group, group, limit)
        for other in groups:
            yield Rule("same", group, other, limit)


def _share(
    rule: Rule, people: Sequence[Person], hidden: str, codes: Sequence[str], asked: Crawler
) -> tuple[float, float]:
    """What share of its guesses is right, with the lower end of its interval first."""
    said = [(rule.guess(p, hidden, codes, asked), p[hidden]) for p in people]
    right = [guess == code for guess, code in said if guess]
    if len(right) < _LEAST:
        return 0.0, 0.0
    return proportion_interval(sum(right), len(right), LEVEL)[0], sum(right) / len(right)


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
    return _with(made, tuple(told), "the same figure, asked for once")


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


def _with(found: Finding, told: tuple[str, ...], beside: str) -> Finding:
    remedy = "release the records once (mode = 'release-once'), so that all tables are sums"
    return replace(found, worst=told, beside=beside, remedy=remedy)


def _people(truth: Table, seed: int) -> list[Person]:
    """People of the truth in an order of chance."""
    some = np.repeat(np.arange(truth.design.n_inner), truth.y)
    chosen = stream(seed, "service: people").permutation(some)[:_MOST_PEOPLE]
    return [truth.design.inner_cell(int(k)) for k in chosen]


def _commonest(right: Mapping[Any, Any], targets: Sequence[int]) -> float:
    said = [right[k] for k in targets]
    return max((said.count(code) for code in set(said)), default=0) / max(1, len(said))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
