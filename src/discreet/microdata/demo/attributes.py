"""What people are: citizenship, education, occupation and industry, each given what came before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from discreet.arrays import Real, Whole
from discreet.microdata.demo.classifications import CITIZENSHIP, code_lists
from discreet.microdata.demo.compositions import AGES, sigmoid
from discreet.microdata.demo.conditional import Conditional
from discreet.microdata.demo.geography import AREAS, PROVINCES, geography
from discreet.microdata.demo.industries import DEFENCE, SECTIONS
from discreet.microdata.demo.occupations import OCCUPATIONS, Occupation
from discreet.randomness import stream

HOME = 0
WORKING_AGE = 15
EDUCATION_LEVELS = 9
NO_EDUCATION = EDUCATION_LEVELS
NOT_WORKING = len(OCCUPATIONS)
# Ages at which the life stages begin that matter for work: school, start, middle, late, retired.
STAGES = np.searchsorted([15, 25, 45, 60, 65, 75], AGES, side="right")
# Household ages at which the share of foreigners changes.
CITIZEN_AGES = np.searchsorted([35, 65], AGES, side="right")
PROFILES = 12

# Least age for each level of education.
LEAST_AGE = np.array([15, 15, 15, 17, 17, 20, 21, 23, 26])
# Education at low, middle and high standing, for people born around the middle of the range.
BY_STANDING = np.array(
    [
        [0.030, 0.085, 0.290, 0.110, 0.390, 0.035, 0.045, 0.014, 0.001],
        [0.006, 0.022, 0.120, 0.150, 0.430, 0.085, 0.125, 0.058, 0.004],
        [0.002, 0.007, 0.040, 0.140, 0.190, 0.090, 0.270, 0.225, 0.036],
    ]
)
# Share at work by life stage, for men.
AT_WORK = np.array([0.0, 0.36, 0.86, 0.82, 0.56, 0.11, 0.015])
RETIRED = 5


@dataclass(frozen=True)
class AttributeModel:
    """The distributions of the attributes of people."""

    household_citizenship: Conditional
    citizenship: Conditional
    education: Conditional
    occupation: Conditional
    industry: Conditional
    profile: Whole


@cache
def attribute_model() -> AttributeModel:
    """All distributions of this file, built once; the same for every seed."""
    return AttributeModel(
        household_citizenship=Conditional.of(_household_citizenship()),
        citizenship=Conditional.of(_citizenship()),
        education=Conditional.of(_education()),
        occupation=Conditional.of(_occupation()),
        industry=Conditional.of(_industry()),
        profile=np.arange(len(geography().district_area)) * 5 % PROFILES,
    )


def _uneven(name: str, shape: tuple[int, ...], sigma: float) -> Real:
    """Lasting irregularities of the country: log-normal factors that no seed changes."""
    return np.exp(sigma * stream(0, f"demo:country:{name}").normal(size=shape))


def _foreign_mix() -> Real:
    """Relative frequency of each foreign citizenship: a few large groups, a long tail."""
    union, other = (len(leaves) for _, leaves in CITIZENSHIP[1:])
    return np.concatenate(
        [0.45 * np.arange(1.0, union + 1) ** -1.3, 0.55 * np.arange(1.0, other + 1) ** -1.5]
    )


def _household_citizenship() -> Real:
    """Weights of citizenship, by district and age class of the reference person."""
    place = geography()
    districts = len(place.district_area)
    foreign = np.array([0.22, 0.14, 0.08, 0.04])[place.district_area]
    mix = _foreign_mix() * _uneven("citizenship", (districts, len(_foreign_mix())), 1.8)
    for province in range(1, len(PROVINCES)):
        mix[place.district_province == province, province - 1] *= 4.0
    mix /= mix.sum(axis=1, keepdims=True)
    share = np.minimum(0.6, foreign[:, None] * np.array([1.35, 1.0, 0.4]))
    abroad = share[..., None] * mix[:, None, :]
    return np.concatenate([1 - share[..., None], abroad], axis=-1)


def _citizenship() -> Real:
    """Weights of a person's citizenship, by that of the household."""
    mix = np.concatenate([[0.0], _foreign_mix() / _foreign_mix().sum()])
    table = 0.82 * np.eye(len(mix)) + 0.03 * mix
    table[:, HOME] += 0.15
    table[HOME] = 0.018 * mix
    table[HOME, HOME] = 0.982
    return table


