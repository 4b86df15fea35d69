from __future__ import annotations

import numpy as np
import pytest

from discreet import demo
from discreet.demo import people
from discreet.errors import ParameterError
from discreet.frames import Frame, concat


def whole(persons: int, seed: int, **options: int) -> Frame:
    return concat(demo.generate(persons, seed, **options))


def test_the_same_seed_gives_the_same_people_and_another_seed_others(census):
    assert whole(100_000, 1) == census
    assert whole(100_000, 2)["region"] != census["region"]


@pytest.mark.parametrize("chunk", [1, 7_919, 70_000, 10**9])
def test_chunks_do_not_change_the_rows(census, chunk):
    persons = 50 if chunk == 1 else 100_000
    tables = list(demo.generate(persons, 1, chunk=chunk))
    assert all(t.num_rows == chunk for t in tables[:-1])
    assert 1 <= tables[-1].num_rows <= chunk
    joined = concat(tables).without("household_size")
    assert joined == census.slice(0, persons).without("household_size")


@pytest.mark.parametrize("persons", [1, 2, 999, 65_000, 99_999])
def test_a_smaller_census_is_the_beginning_of_a_larger_one(census, persons):
    small = whole(persons, 1)
    assert small.num_rows == persons
    rest = [n for n in small.column_names if n != "household_size"]
    assert small.select(rest) == census.slice(0, persons).select(rest)
    last = small["household_id"][-1]
    complete = small.filter(~small["household_id"].equal(last))
    assert complete["household_size"] == census["household_size"].slice(0, complete.num_rows)


def test_ids_run_through_all_blocks(census):
    np.testing.assert_array_equal(census["person_id"].to_numpy(), np.arange(1, 100_001))
    household = census["household_id"].to_numpy()
    assert household[0] == 1
    assert set(np.unique(np.diff(household))) == {0, 1}
    assert household[-1] > people.HOUSEHOLDS_PER_BLOCK


def test_schema_and_codes(census):
    assert census.kinds == demo.SCHEMA
    for variable, codes in demo.code_lists().items():
        assert set(census[variable].unique().to_pylist()) <= set(codes.leaves)


def test_every_leaf_occurs_somewhere(census):
    for variable, codes in demo.code_lists().items():
        missing = set(codes.leaves) - set(census[variable].unique().to_pylist())
        assert len(missing) <= 0.02 * len(codes.leaves), (variable, missing)


def test_age_group_is_a_function_of_age_in_years(census):
    years = census["age_years"].to_numpy()
    assert years.min() == 0
    assert years.max() <= 100
    group = np.array(census["age"].to_pylist())
    for code in np.unique(group):
        low = int(code[1:3])
        assert low <= years[group == code].min()
        assert years[group == code].max() <= (100 if code.endswith("+") else low + 4)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "10", None])
def test_bad_sizes_are_refused_at_once(bad):
    for call in (demo.generate, demo.survey):
        with pytest.raises(ParameterError, match="persons"):
            call(bad, 1)
        with pytest.raises(ParameterError, match="chunk"):
            call(10, 1, chunk=bad)


@pytest.mark.parametrize("bad", [-1, 0.5, None, True])
def test_bad_seeds_are_refused_at_once(bad):
    for call in (demo.generate, demo.survey):
        with pytest.raises(ParameterError, match="seed"):
            call(10, bad)
