r"""A search for attacks on a table builder that learns from people who are known wholly.

It follows QuerySnout (Cretu et al., 2022) and QueryCheetah (Stevanoski et al., 2024): no attack is
written down. The intruder knows all variables of a person but one. Each set of the known variables
gives three questions: how many people of the person's group have a category, how many have another
one, and how large the group is. Two answers are compared by their difference and by their size, and
how often a difference goes with the true category is learned from half of the people. With
:math:`b` the pair of both, a category :math:`k` of a person has the evidence

.. math:: \log \frac{P(k \text{ is true} \mid b)}{P(k \text{ is false} \mid b)}
          - \log \frac{P(k \text{ is true})}{P(k \text{ is false})}.

Comparisons are taken one by one, as long as those known are told better; people whom the surest
claims are about are then looked for among the other half.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.attacks.crawler import Crawler, Crossing, Person
from discreet.attacks.frame import Claims
from discreet.attacks.scoring import LEVEL, Finding, judge, proportion_interval
from discreet.errors import ParameterError
from discreet.progress import report

_SIZES = (0.5, 2.5, 5.4, 20.4)  # between which groups are taken to be alike
_APART = 4  # differences beyond are taken together
_BINS = (2 * _APART + 1) * (len(_SIZES) + 1)
_DOUBT = 4.0  # answers like those of everybody that each bin is given beforehand
_COMPARISONS = 6  # that are kept
_HELD = 1_000  # comparisons that may be kept, which tell most by themselves: each has all people
_BETTER = 3.0  # nats by which another comparison has to tell those known better
_LEAST = 8  # people whom claims are about at least, so that their share says something
_SHARES = (1.0, 0.75, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)  # of the claims, the surest ones
REMEDY = "release the records once (mode = 'release-once'), so that all tables are sums"


@dataclass(frozen=True, eq=False)
class GroupFigures:
    """What one kind of question answers for all people.

    Attributes:
      said: The question in words.
      values: A figure for each person and category.
    """

    said: str
    values: Real


@dataclass(frozen=True, eq=False)
class Learned:
    """What differences of two figures say of a category.

    Attributes:
      said: The comparison in words.
      bins: The difference and size of each person and category.
      evidence: What each of them says, in nats, from all who are known.
    """

    said: str
    bins: Whole
    evidence: Real


def search(
    asked: Crawler, people: Sequence[Person], known: Crossing, hidden: tuple[str, Sequence[str]]
) -> Finding:
    """Claims about one variable of half of the people, beside naming the commonest category.

    Args:
      asked: The visitor.
      people: People of the truth; the first half is known wholly.
      known: The variables that are known of everybody.
      hidden: The variable that is looked for, and its codes.
    """
    name, codes = hidden
    half = len(people) // 2
    if half < 2 or len(codes) < 2:  # evidence about one of the known comes from the others
        raise ParameterError(
            "nothing can be learnt: the truth needs four people, and two categories of "
            f"{name!r}; it has {len(people)} and {len(codes)}."
        )
    place = {code: k for k, code in enumerate(codes)}
    true = np.array([place[person[name]] for person in people])
    usual = np.bincount(true[:half], minlength=len(codes)) / half
    kept, score = _learn(list(_figures(asked, people, known, hidden)), true[:half], usual)
    share = _share_to_claim(score[:half], true[:half], float(usual.max()))
    chance = _chances(score[half:])
    order = np.argsort(-chance.max(axis=1), kind="stable")[: round(share * (len(people) - half))]
    said = [codes[k] for k in chance[order].argmax(axis=1)]
    claims = Claims.ranked(order.tolist(), said, chance[order].max(axis=1))
    right: dict[Any, Any] = {k: codes[c] for k, c in enumerate(true[half:].tolist())}
    blind = _commonest(true[half:][order])
    made = judge(claims, right, attack="query-search", baseline=blind)
    worst = tuple(each.said for each in kept) if len(order) else ()
    return replace(made, worst=worst, remedy=REMEDY, beside="naming the commonest category")


def _figures(
    asked: Crawler, people: Sequence[Person], known: Crossing, hidden: tuple[str, Sequence[str]]
) -> Iterator[GroupFigures]:
    """What is answered about everybody's groups; half of the questions are left for others."""
    name, codes = hidden
    groups: list[Crossing] = [
        g for n in range(len(known) + 1) for g in itertools.combinations(known, n)
    ]
    least = asked.budget // 2
    for group in groups:
        own = [tuple(person[variable] for variable in group) for person in people]
        where = " × ".join(group) or "everybody"
        if asked.budget - 2 < least:
            return
        crossed, whole = asked.ask((*group, name)), asked.ask(group)
        if crossed:
            values = [[crossed.get((*mine, code), 0.0) for code in codes] for mine in own]
            yield GroupFigures(f"{name} in {where}", np.array(values))
        if whole:
            sizes = np.array([whole.get(mine, 0.0) for mine in own])
            yield GroupFigures(where, np.repeat(sizes[:, None], len(codes), axis=1))
        if asked.budget - len(codes) < least:
            continue
        others = [asked.ask(group, _others(name, codes, code)) for code in codes]
        if all(others):
            values = [[each.get(mine, 0.0) for each in others] for mine in own]
            yield GroupFigures(f"{name} in {where}, any other", np.array(values))


