"""Tables that several tests of methods use."""

from dataclasses import replace

import numpy as np

import discreet as dc
from discreet import Secret
from discreet.tables import Bounds, CellValues, DataSet

SECRET = Secret(b"a secret of at least thirty-two bytes for tests")

PARTY = {
    "party": [p for p in "ABC" for _ in range(6)],
    "age": ["young", "young", "middle", "middle", "old", "old"] * 3,
    "sex": ["m", "f"] * 9,
    "n": [0, 0, 8, 4, 4, 1, 0, 1, 3, 5, 1, 0, 2, 3, 9, 6, 2, 7],
}


def party(margins="party*age + party*sex", **options):
    """Table 1 of Langsrud & Lupp (2021)."""
    return dc.Table.from_counts(PARTY, count="n", margins=margins, **options)


def declared(margins="party*age + party*sex", **options):
    """The same table with a public code list, as private methods need it."""
    return party(margins, declared=True, **options)


def keyed_party(margins="party*age + party*sex", seed=1, **options):
    """The same table with random keys, and no secret."""
    return party(margins, **options).rekeyed(np.random.default_rng(seed))


def secret_party(margins="party*age + party*sex", seed=1, **options):
    """The same table with random keys and the custodian's secret."""
    return keyed_party(margins, seed, **options).with_secret(SECRET)


def square(counts, weights=None):
    """A two-way table without margins from a square of counts, with random keys."""
    counts = np.asarray(counts)
    design = dc.Design.product({"a": counts.shape[0], "b": counts.shape[1]}, [("a", "b")])
    weight = None if weights is None else np.asarray(weights, dtype=float).ravel()
    values = CellValues(counts.ravel(), weight)
    bounds = Bounds(mean_weight=None if weights is None else 30.0)
    return replace(dc.Table.from_inner(design, values), data_set=DataSet(bounds=bounds))
