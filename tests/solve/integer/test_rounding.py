"""Rounding down or up: what each way keeps, against laws and by counting draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import DataError
from discreet.solve.integer import rounding
from discreet.solve.integer.rounding import balanced, controlled, independent, parts, systematic
from discreet.testing.draws import mean_p
from tests.strategies import designs

LANGSRUD = np.array([[2.6, 3.4, 5.0], [1.4, 6.3, 4.3], [5.0, 8.3, 26.7]])


def two_way(shape, margins="a*b"):
    return dc.Design.product({"a": shape[0], "b": shape[1]}, margins)


def real_table(design, seed=0):
    return np.random.default_rng(seed).gamma(0.7, 3.0, design.n_inner)


def moves(design, y, u):
    return design.aggregate(u) - design.aggregate(y)


def test_whole_values_have_no_fraction():
    base, fraction = parts(np.array([0.0, 2.0, 3.0 - 1e-9, 4.0 + 1e-9, 1.5, -1e-9]))
    np.testing.assert_array_equal(base, [0, 2, 3, 4, 1, 0])
    np.testing.assert_array_equal(fraction, [0, 0, 0, 0, 0.5, 0])


@pytest.mark.parametrize("bad", [[-0.5], [np.nan], [np.inf]])
def test_negative_and_infinite_cells_are_refused(bad):
    with pytest.raises(DataError, match="not negative"):
        parts(np.array(bad))


@pytest.mark.parametrize("bad", [2.0**62, 1e19, 1e300])
def test_cells_too_large_for_a_count_are_refused(bad):
    with pytest.raises(DataError, match=r"below 2\*\*62"):
        parts(np.array([1.0, bad]))
    assert parts(np.array([2.0**61]))[0] == 2**61


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(0, 99))
def test_systematic_choice_keeps_every_run_within_one(probability, seed):
    p = np.array(probability)
    chosen = systematic(p, np.random.default_rng(seed))
    for start in range(0, len(p), 7):
        off = np.cumsum(chosen[start:]) - np.cumsum(p[start:])
        assert np.abs(off).max() < 1 + 1e-9
    assert not chosen[p == 0].any()


@pytest.mark.parametrize("way", [independent, systematic])
def test_cells_are_chosen_with_their_probability(way):
    p = np.array([0.1, 0.5, 0.9, 0.3, 0.7, 0.25, 0.0, 0.4])
    rng = np.random.default_rng(5)
    drawn = np.array([way(p, rng) for _ in range(4000)])
    assert min(mean_p(drawn[:, j], p[j]) for j in range(len(p)) if p[j] > 0) > 1e-5
    assert mean_p(drawn[:, 0], 0.2) < 1e-5


@pytest.mark.parametrize("margins", ["a*b", "a + b", [("a", "b"), ("a",)]])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("way", [lambda *a, **k: controlled(*a, **k).y, balanced])
def test_a_two_way_table_is_rounded_down_or_up_everywhere(margins, seed, way):
    design = two_way((7, 11), margins)
    y = real_table(design, seed)
    u = way(design, y, rng=np.random.default_rng(seed))
    assert np.abs(u - y).max() < 1
    assert np.abs(moves(design, y, u)).max() < 1


def test_sums_that_are_whole_stay():
    """The fitted table 4 of Langsrud (2019b): margins 11, 12, 40 and 9, 18, 36."""
    design = two_way((3, 3))
    found = controlled(design, LANGSRUD.ravel(), rng=np.random.default_rng(1))
    table = found.y.reshape(3, 3)
    np.testing.assert_array_equal(table.sum(axis=1), [11, 12, 40])
    np.testing.assert_array_equal(table.sum(axis=0), [9, 18, 36])
    assert found.violations == 0


def test_a_hierarchy_on_one_of_two_variables_is_rounded_exactly():
    regions = dc.Hierarchy.from_dict({"All": {"n": ["n1", "n2", "n3"], "s": ["s1", "s2"]}})
    frame = {"region": ["n1", "n2", "n3", "s1", "s2"] * 2, "sex": ["f"] * 5 + ["m"] * 5}
    table = dc.Table.from_counts(
        frame | {"n": [1] * 10}, count="n", margins="region*sex", hierarchies={"region": regions}
    )
    for seed in range(10):
        y = real_table(table.design, seed)
        found = controlled(table.design, y, rng=np.random.default_rng(seed))
        assert np.abs(moves(table.design, y, found.y)).max() < 1


def test_three_way_sums_are_within_one_where_the_search_finds_it():
    design = dc.Design.product({"a": 6, "b": 7, "c": 8}, "a*b + b*c + a*c")
    y = real_table(design)
    found = controlled(design, y, rng=np.random.default_rng(1))
    assert found.violations == 0
    assert np.abs(moves(design, y, found.y)).max() < 1
    assert np.abs(found.y - y).max() < 1


@settings(max_examples=60, deadline=None)
@given(designs(), st.integers(0, 2**20))
def test_every_way_moves_inner_cells_by_less_than_one(design, seed):
    y = real_table(design, seed)
    y[::3] = np.rint(y[::3])
    for u in (
        controlled(design, y, rng=np.random.default_rng(seed)).y,
        balanced(design, y, rng=np.random.default_rng(seed)),
    ):
        assert np.abs(u - y).max(initial=0) < 1
        np.testing.assert_array_equal(u[::3], y[::3])


def test_the_same_stream_gives_the_same_table_and_others_do_not():
    design = two_way((6, 6))
    y = real_table(design)
    draw = [controlled(design, y, rng=np.random.default_rng(s)).y for s in (1, 1, 2)]
    np.testing.assert_array_equal(draw[0], draw[1])
    assert not np.array_equal(draw[0], draw[2])


@pytest.mark.parametrize("seed", range(5))
def test_large_two_way_tables_fall_back_on_the_network(seed, monkeypatch):
    """A window too narrow for the cube method leaves sums off; the linear program mends them."""
    monkeypatch.setattr(rounding, "_NETWORK_WIDTHS", (3,))
    design = two_way((15, 16))
    y = real_table(design, seed)
    rng = np.random.default_rng(seed)
    assert np.abs(moves(design, y, balanced(design, y, rng=rng))).max() >= 1
    found = controlled(design, y, rng=rng)
    assert found.violations == 0
    assert np.abs(moves(design, y, found.y)).max() < 1
