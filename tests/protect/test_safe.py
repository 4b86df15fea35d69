"""SAFE: no small count anywhere, ever; near the truth where it is controlled."""

import math
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet import Secret, registry
from discreet.errors import DataError, DesignError, KeysError, ParameterError
from discreet.protect import SeededDraws
from discreet.protect.safe import Effect, effect
from discreet.solve import LimitError
from discreet.solve.integer.problem import LARGEST
from discreet.tables import CellValues
from discreet.testing import check_method, sample_table
from tests.protect.tables import SECRET, party
from tests.strategies import designs

FIVE_WAY = Path(__file__).parents[3] / "shared" / "data" / "lfs_like_agg.csv.gz"
QUICK = {"proposals": 2e4}


def census(margins=None, support="all"):
    rng = np.random.default_rng(5)
    shape = {"region": 8, "age": 7, "sex": 2, "work": 4}
    codes = np.array(list(np.ndindex(*shape.values())))
    counts = rng.poisson(rng.gamma(0.4, 5.0, len(codes)))
    frame = {name: [f"{name}{c}" for c in codes[:, k]] for k, name in enumerate(shape)}
    chosen = dc.margins(list(shape), order=2, lower=True) if margins is None else margins
    return dc.Table.from_counts({**frame, "n": counts}, "n", chosen, support=support).with_secret(
        SECRET
    )


def is_safe(counts, smallest=3):
    return not ((counts > 0) & (counts < smallest)).any()


def test_the_battery_of_promises_holds():
    found = check_method(dc.Safe(**QUICK), draws=2_000)
    assert found["keeps zeros"] == "5 zeros stayed zero"
    assert "1 to 2" in found["blocked values"]


@given(designs(), st.integers(0, 2**32 - 1), st.integers(2, 5))
@settings(max_examples=40, deadline=None)
def test_whatever_the_design_no_cell_is_small_and_zeros_stay(design, seed, smallest):
    rng = np.random.default_rng(seed)
    table = dc.Table.from_inner(design, CellValues(rng.poisson(2.0, design.n_inner)))
    release = dc.Safe(smallest, proposals=2e3)(table, draws=SeededDraws(seed))
    assert is_safe(release.y, smallest)
    assert is_safe(release.z, smallest)
    np.testing.assert_array_equal(release.z, release.design.aggregate(release.y))
    assert not effect(table, release).protected[effect(table, release).true == 0].any()
    if design.support != "occurring":
        assert not release.y[table.y == 0].any()


def test_no_table_made_from_the_result_has_a_small_cell():
    table = census()
    release = table.simulate(dc.Safe(**QUICK), seed=1)
    for order in range(5):
        for margins in dc.margins(["region", "age", "sex", "work"], order=order):
            found = effect(table, release, [margins])
            assert is_safe(found.protected)


@pytest.mark.parametrize("support", ["all", "occurring"])
def test_controlled_tables_are_near_the_truth_and_others_less(support):
    table = census(support=support)
    release = table.simulate(dc.Safe(proposals=1e6), seed=1)
    inside = effect(table, release)
    outside = effect(table, release, [("region", "age", "sex")])
    assert inside.largest <= 2
    assert inside.mean < outside.mean
    assert "chosen tables were kept near the truth" in release.statement.text
    assert release.design.n_inner == 8 * 7 * 2 * 4


@pytest.mark.parametrize("most", [2, 4, None])
def test_inner_cells_do_not_move_far(most):
    table = census()
    release = table.simulate(dc.Safe(max_move=most, **QUICK), seed=1)
    assert np.abs(release.y - table.y).max() <= (3 if most is None else most)


def test_short_moves_keep_other_tables_nearer():
    table = census()
    near, far = (
        effect(table, table.simulate(dc.Safe(max_move=m, proposals=1e6), seed=1), "region*age*sex")
        for m in (None, math.inf)
    )
    assert near.mean < far.mean
    assert near.largest < far.largest


def test_only_controlled_margins_are_kept_near():
    table = census()
    few = table.simulate(dc.Safe(controlled=[("region",), ()], **QUICK), seed=1)
    assert effect(table, few, [("region",), ()]).largest == 0
    assert effect(table, few).largest > 2
    by_formula = table.simulate(dc.Safe(controlled="region", **QUICK), seed=1)
    np.testing.assert_array_equal(by_formula.z, few.z)


def test_bounds_are_kept_for_cells_of_one_variable_and_for_the_others():
    table = census()
    wide = table.simulate(dc.Safe(bounds={1: 0, 2: 6}, proposals=1e6), seed=1)
    ones = [("region",), ("age",), ("sex",), ("work",), ()]
    assert effect(table, wide, ones).largest == 0
    assert effect(table, wide).largest <= 6
    half = table.simulate(dc.Safe(bounds={1: 0}, proposals=1e6), seed=1)
    assert effect(table, half, ones).largest == 0
    assert effect(table, half).largest <= 3


