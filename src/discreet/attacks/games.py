"""How claims are judged, by what they are about: the game that the custodian plays with an attack.

The attack is run on the release and, for its baseline, on releases drawn without the targets'
records. Both runs are judged on the same targets. Whoever guesses without any release names the
commonest value; what that gets right stands beside the baseline, since every accurate table beats
it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Real, Whole
from discreet.assessment.audit.equations import DisagreementError
from discreet.attacks.custodian import Custodian, Draw, names_of_cells
from discreet.attacks.frame import Attack, Claims, Knowledge, PublicAttack
from discreet.attacks.insiders import judge_insiders
from discreet.attacks.leverage import judge_large_units
from discreet.attacks.membership import judge_members
from discreet.attacks.public_side import ask
from discreet.attacks.scoring import WORST, Finding, Tally, judge, tally
from discreet.errors import ParameterError
from discreet.progress import report
from discreet.randomness import stream

Truth = Mapping[Hashable, Any]
Game = Callable[[Attack, Custodian], Finding]
ALONE = "the same attack on this release alone"
BARE = "the same attack without the classes"
_BESIDE = ("laws", "program")  # knowledge that an attack can do without, and so its own baseline
# Targets whom anybody can name, so that a value can be guessed:
_NAMED = ("attributes", "differences", "hidden")
WITHOUT = "the same attack on releases without the targets' records"
BLIND = "a guess without any release"


def trait(attack: Attack, name: str) -> Any:
    """What an attack says of itself, or what attacks say that do not."""
    return getattr(attack, name, getattr(PublicAttack, name))


def play_with(attack: Attack, custodian: Custodian) -> Finding:
    """Run an attack and judge it by the game that its claims belong to."""
    about = trait(attack, "about")
    if about not in GAMES:
        raise ParameterError(
            f"attack {attack.name!r} makes claims about {about!r}; known are {', '.join(GAMES)}."
        )
    began = time.process_time()
    found = GAMES[about](attack, custodian)
    seconds = found.seconds or time.process_time() - began
    return replace(found, seconds=seconds, remedy=trait(attack, "remedy"))


def judge_counts(attack: Attack, custodian: Custodian) -> Finding:
    """Claims about counts of published, hidden or inner cells."""
    about = trait(attack, "about")
    truth = _true_counts(custodian, about)
    claims, seconds = _run(attack, custodian)
    right = tally(claims, _look_up(truth, claims))
    everything = replace(right, targets=max(1, _to_find(custodian, about)))
    proven = np.zeros(len(claims), bool) if claims.proven is None else claims.proven
    if (proven & ~right.right).any():
        raise DisagreementError(
            f"attack {attack.name!r} proved a count that is not true: the statement of the release "
            "is false, or this is not its table."
        )
    sure = [value for value, is_sure in zip(claims.values, proven, strict=True) if is_sure]
    found = Finding(
        attack.name,
        everything,
        0.0,
        seconds,
        proven=int(proven.sum()),
        undecided=claims.undecided,
        fixed=int(sum(sure)) if about == "inner" else 0,
        worst=_worst(custodian, claims, right, inner=about == "inner"),
    )
    poorer, beside = _with_less(attack, custodian)
    if poorer is not None:
        base = _run(attack, poorer)[0]
        chance = tally(base, _look_up(truth, base))
        return replace(found, baseline=chance, beside=beside, blind=_commonest(truth[truth > 0]))
    targets = [(draw, _count_targets(custodian, draw.out, about)) for draw in custodian.draws]
    return _beside_draws(found, attack, custodian, claims, targets)


def judge_attributes(attack: Attack, custodian: Custodian) -> Finding:
    """Claims about one variable of people of whom the other ones are known."""
    axes, release = custodian.release.design.axes, custodian.release
    variable = getattr(attack, "variable", None) or axes[-1].name
    if variable not in [axis.name for axis in axes]:
        raise ParameterError(f"there is no variable {variable!r} in this release.")
    known: list[dict[str, str]] = []
    targets = []
    for draw in custodian.draws:
        people = [release.design.inner_cell(int(k)) for k in draw.out]
        first = len(known)
        known += [{n: code for n, code in p.items() if n != variable} for p in people]
        targets.append((draw, {first + k: p[variable] for k, p in enumerate(people)}))
    told = replace(custodian.knowledge, people=tuple(known))
    game = replace(custodian, knowledge=told)
    claims, seconds = _run(attack, game)
    truth: dict[Hashable, Any] = {k: v for _, each in targets for k, v in each.items()}
    right = tally(claims, truth)
    said = zip(claims.targets, claims.values, right.right, strict=True)
    worst = tuple(
        f"{', '.join(f'{n}={c}' for n, c in known[int(str(k))].items())}: {variable}={value}"
        for k, value, is_right in said
        if is_right
    )[:WORST]
    found = Finding(attack.name, right, 0.0, seconds, worst=worst)
    return _beside_draws(found, attack, game, claims, targets)


def judge_differences(attack: Attack, custodian: Custodian) -> Finding:
    """The same of people who make the difference between releases, taken out of all they are in."""
    earlier = custodian.knowledge.earlier
    if len(custodian.before) != len(earlier):
        raise ParameterError(
            "give the true table of each other release: attack(…, before=[table])."
        )
    others = []
    for table, release in zip(custodian.before, earlier, strict=True):
        other = Custodian.of(table, release, Knowledge(), seed=custodian.seed)
        others.append(other if other.maker else replace(other, maker=custodian.maker))
    return judge_attributes(attack, replace(custodian, others=tuple(others)))


def judge_leavers(attack: Attack, custodian: Custodian) -> Finding:
    """Claims about profiles of people who are in the edition before and not in this one."""
    if not custodian.before:
        raise ParameterError(
            "give the true table of the edition before: attack(…, before=[table])."
        )
    newest, older = _profiles(custodian.table), _profiles(custodian.before[-1])
    truth: Truth = dict.fromkeys((older - newest).keys(), True)
    claims, seconds = _run(attack, custodian)
    base = _run(attack, _alone(custodian))[0]
    found = judge(claims, truth, attack=attack.name, baseline=base, seconds=seconds)
    return replace(found, beside=ALONE)


def judge_sensitive(attack: Attack, custodian: Custodian) -> Finding:
    """Claims that hidden cells are sensitive by themselves, beside the share that is."""
    hidden = np.flatnonzero(custodian.release.hidden)
    truth: Truth = {int(k): True for k in hidden if custodian.primary[k]}
    claims, seconds = _run(attack, custodian)
    share = len(truth) / max(1, len(hidden))
    found = judge(claims, truth, attack=attack.name, baseline=share, seconds=seconds)
    return replace(found, beside="naming any hidden cell")


def _true_counts(custodian: Custodian, about: str) -> Real | Whole:
    """What claims about cells are judged by."""
    if about == "inner":
        return custodian.y
    return custodian.records if about == "records" else custodian.z


def _with_less(attack: Attack, custodian: Custodian) -> tuple[Custodian | None, str]:
    """The same for an intruder who has less, where that is the baseline; and what it is."""
    beside, known = trait(attack, "beside"), custodian.knowledge
    if beside == "bare":
        return replace(custodian, release=replace(custodian.release, quality=None)), BARE
    if beside == "alone" and (known.earlier or not known.extra.keys().isdisjoint(_BESIDE)):
        return _alone(custodian), ALONE
    return None, ""


def _alone(custodian: Custodian) -> Custodian:
    """The same for an intruder who has this release only, and so one law."""
    known = custodian.knowledge
    extra = {name: value for name, value in known.extra.items() if name not in _BESIDE}
    return replace(custodian, knowledge=replace(known, earlier=(), extra=extra))


def _run(attack: Attack, custodian: Custodian, release: Any = None) -> tuple[Claims, float]:
    report(f"attack {attack.name}", 0.0)
    began = time.process_time()
    rng = stream(custodian.seed, f"attack: {attack.name}")
    seen = custodian.release if release is None else release
    claims = ask(attack, seen, custodian.knowledge, rng=rng)
    return claims, time.process_time() - began


def _beside_draws(
    found: Finding,
    attack: Attack,
    custodian: Custodian,
    claims: Claims,
    targets: list[tuple[Draw, dict[Any, Any]]],
) -> Finding:
    """The finding on the judge's targets, beside the same attack without their records."""
    truth = {key: value for _, each in targets for key, value in each.items()}
    blind, said = _commonest(list(truth.values())), _only(claims, truth)
    drawn = tally(said, truth)
    if trait(attack, "about") in _NAMED:
        found = replace(found, usual=_name_the_commonest(said, truth))
    if not custodian.is_redrawn:
        return replace(found, drawn=drawn, baseline=blind, blind=blind, beside=BLIND)
    base = Tally(np.zeros(0, dtype=bool), 0, np.zeros(0))
    for draw, each in targets:
        known = custodian.knowledge
        seen = replace(known, earlier=draw.others) if draw.others else known
        there = _run(attack, replace(custodian, knowledge=seen), draw.release)[0]
        base = base.with_more(tally(_only(there, each), each))
    return replace(found, drawn=drawn, baseline=base, blind=blind, beside=WITHOUT)


