"""What tells editions apart, and predictable keys from others, counted where the records are."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import KeysError
from discreet.randomness import stream
from discreet.records.expressions import count_keys, record_sketches
from discreet.tables.sketches import Passage

N = 600
RNG = stream(1, "editions")
PEOPLE = pa.table(
    {
        "id": np.arange(N),
        "town": pa.array(["Ü", "x\x1fy", None]).take(RNG.integers(0, 3, N)),
        "age": RNG.integers(0, 100, N).astype(np.int16),
        "k": RNG.integers(0, 2**32, N),
    }
)


def test_the_sketch_of_an_edition_is_the_same_elsewhere(place):
    def sketches(data):
        data = replace(data, passage=Passage(moves={"age": 1}))
        return dict(record_sketches(data, [("age", "town")]).by_variables)

    here = sketches(dc.open(PEOPLE, id="id", key="k"))
    assert sketches(place.people(PEOPLE, id="id", key="k")) == here
    for names, fewer in sketches(place.people(PEOPLE.slice(1), id="id", key="k")).items():
        assert fewer.changed_since(here[names]) == 1


def test_keys_are_judged_elsewhere(place):
    here = count_keys(dc.open(PEOPLE, key="k"))
    there = count_keys(place.people(PEOPLE, key="k"))
    np.testing.assert_array_equal(there.high, here.high)
    np.testing.assert_array_equal(there.low, here.low)
    assert there.distinct == here.distinct
    with pytest.raises(KeysError, match="not uniform"):
        place.people(PEOPLE, key="id").tabulate("age")
