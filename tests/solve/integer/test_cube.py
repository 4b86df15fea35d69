"""The cube method: unbiased in every cell and sum, and sums kept as far as possible."""

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DataError
from discreet.protect import mean_p
from discreet.solve import whole_and_fraction
from discreet.solve.integer import rounding
from discreet.solve.integer.rounding import choose_systematically, round_balanced

SHAPES = {
    "two-way": ({"a": 4, "b": 5}, "a*b"),
    "three-way": ({"a": 3, "b": 4, "c": 3}, "a*b + b*c + a*c"),
    "inner cells too": ({"a": 3, "b": 3, "c": 3}, "a*b*c"),
}


def made(kind, seed=3):
    sizes, margins = SHAPES[kind]
    design = dc.Design.product(sizes, margins)
    rng = np.random.default_rng(seed)
    return design, rng.integers(0, 5, design.n_inner) + rng.uniform(0.05, 0.95, design.n_inner)


@pytest.mark.parametrize("kind", SHAPES)
def test_no_cell_and_no_sum_is_biased(kind):
    design, y = made(kind)
    rng = np.random.default_rng(7)
    drawn = np.array([round_balanced(design, y, rng=rng) for _ in range(1500)])
    sums = drawn @ design.matrix().toarray()
    tests = [mean_p(drawn[:, j], y[j]) for j in range(design.n_inner)]
    tests += [mean_p(sums[:, k], t) for k, t in enumerate(design.aggregate(y))]
    assert min(tests) * len(tests) > 1e-4


@pytest.mark.parametrize("seed", range(20))
def test_two_way_sums_are_rounded_down_or_up(seed):
    design = dc.Design.product({"a": 40, "b": 30}, "a*b")
    y = np.random.default_rng(seed).gamma(0.7, 3.0, design.n_inner)
    u = round_balanced(design, y, rng=np.random.default_rng(seed))
    assert np.abs(design.aggregate(u) - design.aggregate(y)).max() < 1


def test_sums_stay_nearer_than_when_only_the_total_is_kept():
    design = dc.Design.product({"a": 9, "b": 10, "c": 11}, "a*b + b*c + a*c")
    y = np.random.default_rng(1).gamma(0.7, 3.0, design.n_inner)
    base, fraction = whole_and_fraction(y)

    def off(u):
        return np.abs(design.aggregate(u) - design.aggregate(y))

    cube = off(round_balanced(design, y, rng=np.random.default_rng(1)))
    plain = off(base + choose_systematically(fraction, np.random.default_rng(1)))
    assert cube.mean() < 0.6 * plain.mean()
    assert cube[-1] < 2


def test_whole_tables_and_single_cells_are_left_alone():
    design = dc.Design.product({"a": 3, "b": 3}, "a*b")
    y = np.arange(9.0)
    np.testing.assert_array_equal(round_balanced(design, y, rng=np.random.default_rng(1)), y)
    y[4] = 4.5
    u = round_balanced(design, y, rng=np.random.default_rng(1))
    assert u[4] in (4, 5)
    np.testing.assert_array_equal(np.delete(u, 4), np.delete(y, 4))


def test_a_general_matrix_is_rounded_too():
    X = np.array([[1, 0], [1, 1], [0, 1], [1, 1]])
    design = dc.Design.from_matrix(X)
    y = np.array([0.5, 0.25, 0.75, 1.5])
    u = round_balanced(design, y, rng=np.random.default_rng(2))
    assert np.abs(u - y).max() < 1


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr(rounding, "_CUBE_CELLS", 5)
    design = dc.Design.product({"a": 3, "b": 3}, "a*b")
    with pytest.raises(DataError, match="holds up to 5"):
        round_balanced(design, np.full(9, 0.5), rng=np.random.default_rng(1))