def _name_the_commonest(claims: Claims, truth: Truth) -> Tally:
    """How the commonest value of all targets fares on those that claims are about."""
    value = Counter(truth.values()).most_common(1)[0][0]
    same = replace(claims, values=(value,) * len(claims), proven=None)
    return tally(same, truth)


def _count_targets(custodian: Custodian, out: Whole, about: str) -> dict[Any, Any]:
    """The cell of each record: its own, or the smallest published (hidden) one that it is in."""
    if about == "inner":
        return {int(k): int(custodian.y[k]) for k in out}
    release, n = custodian.release, custodian.release.design.n_published
    members = release.design.members(out)
    size = np.append(_true_counts(custodian, about), np.inf)
    if about == "hidden":
        size[:n][~release.hidden] = np.inf
    smallest = np.take_along_axis(members, size[members].argmin(axis=1)[:, None], axis=1)[:, 0]
    return {int(k): float(size[k]) for k in smallest if np.isfinite(size[k])}


def _to_find(custodian: Custodian, about: str) -> int:
    """How many cells there are to find."""
    if about == "inner":
        return int((custodian.y > 0).sum())
    cells = custodian.release.hidden if about == "hidden" else np.ones(len(custodian.z), bool)
    return int(cells.sum())


def _look_up(truth: Any, claims: Claims) -> Truth:
    """The true counts of the cells that claims are about; cells that do not exist have none."""
    numbers: Any = claims.targets
    return {k: truth[k].item() for k in numbers if 0 <= k < len(truth)}


