"""Households first: where they are, who is in them, and how their members are related."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from discreet.arrays import Real, Whole
from discreet.microdata.demo import compositions as make_up
from discreet.microdata.demo.compositions import ADULT, AGES, COMPOSITIONS, sigmoid
from discreet.microdata.demo.conditional import Conditional
from discreet.microdata.demo.geography import Geography, geography

FEMALE, MALE = range(2)
NO_UNION, MARRIED, REGISTERED, COHABITING = range(4)
NEVER = 0


@dataclass(frozen=True)
class Households:
    """Attributes of households; one element for each.

    Args:
      municipality: Position of the municipality.
      composition: Position in the list of compositions.
      age: Age of the reference person.
      sex: Sex of the reference person.
      union: Whether the couple, if any, is married, registered or cohabiting.
      standing: Social standing, 0 to 2; never published, it makes members alike.
    """

    municipality: Whole
    composition: Whole
    age: Whole
    sex: Whole
    union: Whole
    standing: Whole


@dataclass(frozen=True)
class HouseholdModel:
    """The distributions households and their members' relations are drawn from."""

    municipality: Conditional
    age: Conditional
    composition: Conditional
    sex: Conditional
    union: Conditional
    standing: Conditional
    member_age: Conditional
    member_sex: Conditional
    member_marital: Conditional
    layout: Whole
    sizes: Whole
    is_couple: Whole


@cache
def household_model() -> HouseholdModel:
    """All distributions of this file, built once."""
    place = geography()
    return HouseholdModel(
        municipality=Conditional.of(place.share[None, :]),
        age=Conditional.of(_reference_age()),
        composition=Conditional.of(make_up.weights()),
        sex=Conditional.of(_reference_sex()),
        union=Conditional.of(_union()),
        standing=Conditional.of(_standing(place)),
        member_age=Conditional.of(_member_age()),
        member_sex=Conditional.of(_member_sex()),
        member_marital=Conditional.of(_member_marital()),
        layout=make_up.layout(),
        sizes=make_up.sizes(),
        is_couple=np.array([int(c.has_spouse) for c in COMPOSITIONS]),
    )


def draw_households(count: int, rng: np.random.Generator) -> Households:
    """`count` households: place, then reference person, then make-up."""
    model, place = household_model(), geography()
    municipality = model.municipality.draw(rng, np.zeros(count, dtype=np.int64))
    area = place.area[municipality]
    age = model.age.draw(rng, area)
    composition = model.composition.draw(rng, area, age)
    return Households(
        municipality=municipality,
        composition=composition,
        age=age,
        sex=model.sex.draw(rng, composition, age),
        union=model.union.draw(rng, model.is_couple[composition], age),
        standing=model.standing.draw(rng, municipality),
    )


def _reference_age() -> Real:
    """Weight of each age of the reference person, by area: the capital is younger."""
    survival = sigmoid((83 - AGES) / 4.5)
    headship = 0.08 + 0.92 * sigmoid((AGES - 25) / 3.0)
    cohort = 1 + 0.25 * np.exp(-(((AGES - 55) / 9.0) ** 2))
    tilt = np.exp(np.outer([-0.012, -0.003, 0.002, 0.006], AGES - 50.0))
    return tilt * np.where(AGES < ADULT, 0.0, survival * headship * cohort)


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


def _standing(place: Geography) -> Real:
    """Weights of low, middle and high standing, by municipality."""
    by_area = np.array(
        [[0.26, 0.36, 0.38], [0.31, 0.42, 0.27], [0.33, 0.49, 0.18], [0.36, 0.52, 0.12]]
    )
    district_tilt = np.sin(1.7 * place.district)[:, None] * np.array([-0.9, 0.0, 0.9])
    return np.asarray(by_area[place.area] * np.exp(district_tilt), dtype=np.float64)


def _member_age() -> Real:
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


def _member_sex() -> Real:
    """Weights of (female, male), by relation and sex of the reference person."""
    same = 0.018
    children, ascendants, others = [0.488, 0.512], [0.73, 0.27], [0.47, 0.53]
    by_reference = {
        FEMALE: [[1, 0], [same, 1 - same], children, ascendants, others],
        MALE: [[0, 1], [1 - same, same], children, ascendants, others],
    }
    return np.array([by_reference[FEMALE], by_reference[MALE]], dtype=np.float64).swapaxes(0, 1)


def _member_marital() -> Real:
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
