"""The stand-in, protected in the three ways of the paper."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.design.formula import margins
from discreet.design.release import Trial
from discreet.noise.linear import linear_table
from discreet.noise.matrix import TransitionMatrix
from discreet.progress import report
from discreet.protect.adjust import Adjust
from discreet.protect.cell_key import CellKey
from discreet.protect.effect import Effect, effect
from discreet.protect.safe import Safe
from discreet_studies.eliminating_small_cells.standin import VARIABLES, Shape, StandIn, stand_in

Whole = NDArray[np.int64]

REACHES = (3, 4, 5)
"""Largest perturbations of the noise."""
VARIANCE = 2.002
"""The smallest variance that leaves no small cell, and a little."""
SMALL = (1, 2)
_TEST_TABLE = margins(list(VARIABLES[:3]), order=3, lower=True)


@dataclass(frozen=True)
class Effort:
    """Steps of the searches.

    Attributes:
      safe: Of SAFE; the method's default.
      short: Of SAFE when it is run once more with little effort.
      adjust: Of the adjustment; the method's default.
    """

    safe: float = Safe.proposals
    short: float = Safe.proposals / 20
    adjust: float = Adjust.proposals


@dataclass(frozen=True, eq=False)
class Noise:
    """The three-way table with noise.

    Attributes:
      before: True counts and counts with noise, of non-empty cells.
      after: True counts and counts with noise that were made to add up.
      is_additive: Whether they do.
      seconds: Time of noise and adjustment.
    """

    before: Effect
    after: Effect
    is_additive: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that the figures are made of.

    Attributes:
      data: The stand-in.
      safe: The five-way table after SAFE.
      short: The same after a twentieth of the search.
      noise: The three-way table by largest perturbation of its noise.
    """

    data: StandIn
    safe: Trial
    short: Trial
    noise: dict[int, Noise]

    @cached_property
    def controlled(self) -> Effect:
        """SAFE in controlled cells."""
        return effect(self.data.five_way, self.safe)

    @cached_property
    def test_table(self) -> Effect:
        """SAFE in the cells of the three-way table."""
        return effect(self.data.five_way, self.safe, _TEST_TABLE)

    @cached_property
    def short_search(self) -> Effect:
        """SAFE in the same cells after a twentieth of the search."""
        return effect(self.data.five_way, self.short, _TEST_TABLE)

    @cached_property
    def uncontrolled(self) -> Effect:
        """SAFE in the cells of tables of four variables."""
        return effect(self.data.five_way, self.safe, margins(list(VARIABLES), order=4))

    def by_method(self) -> dict[str, Effect]:
        """The three-way table by the names that Table 5 has for the methods."""
        found = {"SAFE": self.test_table}
        for D, noise in self.noise.items():
            found |= {f"D{D} adjusted": noise.after, f"D{D}": noise.before}
        return found


def matrix(D: int) -> TransitionMatrix:
    """The designed transition probabilities."""
    return linear_table(D, VARIANCE)


def all_results(shape: Shape | None = None, effort: Effort | None = None, seed: int = 1) -> Results:
    """The stand-in after SAFE, after noise, and after noise and adjustment."""
    data, effort = stand_in(shape, seed), effort or Effort()
    report("SAFE", 0.0)
    safe = data.five_way.simulate(Safe(proposals=effort.safe), seed=seed)
    short = data.five_way.simulate(Safe(proposals=effort.short), seed=seed)
    noise = {}
    for k, D in enumerate(REACHES):
        report("noise and adjustment", k / len(REACHES))
        noise[D] = _noise(data, D, effort, seed)
    return Results(data, safe, short, noise)


def _noise(data: StandIn, D: int, effort: Effort, seed: int) -> Noise:
    table, method = data.three_way, CellKey(matrix(D))
    started = time.perf_counter()
    before = table.simulate(method, seed=seed)
    after = table.simulate(Adjust(method, proposals=effort.adjust), seed=seed)
    seconds = time.perf_counter() - started
    some = table.z > 0
    adds_up = after.y is not None and np.array_equal(after.design.aggregate(after.y), after.z)
    return Noise(
        Effect(table.z[some], before.z[some]),
        Effect(table.z[some], after.z[some]),
        bool(adds_up),
        seconds,
    )


def sizes(found: Effect) -> NDArray[np.float64]:
    """Share of the cells at each size of deviation."""
    return np.bincount(np.abs(found.deviation)) / len(found.true)
