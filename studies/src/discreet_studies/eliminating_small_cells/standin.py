"""Records of nobody in the place of the paper's census data, which are not at hand.

Region × age × country of birth has about as many non-empty cells as the paper's three-way test
table (22,670) and, before any adjustment, deviations like the printed ones; sex and marital status
cross it to five variables, so that there are tables of four variables that nobody controls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.design.base import Design
from discreet.design.formula import margins
from discreet.design.table import Table
from discreet.randomness import stream

CONTROLLED = 3
"""Tables of up to so many variables are controlled."""


@dataclass(frozen=True)
class Shape:
    """Size of the stand-in.

    Attributes:
      region: Number of regions.
      age: Number of age groups.
      country: Number of countries of birth; the k-th has weight k to the power of -1.5.
      mean: Expected count of the first country in a mean region and age group.
    """

    region: int = 44
    age: int = 18
    country: int = 40
    mean: float = 120.0


SEX, MARITAL = 2, 4
VARIABLES = ("region", "age", "country", "sex", "marital")


@dataclass(frozen=True, eq=False)
class StandIn:
    """Both tables of the same invented people.

    Attributes:
      three_way: Region × age × country of birth with all margins, for noise and adjustment.
      five_way: All five variables; published and controlled are tables of up to three.
    """

    three_way: Table
    five_way: Table


def stand_in(shape: Shape | None = None, seed: int = 1) -> StandIn:
    """The invented census.

    Args:
      shape: Its size; about 22,500 non-empty cells in the three-way table when absent.
      seed: Root of the streams of random numbers.
    """
    shape = shape or Shape()
    rng = stream(seed, "eliminating small cells, records")
    counts = _three_way_counts(shape, rng)
    sizes = dict(zip(VARIABLES, (*counts.shape, SEX, MARITAL), strict=True))
    first = Design.product({v: sizes[v] for v in VARIABLES[:3]}, "*".join(VARIABLES[:3]))
    second = Design.product(sizes, margins(list(VARIABLES), order=CONTROLLED, lower=True))
    return StandIn(
        Table.from_inner(first, counts.ravel()).rekeyed(rng),
        Table.from_inner(second, _crossed(counts, rng).ravel()),
    )


def _three_way_counts(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """A few large countries and many small ones, in regions and age groups of unequal size."""
    region, age = rng.gamma(3.0, 1.0, shape.region), rng.gamma(6.0, 1.0, shape.age)
    country = 1.0 / np.arange(1, shape.country + 1) ** 1.5
    mean = np.einsum("i,j,k->ijk", region / region.mean(), age / age.mean(), country)
    return np.asarray(rng.poisson(shape.mean * mean * rng.gamma(1.5, 1 / 1.5, mean.shape)))


def _crossed(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sex and marital status of everybody, with shares that depend on age."""
    regions, ages, countries = counts.shape
    shares = rng.dirichlet(np.full(SEX * MARITAL, 2.0), size=ages)
    split = [rng.multinomial(counts[:, a].ravel(), shares[a]) for a in range(ages)]
    stacked = np.stack([s.reshape(regions, countries, SEX, MARITAL) for s in split], axis=1)
    return np.asarray(stacked)
