"""A household sample of one block, with calibrated weights."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Mask, Real, Whole
from discreet.microdata.demo.compositions import REF
from discreet.microdata.demo.geography import CAPITAL, PROVINCES, geography
from discreet.microdata.demo.people import Block

# Sampling fraction of each province: small ones need more for figures of their own.
FRACTION = np.array([0.02, 0.022, 0.024, 0.026, 0.028, 0.032, 0.036, 0.05])
BROAD_AGES = np.searchsorted([3, 13], np.arange(20), side="right")


def with_weights(people: Block, rng: np.random.Generator) -> Block:
    r"""The people of sampled households, with weights.

    With the design weight :math:`d_i = 1/f_p` of province :math:`p` and strata :math:`h` of
    province, sex and broad age, :math:`w_i = d_i \, N_h / \sum_{j \in h} d_j`; a last factor for
    each province makes good for strata in which nobody was sampled.
    """
    province = geography().province[people["region"]]
    taken = _answers(people, province, rng)
    stratum = (province * 2 + people["sex"]) * 3 + BROAD_AGES[people["age"]]
    weight = 1 / FRACTION[province[taken]]
    weight = _calibrated(weight, stratum, taken, len(PROVINCES) * 6)
    weight = _calibrated(weight, province, taken, len(PROVINCES))
    chosen = {name: values[taken] for name, values in people.items()}
    return chosen | {"weight": weight}


def _answers(people: Block, province: Whole, rng: np.random.Generator) -> Mask:
    """Whether a person's household is sampled and answers."""
    is_reference = people["relation"] == REF
    in_capital = geography().area[people["region"]] == CAPITAL
    answers = 0.88 - 0.12 * in_capital - 0.10 * (people["household_size"] == 1)
    chance = (FRACTION[province] * answers)[is_reference]
    household_of = np.cumsum(is_reference) - 1
    return np.asarray((rng.random(len(chance)) < chance)[household_of])


def _calibrated(weight: Real, group: Whole, taken: Mask, groups: int) -> Real:
    """Weights scaled so that they sum to the number of people in each group that has any."""
    population = np.bincount(group, minlength=groups)
    estimate = np.bincount(group[taken], weight, minlength=groups)
    factor = population / np.where(estimate > 0, estimate, 1)
    return weight * factor[group[taken]]
