"""A small country in memory: the same door as the real one, with cells instead of an engine."""

import itertools

import numpy as np

from discreet import Hierarchy, Table
from discreet.randomness import stream
from discreet.recipe import Choice, Recipe

REGION = Hierarchy(
    "ALL",
    {
        "N": "ALL", "N1": "N", "N1-1": "N1", "N1-2": "N1", "N2": "N", "N2-1": "N2",
        "S": "ALL", "S1": "S", "S1-1": "S1", "S1-2": "S1",
        "ABROAD": "ALL",
    },
    {"ALL": "Whole country", "N": "North", "S": "South", "N1": "Høytland", "ABROAD": "Abroad"},
    ("country", "part", "county", "town"),
)  # fmt: skip
SEX = Hierarchy("T", {"F": "T", "M": "T"}, {"T": "Total", "F": "Women", "M": "Men"})
AGE = ("0-14", "15-64", "65+")
RECIPE = Recipe("region*age*sex", Choice("cell-key", {"D": 5, "V": 3, "js": 2}))


class Records:
    """What `Recipe.tabulate` needs, over a frame of counted cells with keys."""

    has_keys = True
    declared = True

    def __init__(self, columns, hierarchies, zeros=(), seed=1):
        rng = stream(seed, "small country")
        cells = list(itertools.product(*columns.values()))
        self.frame = {name: [c[k] for c in cells] for k, name in enumerate(columns)}
        self.frame["n"] = rng.poisson(rng.exponential(30, len(cells)))
        for rule in zeros:
            parts = [np.isin(self.frame[name], list(codes)) for name, codes in rule.items()]
            self.frame["n"][np.all(parts, axis=0)] = 0
        keys = rng.integers(2**32, size=len(cells))
        self.frame["key"] = np.where(self.frame["n"] > 0, keys, 0)
        self.hierarchies, self.zeros, self.asked = hierarchies, zeros, []

    def tabulate(self, margins, *, hierarchies=None, support="all", inner=True):
        self.asked.append(margins)
        return Table.from_counts(
            self.frame,
            "n",
            margins,
            key="key" if self.has_keys else None,
            hierarchies={**self.hierarchies, **(hierarchies or {})},
            support=support,
            structural_zeros=self.zeros,
            declared=self.declared,
        )


def small_country(**changes):
    columns = {"region": REGION.leaves, "age": AGE, "sex": SEX.leaves}
    return Records(columns, {"region": REGION, "sex": SEX}, **changes)
