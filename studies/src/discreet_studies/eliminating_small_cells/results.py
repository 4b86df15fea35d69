"""Records of nobody in the place of the paper's census data, protected in its three ways.

The census data are not at hand. Region × age × country of birth has about as many non-empty cells
as the paper's three-way test table (22,670) and, before any adjustment, deviations like the printed
ones; sex and marital status cross it to five variables, so that there are tables of four variables
that nobody controls.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Real, Whole
from discreet.design.base import Design
from discreet.design.formula import margins
from discreet.facade.release import Trial
from discreet.facade.table import Table
from discreet.noise.linear import linear_table
from discreet.noise.matrix import TransitionMatrix
from discreet.progress import report
from discreet.protect.adjust import Adjust
from discreet.protect.cell_key import CellKey
from discreet.protect.safe import Effect, Safe, effect
from discreet.randomness import stream

SEX, MARITAL = 2, 4
VARIABLES = ("region", "age", "country", "sex", "marital")
CONTROLLED = 3
"""Tables of up to so many variables are controlled."""

REACHES = (3, 4, 5)
"""Largest perturbations of the noise."""
VARIANCE = 2.002
"""The smallest variance that leaves no small cell, and a little."""
SMALL = (1, 2)
_TEST_TABLE = margins(list(VARIABLES[:3]), order=3, lower=True)


@dataclass(frozen=True)
class CensusSize:
    """Size and shape of the stand-in.

    Attributes:
      region: Number of regions.
      age: Number of age groups.
      country: Number of countries of birth.
      mean: Expected count of the first country in a mean region and age group.
      skew: The k-th country has weight k to the power of minus this.
      evenness: Shape of the gamma law by which cells differ from the product of their margins.
    """

    region: int = 44
    age: int = 18
    country: int = 40
    mean: float = 120.0
    skew: float = 1.5
    evenness: float = 1.5


OTHERS = {
    "twice as many people": CensusSize(mean=240.0),
    "half as many people": CensusSize(mean=60.0),
    "countries of less unequal size": CensusSize(skew=1.0),
    "countries of more unequal size": CensusSize(skew=2.0),
    "cells nearer to the product of their margins": CensusSize(evenness=6.0),
    "cells further from the product of their margins": CensusSize(evenness=0.5),
}
"""Stand-ins that would have done as well, one change each."""


@dataclass(frozen=True, eq=False)
class StandIn:
    """Both tables of the same invented people.

    Attributes:
      three_way: Region × age × country of birth with all margins, for noise and adjustment.
      five_way: All five variables; published and controlled are tables of up to three.
    """

    three_way: Table
    five_way: Table


def stand_in(shape: CensusSize | None = None, seed: int = 1) -> StandIn:
    """The invented census.

    Args:
      shape: Its size; about 22,500 non-empty cells in the three-way table when absent.
      seed: Root of the streams of random numbers.
    """
    rng = _records(seed)
    counts = _three_way_counts(shape or CensusSize(), rng)
    sizes = dict(zip(VARIABLES, (*counts.shape, SEX, MARITAL), strict=True))
    second = Design.product(sizes, margins(list(VARIABLES), order=CONTROLLED, lower=True))
    return StandIn(
        Table.from_inner(_three_way(counts), counts.ravel()).rekeyed(rng),
        Table.from_inner(second, _cross_with_sex_and_status(counts, rng).ravel()),
    )


def published_table(shape: CensusSize | None = None, seed: int = 1) -> Table:
    """The three-way table of a stand-in, and nothing else of it."""
    rng = _records(seed)
    counts = _three_way_counts(shape or CensusSize(), rng)
    return Table.from_inner(_three_way(counts), counts.ravel()).rekeyed(rng)


def published_counts(shape: CensusSize | None = None, seed: int = 1) -> Whole:
    """The counts of the three-way table with its margins, without keys."""
    counts = _three_way_counts(shape or CensusSize(), _records(seed))
    return np.asarray(_three_way(counts).aggregate(counts.ravel()))


def _records(seed: int) -> np.random.Generator:
    return stream(seed, "eliminating small cells, records")


def _three_way(counts: np.ndarray) -> Design:
    sizes = dict(zip(VARIABLES[:3], counts.shape, strict=True))
    return Design.product(sizes, "*".join(VARIABLES[:3]))


def _three_way_counts(shape: CensusSize, rng: np.random.Generator) -> np.ndarray:
    """A few large countries and many small ones, in regions and age groups of unequal size."""
    region, age = rng.gamma(3.0, 1.0, shape.region), rng.gamma(6.0, 1.0, shape.age)
    country = 1.0 / np.arange(1, shape.country + 1) ** shape.skew
    mean = np.einsum("i,j,k->ijk", region / region.mean(), age / age.mean(), country)
    uneven = rng.gamma(shape.evenness, 1 / shape.evenness, mean.shape)
    return np.asarray(rng.poisson(shape.mean * mean * uneven))


def _cross_with_sex_and_status(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sex and marital status of everybody, with shares that depend on age."""
    regions, ages, countries = counts.shape
    shares = rng.dirichlet(np.full(SEX * MARITAL, 2.0), size=ages)
    split = [rng.multinomial(counts[:, a].ravel(), shares[a]) for a in range(ages)]
    stacked = np.stack([s.reshape(regions, countries, SEX, MARITAL) for s in split], axis=1)
    return np.asarray(stacked)


@dataclass(frozen=True)
class Effort:
    """Steps of the searches.

    Attributes:
      safe: Of SAFE; the method's default.
      short: Of SAFE when it is run once more with little effort.
      adjust: Of the adjustment; the method's default.
    """

    safe: float = 2e8
    short: float = 1e7
    adjust: float = 8e7


@dataclass(frozen=True, eq=False)
class NoisyTable:
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
class CensusResults:
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
    noise: dict[int, NoisyTable]

    @cached_property
    def controlled_cells(self) -> Effect:
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
    def uncontrolled_cells(self) -> Effect:
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


def law_at(law: TransitionMatrix, count: int) -> dict[int, float]:
    """Probabilities of each deviation at a count."""
    return dict(zip(law.deviations.tolist(), law.probabilities(count).tolist(), strict=True))


def all_results(
    shape: CensusSize | None = None, effort: Effort | None = None, seed: int = 1
) -> CensusResults:
    """The stand-in after SAFE, after noise, and after noise and adjustment."""
    data, effort = stand_in(shape, seed), effort or Effort()
    report("SAFE", 0.0)
    safe = data.five_way.simulate(Safe(proposals=effort.safe), seed=seed)
    short = data.five_way.simulate(Safe(proposals=effort.short), seed=seed)
    noise = {}
    for k, D in enumerate(REACHES):
        report("noise and adjustment", k / len(REACHES))
        noise[D] = _noise(data, D, effort, seed)
    return CensusResults(data, safe, short, noise)


def _noise(data: StandIn, D: int, effort: Effort, seed: int) -> NoisyTable:
    table, method = data.three_way, CellKey(matrix(D))
    started = time.perf_counter()
    before = table.simulate(method, seed=seed)
    after = table.simulate(Adjust(method, proposals=effort.adjust), seed=seed)
    seconds = time.perf_counter() - started
    some = table.z > 0
    adds_up = after.y is not None and np.array_equal(after.design.aggregate(after.y), after.z)
    return NoisyTable(
        Effect(table.z[some], before.z[some]),
        Effect(table.z[some], after.z[some]),
        bool(adds_up),
        seconds,
    )


def sizes(found: Effect) -> Real:
    """Share of the cells at each size of deviation."""
    return np.bincount(np.abs(found.deviation)) / len(found.true)
