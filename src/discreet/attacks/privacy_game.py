r"""The distinguishing game: is one record there? What winning it says about ε.

Many games are played in one table. Each game is a category of its own; the intruder knows the whole
content of every game but for one record, and a coin decides whether that record is there (or which
of two it is). By (ε, δ)-differential privacy an event has :math:`P \le e^\varepsilon P' + \delta`
under the two sides of the coin. So with shares bounded by Clopper and Pearson's intervals,

.. math:: \varepsilon \ge \log\frac{\underline{P} - \delta}{\overline{P'}},

whatever the method says. A bound above the stated ε refutes the statement. See Jagielski, Ullman &
Oprea (2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.arrays import Array, Mask, Real
from discreet.attacks.frame import Claims, Knowledge
from discreet.attacks.scoring import Finding, judge, proportion_interval
from discreet.design.axis import Axis
from discreet.design.product import ProductDesign
from discreet.display import Display, Displayed
from discreet.errors import ParameterError
from discreet.facade.table import Table
from discreet.randomness import stream

LEVEL = 0.999
"""How sure a lower bound is; a stated ε is refuted falsely in one of a thousand games at most."""
_LEAST_SEEN = 10  # games beyond a threshold, so that its interval says something
Side = Literal["add-remove", "replace"]
_CONTENT: dict[Side, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "add-remove": ((6, 9), (7, 9)),
    "replace": ((7, 8), (6, 9)),
}
"""What a game holds on either side of the coin; large enough that negative values are rare."""


@dataclass(frozen=True)
class Distinguish:
    """Says of each game which of two contents it has, by the likelihood of the published values.

    The noise is taken to be independent with tails of the stated kind; its size does not matter for
    the order of the claims. `knowledge.extra` holds the `cells` of each game in the release, and
    their true values under both `contents`.
    """

    name: ClassVar[str] = "distinguish"

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """A claim for every game: `True` for the second content."""
        without, there = (np.asarray(c, dtype=np.float64) for c in knowledge.extra["contents"])
        values = np.asarray(release.z, dtype=np.float64)[knowledge.extra["cells"]]
        if "gaussian" in str(release.statement.steps[-1].name):
            score = (values - (without + there) / 2) @ (there - without)
        else:
            score = (np.abs(values - without) - np.abs(values - there)).sum(axis=1)
        score = score + rng.uniform(-1e-6, 1e-6, len(score))  # ties are guesses
        said = (score > 0).tolist()
        return Claims.ranked(range(len(score)), said, np.abs(score))


@dataclass(frozen=True, eq=False)
class PrivacyFinding(Displayed):
    """**Confidential.** What the game says of a method's guarantee.

    Attributes:
      epsilon: The stated ε.
      delta: The stated δ.
      at_least: ε is at least this, at a confidence of `LEVEL`.
      finding: How often the intruder is right, beside guessing.
    """

    epsilon: float
    delta: float
    at_least: float
    finding: Finding

    @property
    def is_refuted(self) -> bool:
        """Whether the stated ε is too small."""
        return self.at_least > self.epsilon

    def __str__(self) -> str:
        return "\n".join([_GAME, *(f"  {name}: {said}" for name, said in self._facts().items())])

    __repr__ = __str__

    def _display(self) -> Display:
        return Display(_GAME, "confidential", self._facts())

    def _facts(self) -> dict[str, str]:
        verdict = "refuted" if self.is_refuted else "not refuted"
        delta = f", δ = {self.delta:g}" if self.delta else ""
        return {
            "stated": f"ε = {self.epsilon:g}{delta}: {verdict}",
            "ε is at least": f"{self.at_least:.3g}, at a confidence of {LEVEL:.1%}",
            "intruder right": f"{self.finding.success:.1%} of the games (by guessing: 50.0%)",
        }


_GAME = "Distinguishing game"


def play(
    method: Any,
    change: Side = "add-remove",
    *,
    games: int = 20_000,
    seed: int,
    totals: bool = True,
) -> PrivacyFinding:
    """Play against a private method; see `PrivacyFinding`.

    The noise is that of an experiment, so the result can be repeated.
    Cost: one release of two or three cells a game.

    Args:
      method: The method; margins that it names are `"game"` and `"game:part"`.
      change: Whether the record is there at all, or which of two records it is.
      games: How many games are played.
      seed: Root of the coins and of the noise.
      totals: Whether the total of each game is published too. A replacement leaves it as it is, so
        without totals a game comes nearer to what replacements cost at most.
    """
    contents = _CONTENT[change]
    coin = stream(seed, "privacy game: coins").random(games) < 0.5
    table = _arena(coin, contents, totals)
    trial = table.simulate(method, seed=seed)
    privacy = trial.statement.privacy
    if privacy is None:
        raise ParameterError(f"method {method.name!r} states no ε, so there is nothing to refute.")
    cells, shown = np.arange(2 * games).reshape(games, 2), list(contents)
    if totals:
        cells = np.column_stack([cells, 2 * games + np.arange(games)])
        shown = [(*content, sum(content)) for content in contents]
    knowledge = Knowledge(extra={"contents": shown, "cells": cells})
    attack = Distinguish()
    claims = attack(trial, knowledge, rng=stream(seed, "privacy game: ties"))
    finding = judge(claims, dict(enumerate(coin.tolist())), attack=attack.name, baseline=0.5)
    stated = privacy.epsilon, privacy.delta
    if change == "replace":
        stated = privacy.epsilon_replace, privacy.delta_replace
    return PrivacyFinding(*stated, least_epsilon(claims, coin, stated[1]), finding)


def least_epsilon(claims: Claims, coin: Mask, delta: float, level: float = LEVEL) -> float:
    """The ε that the claims prove; the threshold is chosen by one half of them, tried on the other.

    Args:
      claims: Claims about games that are numbered from zero.
      coin: Which of the games have the second content.
      delta: The stated δ.
      level: Confidence of the bound.
    """
    score = np.empty(len(coin))
    score[np.array(claims.targets)] = np.where(claims.values, 1, -1) * claims.confidence
    half, each = len(coin) // 2, 1 - (1 - level) / 4  # two directions, two shares each
    found = 0.0
    for signed, truth in ((score, coin), (-score, ~coin)):
        cut = _best_cut(signed[:half], truth[:half])
        over, right = signed[half:] > cut, truth[half:]
        low, _ = proportion_interval(int((over & right).sum()), int(right.sum()), each)
        _, high = proportion_interval(int((over & ~right).sum()), int((~right).sum()), each)
        if low > delta:
            found = max(found, math.log((low - delta) / high))
    return found


def _best_cut(score: Real, truth: Array) -> float:
    """The threshold beyond which the odds are best, as far as enough games lie there."""
    best, found = 0.0, 0.0
    for cut in np.quantile(score, np.linspace(0.5, 0.995, 34)).tolist():
        over = score > cut
        right, wrong = int((over & truth).sum()), int((over & ~truth).sum())
        if min(right, wrong) < _LEAST_SEEN:
            continue
        low, _ = proportion_interval(right, int(truth.sum()), LEVEL)
        _, high = proportion_interval(wrong, int((~truth).sum()), LEVEL)
        odds = math.log(max(low, 1e-300) / high)
        if odds > best:
            best, found = odds, cut
    return found


def _arena(coin: Mask, contents: Sequence[tuple[int, ...]], totals: bool) -> Table:
    """A table of many games: two parts each, and the total of each where it is wanted."""
    axes = [Axis.flat("game", [str(k) for k in range(len(coin))]), Axis.flat("part", ["0", "1"])]
    design = ProductDesign(axes, [("game", "part"), *([("game",)] if totals else [])])
    counts = np.where(coin[:, None], contents[1], contents[0])
    return Table.from_inner(design, counts.ravel())