def _education() -> Real:
    """Weights of education, by age, area and standing; children have none yet."""
    level = np.arange(EDUCATION_LEVELS)
    cohort = np.exp(np.outer(np.clip(48 - AGES, -45, 20) / 45.0, level - 4.0) * 0.62)
    reached = sigmoid((AGES[:, None] - LEAST_AGE - 2.5) / 1.3) * (AGES[:, None] >= LEAST_AGE)
    centre = np.exp(np.outer([0.10, 0.04, -0.02, -0.06], level - 4.0))
    table = np.zeros((len(AGES), AREAS, len(BY_STANDING), EDUCATION_LEVELS + 1))
    table[..., :EDUCATION_LEVELS] = (
        BY_STANDING * (cohort * reached)[:, None, None, :] * centre[:, None, :]
    )
    table[AGES < WORKING_AGE] = np.eye(EDUCATION_LEVELS + 1)[NO_EDUCATION]
    return table


def _occupation() -> Real:
    """Weights of occupation, by education, sex, life stage, home or foreign, and area."""
    shape = (EDUCATION_LEVELS + 1, 2, len(AT_WORK), 2, AREAS, len(OCCUPATIONS) + 1)
    kinds = np.stack([_kind_of_work(o) for o in OCCUPATIONS], axis=-1)
    kinds *= _uneven("occupation", (*shape[:2], 1, 2, AREAS, len(OCCUPATIONS)), 0.5)
    kinds[:, :, RETIRED:, ..., _is_military()] = 0
    kinds /= kinds.sum(axis=-1, keepdims=True)
    at_work = _at_work()[..., None, None]
    table = np.concatenate([at_work * kinds, (1 - at_work) * np.ones((*shape[:-1], 1))], axis=-1)
    table[NO_EDUCATION] = np.eye(shape[-1])[NOT_WORKING]
    return table


def _kind_of_work(o: Occupation) -> Real:
    """Weight of one occupation among those at work, in the order of `_occupation`'s axes."""
    level = np.append(np.arange(EDUCATION_LEVELS), 2.0)
    fit = np.exp(-(((level - o.skill) / 1.25) ** 2)) + 0.004
    sex = np.array([o.women, 1 - o.women])
    senior = np.array([1.0, -1.1, 0.0, 0.25, 0.35, 0.5, 0.5]) * (o.code[2] == "1")
    foreign = np.array([0.0, 0.22 * (3.5 - o.skill)])
    rural = o.rural * np.linspace(-1.3, 1.1, AREAS)
    factors = (fit, sex, np.exp(senior), np.exp(foreign), np.exp(rural))
    return o.size * np.asarray(np.einsum("a,b,c,d,e->abcde", *factors), dtype=np.float64)


def _is_military() -> Whole:
    return np.flatnonzero([o.code.startswith("OC0") for o in OCCUPATIONS])


def _at_work() -> Real:
    """Share at work, by education, sex and life stage and home or foreign."""
    level = np.append(np.arange(EDUCATION_LEVELS), 0)
    schooling = 0.71 + 0.05 * level
    sex = np.array([0.91, 1.0])
    foreign = np.array([1.0, 0.88])
    share = np.einsum("a,b,c,d->abcd", schooling, sex, AT_WORK, foreign)
    return np.asarray(np.minimum(share, 0.96), dtype=np.float64)


def _industry() -> Real:
    """Weights of industry, by occupation and economic profile of the district."""
    codes = code_lists()["industry"].leaves
    letters = np.array([code[0] for code in codes[:-1]])
    sizes = np.concatenate([s.size * _division_shares(len(s.names)) for s in SECTIONS])
    usual = np.array([np.isin(letters, list(o.sections)) for o in OCCUPATIONS])
    weights = sizes * np.where(usual, 18.0, 0.12)
    weights = weights * _uneven("work", weights.shape, 1.1)
    weights = weights[:, None, :] * _uneven("profile", (PROFILES, len(letters)), 1.3)
    weights[_is_military()] = np.array(codes[:-1]) == DEFENCE
    table = np.zeros((len(OCCUPATIONS) + 1, PROFILES, len(codes)))
    table[:-1, :, :-1] = weights
    table[NOT_WORKING, :, -1] = 1
    return table


def _division_shares(count: int) -> Real:
    shares = np.arange(1.0, count + 1) ** -1.2
    return np.asarray(shares / shares.sum(), dtype=np.float64)
