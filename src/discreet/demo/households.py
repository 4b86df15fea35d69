"""Households first: where they are, who is in them, and how their members are related."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Unsigned32, Whole
from discreet.demo.geography import AREAS, CAPITAL, RURAL, geography

FEMALE, MALE = range(2)
NO_UNION, MARRIED, REGISTERED, COHABITING = range(4)
NEVER = 0
REF, SPOUSE, CHILD, ASCENDANT, OTHER = range(5)
ADULT = 18
AGES = np.arange(101)
OLDEST_WITH_ASCENDANT = 75
# Among households with children: how many there are.
CHILDREN = (0.44, 0.40, 0.115, 0.032, 0.009, 0.004)
# Larger families in the country: factor for each further child, by area.
FAMILY_GROWTH = (0.85, 0.92, 1.0, 1.12)


@dataclass(frozen=True)
class Composition:
    """One make-up of a household: relations of its members, the reference person first."""

    has_spouse: bool
    children: int
    ascendants: int
    others: int

    @property
    def relations(self) -> tuple[int, ...]:
        """The relation of each member to the reference person."""
        rest = [CHILD] * self.children + [ASCENDANT] * self.ascendants + [OTHER] * self.others
        return (REF, *([SPOUSE] if self.has_spouse else []), *rest)


COMPOSITIONS = (
    *(Composition(False, 0, 0, others) for others in range(4)),
    *(Composition(True, children, 0, 0) for children in range(7)),
    *(Composition(False, children, 0, 0) for children in range(1, 7)),
    *(Composition(True, c, ascendants, 0) for c in range(4) for ascendants in (1, 2)),
    *(Composition(has_spouse, c, 0, 1) for has_spouse in (False, True) for c in (1, 2, 3)),
    Composition(False, 0, 1, 0),
    Composition(True, 0, 0, 1),
)
IS_COUPLE = np.array([int(c.has_spouse) for c in COMPOSITIONS])
SIZES = np.array([len(c.relations) for c in COMPOSITIONS])
# The relation of member i of composition c, at [c, i].
LAYOUT = np.array([(*c.relations, *[REF] * (SIZES.max() - len(c.relations))) for c in COMPOSITIONS])


@dataclass(frozen=True)
class Households:
    """Attributes of households; one element for each."""

    municipality: Whole  # its position in the code list
    composition: Whole  # its position in COMPOSITIONS
    age: Whole  # of the reference person
    sex: Whole  # of the reference person
    union: Whole  # whether the couple, if any, is married, registered or cohabiting
    standing: Whole  # social standing, 0 to 2: never published, it makes members alike


@dataclass(frozen=True)
class Conditional:
    r"""Conditional distributions :math:`P(j \mid c_1, \dots, c_m)` as alias tables.

    A 32-bit draw :math:`u` times the number of outcomes :math:`k` splits into a column
    (high half) and a remainder (low half); the column keeps the draw when the remainder lies
    below its threshold and hands it to its alias otherwise (Walker 1977).

    Promise: outcomes of weight zero are never drawn; probabilities are exact to
    :math:`2^{-32}`; draws are made on integers alone.
    Cost: constant for each draw, whatever the number of outcomes.

    Args:
      shape: Sizes of the conditioning variables, then the number of outcomes.
      threshold: For each context and column, the remainder below which the column is kept.
      alias: For each context and column, the outcome otherwise.
    """

    shape: tuple[int, ...]
    threshold: Unsigned32
    alias: Whole

    @classmethod
    def of(cls, weights: Real) -> Conditional:
        """From non-negative weights; the last axis holds the outcomes, the others the context."""
        outcomes = weights.shape[-1]
        rows = weights.reshape(-1, outcomes)
        threshold, alias = _alias_tables(rows / rows.sum(axis=1, keepdims=True))
        return cls(weights.shape, threshold.ravel(), alias.ravel())

    def draw(self, rng: np.random.Generator, *given: Whole) -> Whole:
        """One outcome for each element of the conditioning arrays."""
        outcomes = self.shape[-1]
        spread = rng.integers(0, 2**32, size=len(given[0]), dtype=np.uint32).astype(np.uint64)
        spread *= np.uint64(outcomes)
        remainder = spread.astype(np.uint32)
        column = (spread >> np.uint64(32)).view(np.int64)
        slot = given[0].astype(np.int64)  # a copy, so that what follows can work in place
        for size, values in zip(self.shape[1:], (*given[1:], column), strict=True):
            slot *= size
            slot += values
        return np.where(remainder < self.threshold.take(slot), column, self.alias.take(slot))


def _alias_tables(p: Real) -> tuple[Unsigned32, Whole]:
    """Thresholds and aliases of each row: the poorest open column is topped up by the richest."""
    rows, k = p.shape
    open_mass = p * k
    alias = np.tile(np.arange(k), (rows, 1))
    threshold = np.ones_like(p)
    row = np.arange(rows)
    for _ in range(k - 1):
        poor = open_mass.argmin(axis=1)
        rich = np.where(np.isinf(open_mass), -np.inf, open_mass).argmax(axis=1)
        threshold[row, poor] = open_mass[row, poor]
        alias[row, poor] = rich
        open_mass[row, rich] -= 1 - open_mass[row, poor]
        open_mass[row, poor] = np.inf
    return np.clip(np.rint(threshold * 2**32), 0, 2**32 - 1).astype(np.uint32), alias


def law(weights: Callable[[], Real]) -> Callable[[], Conditional]:
    """The distributions that a function gives the weights of, built once and when first drawn."""
    return cache(lambda: Conditional.of(weights()))


def draw_households(count: int, rng: np.random.Generator) -> Households:
    """`count` households: place, then reference person, then make-up."""
    municipality = _municipality().draw(rng, np.zeros(count, dtype=np.int64))
    area = geography().area[municipality]
    age = _reference_age().draw(rng, area)
    composition = _composition().draw(rng, area, age)
    return Households(
        municipality=municipality,
        composition=composition,
        age=age,
        sex=_reference_sex().draw(rng, composition, age),
        union=_union().draw(rng, IS_COUPLE[composition], age),
        standing=_standing().draw(rng, municipality),
    )


@law
def _municipality() -> Real:
    """Weight of each municipality: its share of the households."""
    return geography().share[None, :]


@law
def _reference_age() -> Real:
    """Weight of each age of the reference person, by area: the capital is younger."""
    survival = sigmoid((83 - AGES) / 4.5)
    headship = 0.08 + 0.92 * sigmoid((AGES - 25) / 3.0)
    cohort = 1 + 0.25 * np.exp(-(((AGES - 55) / 9.0) ** 2))
    tilt = np.exp(np.outer([-0.012, -0.003, 0.002, 0.006], AGES - 50.0))
    return tilt * np.where(AGES < ADULT, 0.0, survival * headship * cohort)


@law
def _composition() -> Real:
    """Weight of each composition by area and age of the reference person."""
    couple = 0.70 * sigmoid((AGES - 26) / 3.5) * sigmoid((83 - AGES) / 6.0)
    table = np.zeros((AREAS, len(AGES), len(COMPOSITIONS)))
    for area in range(AREAS):
        for c, composition in enumerate(COMPOSITIONS):
            table[area, :, c] = (
                (couple if composition.has_spouse else 1 - couple)
                * _children(composition, area)
                * _ascendants(composition.ascendants, area)
                * _others(composition, area)
            )
    return table


def _children(composition: Composition, area: int) -> Real:
    """Chance of this number of children at home, by age of the reference person."""
    if composition.has_spouse:
        some = 0.86 * sigmoid((AGES - 27) / 2.5) * sigmoid((54 - AGES) / 3.0)
    else:
        some = 0.28 * sigmoid((AGES - 27) / 3.5) * sigmoid((55 - AGES) / 4.0)
    if composition.children == 0:
        return 1 - some
    numbers = np.array(CHILDREN) * FAMILY_GROWTH[area] ** np.arange(len(CHILDREN))
    share = numbers[composition.children - 1] / numbers.sum()
    return np.asarray(some * share, dtype=np.float64)


def _ascendants(count: int, area: int) -> Real:
    """Chance that one or two parents live in, more often in the country."""
    usual = 0.05 if area == RURAL else 0.018
    some = usual * sigmoid((AGES - 36) / 4.0) * (AGES <= OLDEST_WITH_ASCENDANT)
    return np.asarray((1 - some, 0.85 * some, 0.15 * some)[count], dtype=np.float64)


def _others(composition: Composition, area: int) -> Real:
    """Chance of other members: flat-sharing when young and alone, rare otherwise."""
    alone = not composition.has_spouse and composition.children == 0
    young = (0.55 if area == CAPITAL else 0.30) * sigmoid((31 - AGES) / 3.0)
    some = 0.015 + young * alone
    return np.asarray((1 - some, 0.72 * some, 0.2 * some, 0.08 * some)[composition.others])


@law
def _reference_sex() -> Real:
    """Weights of (female, male), by composition and age."""
    table = np.zeros((len(COMPOSITIONS), len(AGES), 2))
    for c, composition in enumerate(COMPOSITIONS):
        male = 0.58 - 0.36 * sigmoid((AGES - 66) / 7.0)
        if composition.has_spouse:
            male = np.full(len(AGES), 0.62)
        elif composition.children:
            male = np.full(len(AGES), 0.17)
        table[c] = np.stack([1 - male, male], axis=-1)
    return table


@law
def _union() -> Real:
    """Weights of (none, married, registered, cohabiting), by couple or not, and age."""
    married = 0.12 + 0.78 * sigmoid((AGES - 36) / 7.0)
    registered = 0.05 * sigmoid((58 - AGES) / 10.0)
    table = np.zeros((2, len(AGES), 4))
    table[0, :, NO_UNION] = 1
    table[1, :, MARRIED] = married
    table[1, :, REGISTERED] = registered
    table[1, :, COHABITING] = 1 - married - registered
    return table.clip(min=0)


@law
def _standing() -> Real:
    """Weights of low, middle and high standing, by municipality."""
    place = geography()
    by_area = np.array(
        [[0.26, 0.36, 0.38], [0.31, 0.42, 0.27], [0.33, 0.49, 0.18], [0.36, 0.52, 0.12]]
    )
    district_tilt = np.sin(1.7 * place.district)[:, None] * np.array([-0.9, 0.0, 0.9])
    return np.asarray(by_area[place.area] * np.exp(district_tilt), dtype=np.float64)


@law
def member_age() -> Real:
    """Weight of each age of a member, by relation and age of the reference person."""
    difference = AGES[None, :] - AGES[:, None]
    adult = AGES >= ADULT
    identity = np.eye(len(AGES))
    age_at_birth = -difference
    birth = np.exp(-(((age_at_birth - 30) / 7.0) ** 2)) * (np.abs(age_at_birth - 32) <= 16)
    at_home = 0.004 + sigmoid((21.5 - AGES) / 2.2) * (AGES < 45)
    tables = [
        identity,
        np.exp(-np.abs(difference) / 2.6) * adult,
        birth * at_home,
        np.exp(-(((difference - 29) / 7.0) ** 2)) * (difference >= 16) * adult,
        np.exp(-np.abs(difference) / 5.0) * adult,
    ]
    return np.stack([np.where(t.sum(axis=1, keepdims=True) > 0, t, identity) for t in tables])


@law
def member_sex() -> Real:
    """Weights of (female, male), by relation and sex of the reference person."""
    same = 0.018
    children, ascendants, others = [0.488, 0.512], [0.73, 0.27], [0.47, 0.53]
    by_reference = {
        FEMALE: [[1, 0], [same, 1 - same], children, ascendants, others],
        MALE: [[0, 1], [1 - same, same], children, ascendants, others],
    }
    return np.array([by_reference[FEMALE], by_reference[MALE]], dtype=np.float64).swapaxes(0, 1)


@law
def member_marital() -> Real:
    """Weights of the marital codes, by union, sex and age."""
    table = np.zeros((4, 2, len(AGES), 6))
    table[MARRIED, ..., 1] = 1
    table[REGISTERED, ..., 2] = 1
    for union, never_again in ((NO_UNION, 37.0), (COHABITING, 44.0)):
        for sex in (FEMALE, MALE):
            table[union, sex] = _not_in_union(sex, never_again)
    table[:, :, AGES < ADULT] = np.eye(6)[NEVER]
    return table


def _not_in_union(sex: int, typical: float) -> Real:
    """Weights of the marital codes of people who live without a spouse, by age."""
    since = sigmoid((AGES - typical) / 4.0)
    widowed = 0.9 * sigmoid((AGES - (70 if sex == FEMALE else 77)) / 5.5)
    divorced = 0.52 * since * (1 - widowed)
    separated = 0.06 * since * (1 - widowed)
    apart = 0.03 * sigmoid((AGES - 27) / 4.0) * (1 - widowed)
    never = 1 - since * widowed - divorced - separated - apart
    return np.stack([never, apart, 0.08 * apart, separated, divorced, since * widowed], axis=-1)


def sigmoid(x: npt.NDArray[np.floating[Any]]) -> Real:
    """The logistic curve, from 0 to 1."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -40, 40))), dtype=np.float64)
