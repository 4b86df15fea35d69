"""What households are made of: who lives with the reference person, given age and area."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import Real, Whole
from discreet.microdata.demo.geography import AREAS, CAPITAL, RURAL

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


def _all() -> tuple[Composition, ...]:
    alone = [Composition(False, 0, 0, others) for others in range(4)]
    couples = [Composition(True, children, 0, 0) for children in range(7)]
    lone_parents = [Composition(False, children, 0, 0) for children in range(1, 7)]
    three_generations = [
        Composition(True, children, ascendants, 0) for children in range(4) for ascendants in (1, 2)
    ]
    crowded = [Composition(has_spouse, c, 0, 1) for has_spouse in (False, True) for c in (1, 2, 3)]
    return (
        *alone, *couples, *lone_parents, *three_generations, *crowded,
        Composition(False, 0, 1, 0), Composition(True, 0, 0, 1),
    )  # fmt: skip


COMPOSITIONS = _all()


def sizes() -> Whole:
    """Number of members of each composition."""
    return np.array([len(c.relations) for c in COMPOSITIONS])


def layout() -> Whole:
    """Relation of member `i` of composition `c`, at `[c, i]`."""
    table = np.zeros((len(COMPOSITIONS), int(sizes().max())), dtype=np.int64)
    for c, composition in enumerate(COMPOSITIONS):
        table[c, : len(composition.relations)] = composition.relations
    return table


def sigmoid(x: npt.NDArray[np.floating[Any]]) -> Real:
    """The logistic curve, from 0 to 1."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -40, 40))), dtype=np.float64)


def weights() -> Real:
    """Weight of each composition by area and age of the reference person."""
    table = np.zeros((AREAS, len(AGES), len(COMPOSITIONS)))
    for area in range(AREAS):
        for c, composition in enumerate(COMPOSITIONS):
            table[area, :, c] = _weight(composition, area)
    return table


def _weight(composition: Composition, area: int) -> Real:
    family = _couple() if composition.has_spouse else 1 - _couple()
    return (
        family
        * _children(composition, area)
        * _ascendants(composition.ascendants, area)
        * _others(composition, area)
    )


def _couple() -> Real:
    """Share that lives with a spouse or partner, by age."""
    return 0.70 * sigmoid((AGES - 26) / 3.5) * sigmoid((83 - AGES) / 6.0)


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
