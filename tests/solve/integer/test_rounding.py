"""Rounding down or up: what each way keeps, against laws and by counting draws."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import DataError
from discreet.protect import mean_p
from discreet.solve import round_to_multiples, whole_and_fraction
from discreet.solve.integer import rounding
from discreet.solve.integer.rounding import (
    choose_independently,
    choose_systematically,
    round_balanced,
    round_controlled,
)
from tests.strategies import designs

LANGSRUD = np.array([[2.6, 3.4, 5.0], [1.4, 6.3, 4.3], [5.0, 8.3, 26.7]])


def two_way(shape, margins="a*b"):
    return dc.Design.product({"a": shape[0], "b": shape[1]}, margins)


def real_table(design, seed=0):
    return np.random.default_rng(seed).gamma(0.7, 3.0, design.n_inner)


def moves(design, y, u):
    return design.aggregate(u) - design.aggregate(y)


def test_whole_values_have_no_fraction():
    base, fraction = whole_and_fraction(np.array([0.0, 2.0, 3.0 - 1e-9, 4.0 + 1e-9, 1.5, -1e-9]))
    np.testing.assert_array_equal(base, [0, 2, 3, 4, 1, 0])
    np.testing.assert_array_equal(fraction, [0, 0, 0, 0, 0.5, 0])


@pytest.mark.parametrize("bad", [[-0.5], [np.nan], [np.inf]])
def test_negative_and_infinite_cells_are_refused(bad):
    with pytest.raises(DataError, match="not negative"):
        whole_and_fraction(np.array(bad))


@pytest.mark.parametrize("bad", [2.0**62, 1e19, 1e300])
def test_cells_too_large_for_a_count_are_refused(bad):
    with pytest.raises(DataError, match=r"below 2\*\*62"):
        whole_and_fraction(np.array([1.0, bad]))
    assert whole_and_fraction(np.array([2.0**61]))[0] == 2**61


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(0, 99))
def test_systematic_choice_keeps_every_run_within_one(probability, seed):
    p = np.array(probability)
    chosen = choose_systematically(p, np.random.default_rng(seed))
    for start in range(0, len(p), 7):
        off = np.cumsum(chosen[start:]) - np.cumsum(p[start:])
        assert np.abs(off).max() < 1 + 1e-9
    assert not chosen[p == 0].any()


@pytest.mark.parametrize("way", [choose_independently, choose_systematically])
def test_cells_are_chosen_with_their_probability(way):
    p = np.array([0.1, 0.5, 0.9, 0.3, 0.7, 0.25, 0.0, 0.4])
    rng = np.random.default_rng(5)
    drawn = np.array([way(p, rng) for _ in range(4000)])
    assert min(mean_p(drawn[:, j], p[j]) for j in range(len(p)) if p[j] > 0) > 1e-5
    assert mean_p(drawn[:, 0], 0.2) < 1e-5


@pytest.mark.parametrize("margins", ["a*b", "a + b", [("a", "b"), ("a",)]])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("way", [lambda *a, **k: round_controlled(*a, **k).y, round_balanced])
def test_a_two_way_table_is_rounded_down_or_up_everywhere(margins, seed, way):
    design = two_way((7, 11), margins)
    y = real_table(design, seed)
    u = way(design, y, rng=np.random.default_rng(seed))
    assert np.abs(u - y).max() < 1
    assert np.abs(moves(design, y, u)).max() < 1


def test_sums_that_are_whole_stay():
    """The fitted table 4 of Langsrud (2019b): margins 11, 12, 40 and 9, 18, 36."""
    design = two_way((3, 3))
    found = round_controlled(design, LANGSRUD.ravel(), rng=np.random.default_rng(1))
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
        found = round_controlled(table.design, y, rng=np.random.default_rng(seed))
        assert np.abs(moves(table.design, y, found.y)).max() < 1


def test_three_way_sums_are_within_one_where_the_search_finds_it():
    design = dc.Design.product({"a": 6, "b": 7, "c": 8}, "a*b + b*c + a*c")
    y = real_table(design)
    found = round_controlled(design, y, rng=np.random.default_rng(1))
    assert found.violations == 0
    assert np.abs(moves(design, y, found.y)).max() < 1
    assert np.abs(found.y - y).max() < 1


@settings(max_examples=60, deadline=None)
@given(designs(), st.integers(0, 2**20))
def test_every_way_moves_inner_cells_by_less_than_one(design, seed):
    y = real_table(design, seed)
    y[::3] = np.rint(y[::3])
    for u in (
        round_controlled(design, y, rng=np.random.default_rng(seed)).y,
        round_balanced(design, y, rng=np.random.default_rng(seed)),
    ):
        assert np.abs(u - y).max(initial=0) < 1
        np.testing.assert_array_equal(u[::3], y[::3])


def test_the_same_stream_gives_the_same_table_and_others_do_not():
    design = two_way((6, 6))
    y = real_table(design)
    draw = [round_controlled(design, y, rng=np.random.default_rng(s)).y for s in (1, 1, 2)]
    np.testing.assert_array_equal(draw[0], draw[1])
    assert not np.array_equal(draw[0], draw[2])


@pytest.mark.parametrize("seed", range(5))
def test_large_two_way_tables_fall_back_on_the_network(seed, monkeypatch):
    """A window too narrow for the cube method leaves sums off; the linear program mends them."""
    monkeypatch.setattr(rounding, "_BLOCKS", (3,))
    design = two_way((15, 16))
    y = real_table(design, seed)
    rng = np.random.default_rng(seed)
    assert np.abs(moves(design, y, round_balanced(design, y, rng=rng))).max() >= 1
    found = round_controlled(design, y, rng=rng)
    assert found.violations == 0
    assert np.abs(moves(design, y, found.y)).max() < 1


THREE_WAY = dc.Design.product({"a": 8, "b": 5, "c": 4}, "a*b + b*c + a*c")


def exact_sums(design, y):
    """Sums of real numbers without any rounding; slow and obvious."""
    X = design.matrix().T.tocsr()
    exact = [Fraction(float(v)) for v in y]
    rows = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [sum((exact[j] for j in X.indices[a:b]), Fraction(0)) for a, b in rows]


@pytest.mark.parametrize("largest", [1e3, 1e7, 3e9, 1e13])
@pytest.mark.parametrize("design", [two_way((7, 11)), THREE_WAY], ids=["two", "three"])
def test_sums_are_rounded_down_or_up_at_every_size(design, largest):
    y = np.random.default_rng(4).uniform(0, largest, design.n_inner)
    found = round_controlled(design, y, rng=np.random.default_rng(1))
    assert found.violations == 0
    sums = exact_sums(design, y)
    assert max(abs(z - t) for z, t in zip(found.z.tolist(), sums, strict=True)) < 1
    np.testing.assert_array_equal(found.z, design.aggregate(found.y))
    assert np.abs(found.y - y).max() < 1


@pytest.mark.parametrize("shift", [10**6, 10**9, 2**40])
def test_large_whole_parts_change_nothing(shift):
    """Fractions of an eighth are exact at every size, so rounding must see the same ones."""
    y = np.random.default_rng(2).integers(0, 80, THREE_WAY.n_inner) / 8
    small, large = (
        round_controlled(THREE_WAY, y + s, rng=np.random.default_rng(3)).y - s for s in (0, shift)
    )
    np.testing.assert_array_equal(small, large)


def multiples_hold(design, y, base, found):
    z = design.aggregate(y)
    moved = found.z - z
    assert not (found.y % base).any()
    np.testing.assert_array_equal(found.z, design.aggregate(found.y))
    assert np.abs(found.y - y).max() < base
    assert np.abs(moved).max() < base
    assert not moved[z % base == 0].any()


@pytest.mark.parametrize("base", [2, 3, 5, 10])
@pytest.mark.parametrize("largest", [10, 3 * 10**7, 10**13])
@pytest.mark.parametrize("design", [two_way((7, 11)), THREE_WAY], ids=["two", "three"])
def test_counts_become_multiples_next_to_them_at_every_size(design, largest, base):
    y = np.random.default_rng(base).integers(0, largest, design.n_inner)
    found = round_to_multiples(design, y, base, rng=np.random.default_rng(1))
    assert found.violations == 0
    multiples_hold(design, y, base, found)


@pytest.mark.parametrize("base", [3, 5])
def test_multiples_of_the_base_that_are_added_change_nothing(base):
    y = np.random.default_rng(2).integers(0, 50, THREE_WAY.n_inner)
    large = base * np.random.default_rng(3).integers(0, 10**14, THREE_WAY.n_inner)
    first, second = (
        round_to_multiples(THREE_WAY, y + more, base, rng=np.random.default_rng(1)).y - more
        for more in (0, large)
    )
    np.testing.assert_array_equal(first, second)


def test_multiples_and_real_numbers_agree_where_both_are_exact():
    y = np.random.default_rng(2).integers(0, 50, THREE_WAY.n_inner)
    whole = round_to_multiples(THREE_WAY, y, 4, rng=np.random.default_rng(1))
    real = round_controlled(THREE_WAY, y / 4, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(whole.y, 4 * real.y)
    assert whole.maximum == real.maximum


@pytest.mark.parametrize("bad", [-1, 2**62])
def test_counts_outside_the_range_are_refused(bad):
    y = np.array([bad] + [0] * 3)
    with pytest.raises(DataError, match=r"0\.\.2\*\*62"):
        round_to_multiples(two_way((2, 2)), y, 3, rng=np.random.default_rng(1))


def test_sums_that_are_whole_but_for_rounding_errors_stay():
    """A third three times, and tenths, in cells of very different size."""
    design = dc.Design.product({"a": 12}, [()])
    y = np.array([1 / 3, 1 / 3, 1 / 3, 1e9 + 0.1, 0.2, 0.7, *[1e6 + 1 / 6] * 6])
    for seed in range(20):
        assert round_controlled(design, y, rng=np.random.default_rng(seed)).z == [1_006_000_003]
