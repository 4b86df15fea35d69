r"""A private publication audited from records to files: is one record there?

The game of `privacy_game`, played against everything between the records and what readers get:
opening, codes, bounds on weights, counting, noise, budget, files or the table builder. Each game is
a category of its own in one set of records, so one publication plays thousands of them. The
intruder adds up the evidence of all published tables. A category that is not there at all says that
nobody is in it.

The publication draws from the operating system, so a second audit has other noise. It refutes a
true ε in one of a thousand audits at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Mask, Real
from discreet.attacks.frame import Claims
from discreet.attacks.privacy_game import PrivacyFinding, least_epsilon
from discreet.attacks.scoring import judge
from discreet.errors import ParameterError, whole
from discreet.frames import Frame
from discreet.randomness import stream

Figures = Mapping[tuple[str, str], float]
"""What a reader has of one table: its figures by game and part; totals of games have no part."""
Pipeline = Callable[[Frame], Sequence[Figures]]
"""Publishes records with the columns `id`, `game`, `part` and `weight`, and reads what came out."""
PARTS = ("a", "b")
_TOTAL = ""


@dataclass(frozen=True)
class Victim:
    """The record that is there or not, and the company it is in.

    Attributes:
      company: Other records of its game in both parts; the record itself is of the first part.
      weight: Its weight; others weigh one.
      counted: What it may change the sums of its part by at most, by the rules of the publication.
    """

    company: tuple[int, int] = (6, 9)
    weight: float = 1.0
    counted: float = 1.0


IN_COMPANY = Victim()
ALONE = Victim((0, 0))
"""Nobody else is in its game, so that a label which follows the records would show it."""


def games_named(games: int) -> list[str]:
    """The codes of the games, which a publication declares beforehand."""
    return [f"g{k:06d}" for k in range(games)]


def audit_privacy(
    publish: Pipeline,
    epsilon: float,
    delta: float = 0.0,
    *,
    victim: Victim = IN_COMPANY,
    games: int = 4_000,
    seed: int,
) -> PrivacyFinding:
    """Play against a publication; `is_refuted` says that it tells more than it states.

    Args:
      publish: The publication.
      epsilon: The ε that it states for one record that is added or removed.
      delta: The stated δ.
      victim: The record that is looked for.
      games: How many games are played in one publication.
      seed: Root of the coins and of the guesses.
    """
    whole("games", games, 2)
    coin = stream(seed, "privacy audit: coins").random(games) < 0.5
    tables = publish(_records(coin, victim))
    if not tables:
        raise ParameterError("the publication gave no table, so there is nothing to attack.")
    score = np.sum([_evidence(table, games, victim) for table in tables], axis=0)
    score += stream(seed, "privacy audit: ties").uniform(-1e-6, 1e-6, games)
    claims = Claims.ranked(range(games), (score > 0).tolist(), np.abs(score))
    finding = judge(claims, dict(enumerate(coin.tolist())), attack="distinguish", baseline=0.5)
    return PrivacyFinding(epsilon, delta, least_epsilon(claims, coin, delta), finding)


def _records(coin: Mask, victim: Victim) -> Frame:
    """The records of all games."""
    n, names = len(coin), np.array(games_named(len(coin)))
    counts = [np.full(n, victim.company[0]), np.full(n, victim.company[1]), coin.astype(np.int64)]
    game = np.concatenate([np.repeat(names, count) for count in counts])
    sizes = [int(count.sum()) for count in counts]
    part = np.repeat([PARTS[0], PARTS[1], PARTS[0]], sizes)
    weight = np.repeat([1.0, 1.0, victim.weight], sizes)
    return Frame({"id": np.arange(len(game)), "game": game, "part": part, "weight": weight})


def _evidence(table: Figures, games: int, victim: Victim) -> Real:
    """For the record's presence by each game: how much nearer its figures are to it than without.

    A game whose figures are not shown at all, where those of others are, has nobody in it.
    """
    found = np.zeros(games)
    for part, without in ((PARTS[0], victim.company[0]), (_TOTAL, sum(victim.company))):
        shown = [table.get((name, part)) for name in games_named(games)]
        if all(value is None for value in shown):
            continue
        value = np.array([np.nan if v is None else v for v in shown], dtype=np.float64)
        there = without + victim.counted
        near = np.abs(value - without) - np.abs(value - there)
        over = np.maximum(value - there, 0.0)  # more than the rules allow says it all the louder
        found += np.where(np.isnan(value), -1e6, near + 1e-3 * over)
    return found


def figures_of(release: Any) -> Figures:
    """The figures of a release by game and part."""
    frame = release.to_frame()
    total = {axis.name: axis.total for axis in release.design.axes}
    value = next(name for name in frame.column_names if name not in total)
    columns = []
    for name in ("game", "part"):
        given = (
            frame[name].to_pylist()
            if name in frame.column_names
            else [total.get(name)] * len(frame)
        )
        columns.append([_TOTAL if code == total.get(name) else str(code) for code in given])
    figures = zip(*columns, frame[value].to_pylist(), strict=True)
    return {(game, part): float(figure) for game, part, figure in figures}