def test_whether_bounds_could_be_kept_is_known_inside_only():
    table = census()
    with pytest.raises(LimitError):
        table.simulate(dc.Safe(bounds={2: 0}, **QUICK), seed=1)
    tight, loose = (dc.Safe(bounds={1: 0, 2: bound}, proposals=10) for bound in (1, 1000))
    broken, kept = (
        m.search(table, rng=np.random.default_rng(1)).violations for m in (tight, loose)
    )
    assert broken > kept
    texts = [table.simulate(m, seed=1).statement.text for m in (tight, loose)]
    assert texts[0].replace("and 1 in", "and 1000 in") == texts[1]


def test_an_impossible_bound_names_the_cell_and_the_bound_inside_only():
    table = party("party*age*sex")
    with pytest.raises(LimitError) as caught:
        table.simulate(dc.Safe(bounds={2: 0.5}, **QUICK), seed=1)
    assert "controlled cell age=old, party=B has" in str(caught.value)
    assert "moves by 1 or more, but the bound is 0.5" in str(caught.value)
    assert "party" not in caught.value.public()


def test_weights_draw_the_search_to_some_cells():
    table = census()

    def spread(weights):
        method = dc.Safe(weights=weights, bounds={1: 50, 2: 50}, proposals=3e5)
        release = table.simulate(method, seed=1)
        two = effect(table, release, dc.margins(["region", "age", "sex", "work"], order=2))
        one = effect(table, release, dc.margins(["region", "age", "sex", "work"], order=1))
        return (one.deviation**2).mean(), (two.deviation**2).mean()

    heavy, light = spread({1: 100.0, 2: 1.0}), spread({1: 0.01, 2: 1.0})
    assert heavy[0] <= light[0]
    assert heavy[1] >= light[1]


@pytest.mark.skipif(not FIVE_WAY.exists(), reason="the five-way data are not here")
def test_a_short_search_on_a_large_table_is_already_good():
    """Giessing & Höhne (2011) report 7 and 1.49 on a table of theirs."""
    frame = pandas.read_csv(FIVE_WAY, dtype=dict.fromkeys("abcde", str))
    margins = dc.margins(list("abcde"), order=3, lower=True)
    table = dc.Table.from_counts(frame, "freq", margins, support="occurring")
    release = table.simulate(dc.Safe(proposals=1e7), seed=1)
    found = effect(table, release)
    assert found.largest <= 4
    assert found.mean < 1.1
    ones = effect(table, release, dc.margins(list("abcde"), order=1, lower=True))
    assert ones.largest <= 2


def test_the_same_secret_gives_the_same_release_and_another_one_another():
    table, method = census(), dc.Safe()
    other = table.with_secret(Secret(b"another secret of at least thirty-two bytes"))
    first, again, third = (t.protect(method) for t in (table, table, other))
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, third.y)


def test_records_and_whole_weights_come_with_the_tables():
    release = census().protect(dc.Safe())
    weights = release.inner_to_arrow().to_pandas()
    assert weights["count"].min() >= 3
    records = release.to_microdata().to_pandas()
    assert len(records) == release.y.sum() == weights["count"].sum()
    again = dc.open(records).tabulate("region*age")
    true = release.z[release.design.position({"region": "region1", "age": "age2"})]
    assert again.z[again.design.position({"region": "region1", "age": "age2"})] == true


def test_a_hierarchy_is_controlled_at_every_level():
    table = sample_table()
    found = effect(table, table.simulate(dc.Safe(**QUICK), seed=1))
    assert found.largest <= 3
    assert is_safe(found.protected)


def test_a_general_design_is_protected_too():
    X = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0]])
    table = dc.Table.from_inner(dc.Design.from_matrix(X), CellValues(np.array([2, 4, 1, 0])))
    release = table.simulate(dc.Safe(**QUICK), seed=1)
    assert is_safe(release.z)
    assert release.y[3] == 0
    with pytest.raises(DesignError, match="no margins to choose"):
        table.simulate(dc.Safe(controlled="a", **QUICK), seed=1)


def test_an_empty_table_stays_empty():
    table = dc.Table.from_inner(dc.Design.product({"a": 3}, "a"), CellValues(np.zeros(3, int)))
    release = table.simulate(dc.Safe(**QUICK), seed=1)
    assert not release.z.any()