def _others(name: str, codes: Sequence[str], code: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"where.{name}", other) for other in codes if other != code)


def _learn(figures: list[GroupFigures], true: Whole, usual: Real) -> tuple[list[Learned], Real]:
    """The comparisons that tell most, and the evidence for each category of everybody.

    Evidence about a person who is known comes from the other half of those.
    """
    n, m = len(true), len(figures[0].values) if figures else len(true)
    score = np.tile(np.log(np.maximum(usual, 1e-3)), (m, 1))
    is_true = np.arange(len(usual)) == true[:, None]
    fold = np.arange(n) % 2

    def compare(one: GroupFigures, other: GroupFigures) -> tuple[float, Learned, Real]:
        bins = _bins(one.values, other.values)
        learned = Learned(f"{one.said} beside {other.said}", bins, _evidence(bins[:n], is_true))
        said = learned.evidence[bins]
        for k in (0, 1):
            held = _evidence(bins[:n][fold != k], is_true[fold != k])
            said[:n][fold == k] = held[bins[:n][fold == k]]
        return _likelihood(score[:n] + said[:n], true), learned, said

    pairs = itertools.starmap(compare, itertools.combinations(figures, 2))
    left = [found[1:] for found in heapq.nlargest(_HELD, pairs, key=lambda found: found[0])]
    kept: list[Learned] = []
    while left and len(kept) < _COMPARISONS:
        report("searching for attacks", len(kept) / _COMPARISONS)
        now = _likelihood(score[:n], true)
        gains = [_likelihood(score[:n] + said[:n], true) - now for _, said in left]
        best = int(np.argmax(gains))
        if gains[best] < _BETTER:
            break
        learned, said = left.pop(best)
        kept.append(replace(learned, said=f"{learned.said}: {_most_telling(learned, is_true)}"))
        score = score + said
    return kept, score


def _bins(one: Real, other: Real) -> Whole:
    """A number for each difference and size."""
    apart = np.clip(np.rint(one - other), -_APART, _APART).astype(np.int64) + _APART
    found: Whole = apart * (len(_SIZES) + 1) + np.digitize(np.maximum(one, other), _SIZES)
    return found


def _evidence(bins: Whole, is_true: Mask) -> Real:
    """Log odds of each bin, drawn towards those of all where few people were seen in it."""
    usual = float(is_true.mean())
    right = np.bincount(bins[is_true], minlength=_BINS) + _DOUBT * usual
    wrong = np.bincount(bins[~is_true], minlength=_BINS) + _DOUBT * (1 - usual)
    found: Real = np.log(right / wrong) - np.log(usual / (1 - usual))
    return found


def _most_telling(learned: Learned, is_true: Mask) -> str:
    """The difference that speaks for most people, in words."""
    seen = np.bincount(learned.bins[: len(is_true)][is_true], minlength=_BINS)
    best = int(np.argmax(seen * learned.evidence))
    apart, size = divmod(best, len(_SIZES) + 1)
    difference = "the same figure" if apart == _APART else f"{apart - _APART:+d}"
    most = f" up to {_SIZES[size]:.0f}" if 0 < size < len(_SIZES) else ""
    odds = float(np.exp(learned.evidence[best]))
    return f"{difference}{most} raises the odds of a category {odds:.1f} times"


def _chances(score: Real) -> Real:
    odds = np.exp(score - score.max(axis=1, keepdims=True))
    found: Real = odds / odds.sum(axis=1, keepdims=True)
    return found


def _likelihood(score: Real, true: Whole) -> float:
    return float(np.log(_chances(score)[np.arange(len(true)), true] + 1e-12).sum())


def _share_to_claim(score: Real, true: Whole, usual: float) -> float:
    """The share of surest claims to make: right for certain, and not too few; none if as usual."""
    chance = _chances(score)
    order = np.argsort(-chance.max(axis=1), kind="stable")
    right = (chance.argmax(axis=1) == true)[order]
    best, found = 0.0, 0.0
    for share in _SHARES:
        n = round(share * len(true))
        low = proportion_interval(int(right[:n].sum()), n, LEVEL)[0] if n >= _LEAST else 0.0
        if (gain := math.sqrt(n) * (low - usual)) > best:
            best, found = gain, share
    return found


def _commonest(true: Whole) -> float:
    """The share of the commonest category."""
    return float(np.bincount(true).max() / len(true)) if len(true) else 0.0