def _only(claims: Claims, truth: Truth) -> Claims:
    kept = [k for k, target in enumerate(claims.targets) if target in truth]
    return Claims(
        tuple(claims.targets[k] for k in kept),
        tuple(claims.values[k] for k in kept),
        claims.confidence[kept],
    )


def _worst(custodian: Custodian, claims: Claims, right: Tally, *, inner: bool) -> tuple[str, ...]:
    """Cells that were told, those of the fewest people first, as sure as they come."""
    told = [k for k, is_right in enumerate(right.right) if is_right and claims.values[k] > 0]
    told.sort(key=lambda k: (claims.values[k], k))
    cells: Any = {claims.targets[k]: f"{claims.values[k]:g}" for k in told[:WORST]}
    return tuple(names_of_cells(custodian.release, cells, inner=inner))


def _profiles(table: Any) -> Counter[tuple[str, ...]]:
    """How many people have each combination of codes."""
    some = np.flatnonzero(table.y)
    codes = [
        [axis.leaves[int(k)] for k in leaf[some]]
        for axis, leaf in zip(table.design.axes, table.design.inner_codes(), strict=True)
    ]
    people = zip(*codes, strict=True)
    return Counter(dict(zip(people, table.y[some].tolist(), strict=True)))


def _commonest(values: Any) -> float:
    """The share of the commonest of some values; zero of none."""
    numbers = Counter(list(values)).values()
    return max(numbers) / sum(numbers) if numbers else 0.0


GAMES: dict[str, Game] = {
    "cells": judge_counts,
    "records": judge_counts,
    "hidden": judge_counts,
    "inner": judge_counts,
    "attributes": judge_attributes,
    "differences": judge_differences,
    "leavers": judge_leavers,
    "sensitive": judge_sensitive,
    "units": lambda attack, custodian: judge_large_units(
        attack, custodian.table, custodian.release, custodian.knowledge
    ),
    "clusters": lambda attack, custodian: judge_insiders(
        attack, custodian.table, custodian.release
    ),
    "members": lambda attack, custodian: judge_members(
        attack, custodian.table, custodian.release, custodian.knowledge
    ),
}
"""By what claims are about, how they are judged."""
OF_RECORDS = ("units", "clusters", "members")
"""Games with synthetic records; the others are played with tables."""
