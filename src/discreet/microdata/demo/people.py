"""One block of households, drawn as a whole from a stream of its own."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Array, Whole
from discreet.microdata.demo.attributes import (
    CITIZEN_AGES,
    HOME,
    STAGES,
    attribute_model,
)
from discreet.microdata.demo.classifications import AGE_GROUPS
from discreet.microdata.demo.compositions import SPOUSE
from discreet.microdata.demo.geography import geography
from discreet.microdata.demo.households import (
    NO_UNION,
    Households,
    draw_households,
    household_model,
)
from discreet.randomness import stream

HOUSEHOLDS_PER_BLOCK = 32_768
FIVE_YEAR_GROUP = np.minimum(np.arange(101) // 5, AGE_GROUPS - 1)

Block = dict[str, Array]


def block(seed: int, number: int) -> Block:
    """The people of block `number`: one array for each column, codes as positions in their lists.

    Members of a household stand together, the reference person first. Ids are counted within the
    block, from zero.
    """
    rng = stream(seed, f"demo:{number}")
    households = draw_households(HOUSEHOLDS_PER_BLOCK, rng)
    size = household_model().sizes[households.composition]
    home = np.repeat(np.arange(HOUSEHOLDS_PER_BLOCK), size)
    start = np.cumsum(size) - size
    relation = household_model().layout[
        households.composition[home], np.arange(len(home)) - start[home]
    ]
    columns = _demography(households, home, relation, rng)
    columns |= _attributes(households, home, columns, rng)
    return columns | {"household_id": home, "household_size": size[home], "relation": relation}


def _demography(
    households: Households, home: Whole, relation: Whole, rng: np.random.Generator
) -> Block:
    """Age, sex and marital status, given the reference person's."""
    model = household_model()
    age = model.member_age.draw(rng, relation, households.age[home])
    sex = model.member_sex.draw(rng, relation, households.sex[home])
    union = np.where(relation <= SPOUSE, households.union[home], NO_UNION)
    marital = model.member_marital.draw(rng, union, sex, age)
    return {"age": FIVE_YEAR_GROUP[age], "age_years": age, "sex": sex, "marital": marital}


def _attributes(households: Households, home: Whole, who: Block, rng: np.random.Generator) -> Block:
    """Citizenship, education, occupation and industry, given place, age and sex."""
    model, place = attribute_model(), geography()
    district = place.district[households.municipality]
    shared = model.household_citizenship.draw(rng, district, CITIZEN_AGES[households.age])
    citizenship = model.citizenship.draw(rng, shared[home])
    area = place.area[households.municipality][home]
    education = model.education.draw(rng, who["age_years"], area, households.standing[home])
    is_foreign = (citizenship != HOME).astype(np.int64)
    stage = STAGES[who["age_years"]]
    occupation = model.occupation.draw(rng, education, who["sex"], stage, is_foreign, area)
    industry = model.industry.draw(rng, occupation, model.profile[district][home])
    return {
        "region": households.municipality[home],
        "citizenship": citizenship,
        "education": education,
        "occupation": occupation,
        "industry": industry,
    }