def test_a_release_on_a_crossing_too_large_to_hold_keeps_the_protected_support(monkeypatch):
    monkeypatch.setattr("discreet.protect.safe.LARGEST_DENSE", 10)
    table = census(support="occurring")
    release = table.simulate(dc.Safe(**QUICK), seed=1)
    assert release.design.n_inner == np.count_nonzero(release.y) == len(release.y)
    assert release.design.support != "occurring"
    full = census().simulate(dc.Safe(**QUICK), seed=1)
    np.testing.assert_array_equal(effect(table, release).true, effect(table, full).true)
    assert effect(table, release).protected.sum() == 11 * release.z[release.design.position({})]
    assert effect(table, release).largest <= 4
    other = party().simulate(dc.Safe(**QUICK), seed=1)
    with pytest.raises(DesignError, match="another support"):
        effect(table, other)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"min_count": 1}, "at least 2"),
        ({"bounds": {3: 1}}, "keys 1 .* and 2"),
        ({"bounds": {1: -1}}, "bounds must not be negative"),
        ({"weights": {1: -1}}, "weights must not be negative"),
        ({"max_move": 1}, "max_move must be at least min_count - 1 = 2"),
        ({"proposals": 0}, "proposals must be at least 1"),
        ({"seconds": -1.0}, "seconds must be a positive number"),
        ({"seconds": math.nan}, "seconds must be a positive number"),
        ({"min_count": 2.5}, "min_count must be a whole number"),
        ({"bounds": {"x": 3}}, "keys of bounds are numbers of variables .* got 'x'"),
        ({"bounds": {1.5: 3}}, "keys of bounds are numbers of variables .* got 1.5"),
        ({"bounds": [1]}, r"bounds go by number of variables, such as .* got \[1\]"),
        ({"bounds": {"1": math.nan}}, "bounds: a finite number is needed, got nan"),
        ({"weights": {"1": math.inf}}, "weights: a finite number is needed, got inf"),
        ({"weights": {"1": "much"}}, "weights: a finite number is needed, got 'much'"),
        ({"proposals": math.nan}, "proposals: a finite number is needed, got nan"),
        ({"proposals": "many"}, "proposals: a finite number is needed, got 'many'"),
    ],
)
def test_nonsense_is_refused_when_it_is_written(options, why):
    with pytest.raises(ParameterError, match=why):
        dc.Safe(**options)


def test_negative_counts_and_missing_secrets_are_refused():
    with pytest.raises(DataError, match="must not be negative"):
        CellValues(np.array([3, -1]))
    with pytest.raises(KeysError, match="publication draws from a secret"):
        census().with_secret(None).protect(dc.Safe())


def test_recipes_give_plain_values():
    method = registry.build("method", "safe", {"bounds": {"1": 2, "2": 4}, "min_count": 3})
    assert method == dc.Safe(bounds={1: 2, 2: 4})


@pytest.mark.parametrize("count", [LARGEST + 1, LARGEST + 2, 2**40])
@pytest.mark.parametrize("most", [None, math.inf])
def test_counts_that_the_search_cannot_hold_are_refused(count, most):
    table = dc.Table.from_inner(dc.Design.product({"a": 2}, "a"), np.array([5, count]))
    with pytest.raises(DataError, match="hold up to 2,147,483,647"):
        table.simulate(dc.Safe(max_move=most, **QUICK), seed=1)


@pytest.mark.parametrize("count", [LARGEST - 1, LARGEST])
@pytest.mark.parametrize("most", [None, math.inf])
def test_the_largest_counts_that_fit_are_kept(count, most):
    table = dc.Table.from_inner(dc.Design.product({"a": 2}, "a"), np.array([5, count]))
    np.testing.assert_array_equal(
        table.simulate(dc.Safe(max_move=most, **QUICK), seed=1).z, table.z
    )


def test_the_statement_says_what_was_asked_for_and_nothing_that_was_measured():
    """With a single inner cell a published deviation would give its true count away."""
    design = dc.Design.product({"a": 1}, "a")
    one, two = (
        dc.Table.from_inner(design, np.array([n])).simulate(dc.Safe(bounds={1: 2, 2: 4}), seed=s)
        for n, s in ((1, 1), (2, 1))
    )
    assert one.statement == two.statement
    assert one.statement.steps[-1].parameters["max_move"] == 3
    assert (
        "at most 2 in cells of at most one variable and 4 in cells of more variables were asked for"
        in one.statement.text
    )


def test_the_steps_of_a_release_survive_a_file(tmp_path):
    method = dc.Safe(bounds={1: 10, 2: 10}, controlled=[("region",), ("age", "sex")])
    release = census().protect(method)
    again = dc.facade.read_release(release.save(tmp_path / "release.parquet"))
    assert again.statement == release.statement
    step = release.statement.steps[-1].parameters
    assert registry.build("method", "safe", step).bounds == method.bounds


EFFECT = Effect(np.array([1, 1, 2, 5, 30]), np.array([0, 3, 3, 4, 37]))


def test_the_effect_of_protection_in_figures():
    assert EFFECT.largest == 7
    assert math.isclose(EFFECT.mean, (1 + 2 + 1 + 1 + 7) / 5)
    shares = EFFECT.transitions(largest=5)
    np.testing.assert_allclose(shares[1], [0.5, 0, 0, 0.5, 0])
    np.testing.assert_allclose(shares.sum(axis=1), [0, 1, 1, 0, 0, 1])
    assert EFFECT.shares(1, 2) == {-1: 1 / 3, 1: 1 / 3, 2: 1 / 3}
    sizes = EFFECT.by_size([1, 3, 10]).to_pylist()
    assert sizes == [
        {"count": "1-2", "cells": 3, "mean": pytest.approx(4 / 3), "largest": 2},
        {"count": "3-9", "cells": 1, "mean": 1.0, "largest": 1},
        {"count": "10+", "cells": 1, "mean": 7.0, "largest": 7},
    ]


def test_an_effect_needs_inner_cells():
    table = party()
    release = table.simulate(dc.SmallCountRounding(), seed=1)
    with pytest.raises(DesignError, match="inner cells are not part"):
        effect(table, release)
